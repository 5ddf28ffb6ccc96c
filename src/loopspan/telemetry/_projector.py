"""From accepted events to spans: one projector a run, which knows nothing but the events that it is given."""

from __future__ import annotations

import sys
from typing import Any

from opentelemetry.trace import Span, Tracer

from loopspan import events as e
from loopspan import semconv
from loopspan._journal import ENCODERS as _ENCODERS
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
    """Writes the spans of one run; `identity` is what every one of them carries from its start.

    `in_spans` is False where events go elsewhere, `content` where span attributes have none though events do.
    """

    __slots__ = ("_content", "_identity", "_in_spans", "writer")

    def __init__(self, identity: Attributes, *, in_spans: bool = True, content: bool = True) -> None:
        self._identity = identity
        self._in_spans = in_spans
        self._content = content
        self.writer: Writer

    def start_root(self, tracer: Tracer, event: e.RunStarted, place: Place, links: Any, time: int) -> Handle:
        """Start the run's root through the public API, live from its start; `event` itself is recorded after it."""
        opening = _attributes.OPENS[e.RunStarted]
        own = {**self._identity, **opening.attributes(event)}
        span = tracer.start_span(opening.name(event), place.context, opening.kind, own, links, start_time=time)
        self.writer = _writer(tracer, span)
        return Handle(span, own, time)

    def open(self, event: Any, seq: int, time: int, place: Place) -> Handle:
        """Start the span that `event` opens."""
        return self._start(_attributes.OPENS[type(event)], event, seq, time, time, place)

    def _start(self, opening: _attributes.Opening, event: Any, seq: int, start: int, time: int, place: Place) -> Handle:
        own, given = dict(self._identity), opening.attributes(event)
        step = getattr(event, "step", None)
        if step is not None:
            own[semconv.STEP_NUMBER] = step
        own.update(given if self._content else _without_content(given))
        handle = self.writer.start(opening.name(event), opening.kind, place, own, start)
        if self._in_spans:
            self.writer.event(handle, event.name, _ENCODERS[type(event)](event, seq), time)
        return handle

    def add(self, event: e.Event, seq: int, time: int, handle: Handle) -> Handle:
        """Put `event` on an open span."""
        mark = _attributes.MARKS.get(type(event))
        if mark is not None:
            given = mark(event)
            handle.own.update(given if self._content else _without_content(given))
        if self._in_spans:
            self.writer.event(handle, event.name, _ENCODERS[type(event)](event, seq), time)
        return handle

    def end(self, event: e.Event, seq: int, time: int, handle: Handle) -> Handle:
        """End the span that `event` closes; the event precedes the end."""
        if self._in_spans:
            self.writer.event(handle, event.name, _ENCODERS[type(event)](event, seq), time)
        own, given = handle.own, _attributes.ENDS[type(event)](event)
        own.update(given if self._content else _without_content(given))
        if type(event) is e.RunTraceClosed:
            own[semconv.EVENTS_COUNT] = seq
        self.writer.end(handle, _attributes.failed(event), time)
        return handle

    def instant(self, event: Any, seq: int, time: int, place: Place) -> Handle:
        """The whole span that `event` stands for, from its `started` to now."""
        start = min(event.started, time)
        handle = self._start(_attributes.INSTANT[type(event)], event, seq, start, time, place)
        self.writer.end(handle, semconv.ERROR_TYPE in handle.own, time)
        return handle


def _without_content(attributes: Attributes) -> Attributes:
    return {key: value for key, value in attributes.items() if key not in _attributes.CONTENT}
