"""From accepted events to spans: one projector a run, which knows nothing but the events that it is given."""

from __future__ import annotations

import sys
from typing import Any

from opentelemetry.trace import Span, Tracer

from loopspan import _journal, semconv
from loopspan import events as e
from loopspan.telemetry import _attributes
from loopspan.telemetry._spans import Attributes, Handle, NullWriter, Place, PublicWriter, Writer


def _writer(tracer: Tracer, root: Span) -> Writer:
    """The quickest way to write below `root`."""
    if not root.is_recording():
        return NullWriter(root)
    fast = _load_fast()
    if fast is not None and fast.usable(tracer, root):
        made: Writer = fast.FastWriter(root, tracer)
        return made
    return PublicWriter(tracer)


def _load_fast() -> Any:
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    try:
        from loopspan.telemetry import _fast_span
    except ImportError:
        return None
    return _fast_span


class SpanProjector:
    """Writes the spans of one run; `identity` is what every one of them carries from its start."""

    __slots__ = ("_identity", "_in_spans", "writer")

    def __init__(self, identity: Attributes, *, in_spans: bool = True) -> None:
        self._identity = identity
        self._in_spans = in_spans
        self.writer: Writer

    def start_root(self, tracer: Tracer, event: e.RunStarted, place: Place, links: Any, time: int) -> Handle:
        """Start the run's root through the public API, live from its start; `event` itself is recorded after it."""
        opening = _attributes.OPENS[e.RunStarted]
        own = {**self._identity, **opening.attributes(event)}
        span = tracer.start_span(opening.name(event), place.context, opening.kind, own, links, start_time=time)
        self.writer = _writer(tracer, span)
        return Handle(span, own, time)

    def open(self, event: e.Event, seq: int, time: int, place: Place) -> Handle:
        """Start the span that `event` opens."""
        handle = self._start(_attributes.OPENS[type(event)], event, time, place)
        if self._in_spans:
            self.writer.event(handle, event.name, _journal.encode(event, seq), time)
        return handle

    def _start(self, opening: _attributes.Opening, event: Any, start: int, place: Place) -> Handle:
        own = dict(self._identity)
        step = getattr(event, "step", None)
        if step is not None:
            own[semconv.STEP_NUMBER] = step
        own.update(opening.attributes(event))
        return self.writer.start(opening.name(event), opening.kind, place, own, start)

    def add(self, event: e.Event, seq: int, time: int, handle: Handle) -> None:
        """Put `event` on an open span."""
        mark = _attributes.MARKS.get(type(event))
        if mark is not None:
            handle.own.update(mark(event))
        if self._in_spans:
            self.writer.event(handle, event.name, _journal.encode(event, seq), time)

    def end(self, event: e.Event, seq: int, time: int, handle: Handle) -> None:
        """End the span that `event` closes; the event precedes the end."""
        self.add(event, seq, time, handle)
        handle.own.update(_attributes.ENDS[type(event)](event))
        if type(event) is e.RunTraceClosed:
            handle.own[semconv.EVENTS_COUNT] = seq
        self.writer.end(handle, _attributes.failed(event), time)

    def instant(self, event: Any, seq: int, time: int, place: Place) -> Handle:
        """The whole span that `event` stands for, from its `started` to now."""
        handle = self._start(_attributes.INSTANT[type(event)], event, min(event.started, time), place)
        if self._in_spans:
            self.writer.event(handle, event.name, _journal.encode(event, seq), time)
        failed = semconv.ERROR_TYPE in handle.own
        self.writer.end(handle, failed, time)
        return handle
