"""The same spans by hand: a captured run turned into the calls of OpenTelemetry's API that make it once more.

The calls are written out as the source of one function without any branch, its names, attributes and contexts made
beforehand, so that nothing but the SDK is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode, Tracer, set_span_in_context

import loopspan
from loopspan import semconv

Replay = Callable[[Tracer], None]


class Counting(SpanProcessor):
    """A real span processor that does next to nothing: it counts what ends."""

    def __init__(self) -> None:
        self.ended = 0

    def on_end(self, span: ReadableSpan) -> None:
        """One more."""
        self.ended += 1


class Keeping(SpanProcessor):
    """Keeps the ended spans, and the attributes that each had at its start."""

    def __init__(self) -> None:
        self.at_start: dict[int, dict[str, Any]] = {}
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """A copy of the attributes, since they are added to."""
        self.at_start[_id(span)] = dict(span.attributes or {})

    def on_end(self, span: ReadableSpan) -> None:
        """The finished span."""
        self.ended.append(span)


def sdk(processor: SpanProcessor) -> TracerProvider:
    """A provider of the SDK that hands its spans to `processor`."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def kept_run(run: Callable[[], object]) -> Keeping:
    """The spans of one run with loopspan."""
    keeping = Keeping()
    with loopspan.configure(tracer_provider=sdk(keeping)):
        run()
    return keeping


def by_hand(kept: Keeping) -> Replay:
    """A function that makes the kept spans again; raises RuntimeError where its spans differ from them."""
    source, names = _Writing(kept).written()
    exec(compile(source, "<spans by hand>", "exec"), names)
    replay: Replay = names["replay"]
    again = Keeping()
    replay(sdk(again).get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL))
    if [_content(span, again) for span in again.ended] != [_content(span, kept) for span in kept.ended]:
        raise RuntimeError("the spans by hand differ from those of the run that they were written from")
    return replay


class _Content(NamedTuple):
    """What must be equal in both."""

    name: str
    parent: str | None
    kind: Any
    at_start: Mapping[str, Any]
    attributes: Mapping[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    status: StatusCode


def _content(span: ReadableSpan, kept: Keeping) -> _Content:
    names = {_id(other): other.name for other in kept.ended}
    parent = None if span.parent is None else names[span.parent.span_id]
    events = [(event.name, dict(event.attributes or {})) for event in span.events]
    at_start, attributes = kept.at_start[_id(span)], dict(span.attributes or {})
    return _Content(span.name, parent, span.kind, at_start, attributes, events, span.status.status_code)


class _Writing:
    """Writes the source of the replaying function, and the constants that it names."""

    def __init__(self, kept: Keeping) -> None:
        self.names: dict[str, Any] = {"set_span_in_context": set_span_in_context, "StatusCode": StatusCode}
        self._kept = kept
        self._number = {_id(span): number for number, span in enumerate(kept.ended)}
        self._parents = {span.parent.span_id for span in kept.ended if span.parent is not None}
        self._lines = ["def replay(tracer):", "start_span = tracer.start_span"]

    def written(self) -> tuple[str, dict[str, Any]]:
        """(source, its global names)."""
        events = [(event, span) for span in self._kept.ended for event in span.events]
        for event, span in sorted(events, key=lambda pair: _seq(pair[0])):
            self._event(event, span)
        return "\n    ".join(self._lines), self.names

    def _event(self, event: Event, span: ReadableSpan) -> None:
        """A span begins right before its first event and ends right after its last one."""
        if event is span.events[0]:
            self._start(span)
        self._line(f"span_{self._of(span)}.add_event({event.name!r}, {self._constant('event', event.attributes)})")
        if event is span.events[-1]:
            self._end(span)

    def _start(self, span: ReadableSpan) -> None:
        number = self._of(span)
        context = "None" if span.parent is None else f"context_{self._number[span.parent.span_id]}"
        attributes = self._constant("attributes", self._kept.at_start[_id(span)])
        self._line(f"span_{number} = start_span({span.name!r}, {context}, {self._kind(span)}, {attributes})")
        if _id(span) in self._parents:
            self._line(f"context_{number} = set_span_in_context(span_{number})")

    def _end(self, span: ReadableSpan) -> None:
        number, at_start = self._of(span), self._kept.at_start[_id(span)]
        later = {key: value for key, value in (span.attributes or {}).items() if at_start.get(key) != value}
        if later:
            self._line(f"span_{number}.set_attributes({self._constant('later', later)})")
        if span.status.status_code is StatusCode.ERROR:
            self._line(f"span_{number}.set_status(StatusCode.ERROR)")
        self._line(f"span_{number}.end()")

    def _line(self, line: str) -> None:
        self._lines.append(line)

    def _of(self, span: ReadableSpan) -> int:
        return self._number[_id(span)]

    def _kind(self, span: ReadableSpan) -> str:
        self.names[span.kind.name] = span.kind
        return span.kind.name

    def _constant(self, word: str, value: Any) -> str:
        name = f"{word}_{len(self.names)}"
        self.names[name] = dict(value)
        return name


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def _seq(event: Event) -> int:
    seq = (event.attributes or {})[semconv.EVENT_SEQ]
    assert isinstance(seq, int)
    return seq
