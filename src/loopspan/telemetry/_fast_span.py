"""The fast span: a subclass of the SDK's span that takes attributes and events which are clean already.

The SDK cleans every attribute and event that it is given, which is most of a span's cost. Ours are made clean, so this
class stores them as they are and calls the real processors. What users add goes through the SDK's own methods. It is
used only where `usable` finds the SDK as expected; a test holds that both ways give equal spans.
"""

from __future__ import annotations

import threading
from typing import Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Event, Span, Tracer
from opentelemetry.sdk.util import BoundedList
from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace import Tracer as ApiTracer

from loopspan.telemetry._spans import ERROR, Attributes, Handle, Place, finish

_EXPECTED = frozenset(
    "_name _context _kind _instrumentation_info _instrumentation_scope _parent _start_time _end_time _attributes"
    " _events _links _resource _status _sampler _trace_config _record_exception _set_status_on_exception"
    " _span_processor _limits _lock _record_end_metrics".split()
)


_UNSET = Status(StatusCode.UNSET)


def usable(tracer: ApiTracer, root: ApiSpan) -> bool:
    """Whether the SDK is as this file expects it: its own tracer and span, nothing added, no metrics of its own."""
    if type(tracer) is not Tracer or not isinstance(root, Span) or vars(root).keys() != _EXPECTED:
        return False
    metrics = getattr(tracer, "_tracer_metrics", None)
    return type(metrics).__name__ == "NoOpTracerMetrics" and hasattr(BoundedAttributes, "_setitem_locked")


class FastSpan(Span):
    """A span whose own attributes and events are stored as they are."""

    _own: Attributes

    def __new__(cls, *args: Any, **kwargs: Any) -> FastSpan:
        """Bare: `FastWriter` fills it."""
        return object.__new__(cls)

    def set_attribute(self, key: str, value: Any) -> None:
        """What users set is cleaned and bounded by the SDK, and kept apart."""
        self._for_users()
        super().set_attribute(key, value)

    def set_attributes(self, attributes: Any) -> None:
        """Likewise."""
        self._for_users()
        super().set_attributes(attributes)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        """An event of the user's own."""
        self._bounded_events()
        super().add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        """A link of the user's own."""
        if not isinstance(self._links, BoundedList):
            self._links = self._new_links(())
        super().add_link(context, attributes)

    def _for_users(self) -> None:
        if type(self._attributes) is dict:
            limits = self._limits
            bounded = BoundedAttributes(limits.max_span_attributes, None, False, limits.max_span_attribute_length)
            bounded._dict = dict(self._own)
            self._attributes = bounded

    def _bounded_events(self) -> None:
        if type(self._events) is list:
            self._events = BoundedList.from_seq(self._limits.max_events, self._events)

    def own_event(self, name: str, attributes: Attributes, time: int) -> None:
        """Add a clean event."""
        limits = self._limits
        attributes = _limited(attributes, limits.max_event_attributes, limits.max_attribute_length)
        if type(self._events) is list and limits.max_events is not None and len(self._events) >= limits.max_events:
            self._bounded_events()
        events: Any = self._events
        events.append(Event(name, attributes, time))

    def finish(self, own: Attributes, failed: bool, end: int) -> None:
        """Set all that is ours for good, and hand the span to the processors."""
        if failed:
            self._status = ERROR
        with self._lock:
            if self._end_time is not None:
                return
            self._end_time = end
            self._settle(own)
        self._span_processor._on_ending(self)
        self._span_processor.on_end(self)

    def _settle(self, own: Attributes) -> None:
        limits = self._limits
        own = _limited(own, limits.max_span_attributes, limits.max_span_attribute_length)
        attributes: Any = self._attributes
        if type(attributes) is dict:
            self._attributes = own
            return
        for key, value in own.items():
            attributes._setitem_locked(key, value)
        attributes._immutable = True


def _limited(attributes: Attributes, most: int | None, length: int | None) -> Attributes:
    """`attributes` within the SDK's limits: the last `most`, text cut at `length`."""
    if most is not None and len(attributes) > most:
        attributes = dict(list(attributes.items())[len(attributes) - most :])
    if length is not None:
        attributes = {key: value[:length] if isinstance(value, str) else value for key, value in attributes.items()}
    return attributes


def blank(tracer: Tracer, context: SpanContext) -> FastSpan:
    """A span that was never started, as a model for others of the same tracer and trace."""
    return FastSpan(
        name="",
        context=context,
        sampler=tracer.sampler,
        resource=tracer.resource,
        span_processor=tracer.span_processor,
        instrumentation_info=tracer.instrumentation_info,
        limits=tracer._span_limits,
        instrumentation_scope=tracer._instrumentation_scope,
    )


class FastWriter:
    """Writes the spans of one run below a root that the SDK made."""

    __slots__ = ("_flags", "_ids", "_state", "_template", "_trace_id")

    def __init__(self, root: Span, tracer: Tracer) -> None:
        context = root.get_span_context()
        self._trace_id, self._flags, self._state = context.trace_id, context.trace_flags, context.trace_state
        self._ids = tracer.id_generator.generate_span_id
        self._template = {
            **vars(root),
            "_end_time": None,
            "_links": (),
            "_status": _UNSET,
            "_record_end_metrics": None,
        }

    def start(self, name: str, kind: SpanKind, place: Place, own: Attributes, start: int) -> Handle:
        """Start a span below `place`."""
        context = SpanContext(self._trace_id, self._ids(), False, self._flags, self._state)
        return Handle(self.make(name, kind, context, place, own, start), own, start)

    def make(
        self, name: str, kind: SpanKind, context: SpanContext, place: Place, own: Attributes, start: int
    ) -> FastSpan:
        """A started span with the ids of `context`."""
        parent = place.span.get_span_context()
        span = object.__new__(FastSpan)
        span.__dict__ = {
            **self._template,
            "_name": name,
            "_context": context,
            "_kind": kind,
            "_parent": parent if parent.is_valid else None,
            "_start_time": start,
            "_attributes": own,
            "_events": [],
            "_lock": threading.Lock(),
            "_own": own,
        }
        span._span_processor.on_start(span, parent_context=place.context)
        return span

    def event(self, handle: Handle, name: str, attributes: Attributes, time: int) -> None:
        """Add a span event."""
        span = handle.span
        if type(span) is FastSpan:
            span.own_event(name, attributes, time)
        else:
            span.add_event(name, attributes, time)

    def end(self, handle: Handle, failed: bool, end: int) -> None:
        """End the span; the root is one of the SDK's own."""
        span = handle.span
        if type(span) is FastSpan:
            span.finish(handle.own, failed, end)
        else:
            finish(handle, failed, end)
