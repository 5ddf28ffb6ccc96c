"""The fast span: a subclass of the SDK's span that takes attributes and events which are clean already.

The SDK cleans every attribute and event that it is given, which is most of a span's cost. Ours are made clean, so this
class stores them as they are and calls the real processors. What users add goes through the SDK's own methods. It is
used only where `usable` finds the SDK as expected; a test holds that both ways give equal spans.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Event, Span, Tracer
from opentelemetry.sdk.util import BoundedList
from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace import Tracer as ApiTracer

from loopspan.telemetry._spans import ERROR, Attributes, Handle, Place, essentials_last, finish

_EXPECTED = frozenset(
    "_name _context _kind _instrumentation_info _instrumentation_scope _parent _start_time _end_time _attributes"
    " _events _links _resource _status _sampler _trace_config _record_exception _set_status_on_exception"
    " _span_processor _limits _lock _record_end_metrics".split()
)
_EXPECTED_OF_EVENTS = frozenset({"_name", "_timestamp", "_attributes"})

_UNSET = Status(StatusCode.UNSET)


def usable(tracer: ApiTracer, root: ApiSpan) -> bool:
    """Whether the SDK is as this file expects it: its own tracer and span, nothing added, no metrics of its own."""
    if type(tracer) is not Tracer or not isinstance(root, Span) or vars(root).keys() != _EXPECTED:
        return False
    if vars(Event("", None, 0)).keys() != _EXPECTED_OF_EVENTS or not hasattr(BoundedAttributes, "_setitem_locked"):
        return False
    return type(getattr(tracer, "_tracer_metrics", None)).__name__ == "NoOpTracerMetrics"


class FastSpan(Span):
    """A span whose own attributes and events are stored as they are."""

    _own: Attributes

    def __new__(cls, *args: Any, **kwargs: Any) -> FastSpan:
        """Bare: `FastWriter` fills it."""
        return object.__new__(cls)

    def set_attribute(self, key: str, value: Any) -> None:
        """What users set is cleaned and bounded by the SDK, and kept apart."""
        with self._lock:
            self._for_users()
        super().set_attribute(key, value)

    def set_attributes(self, attributes: Any) -> None:
        """Likewise."""
        with self._lock:
            self._for_users()
        super().set_attributes(attributes)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        """An event of the user's own."""
        with self._lock:
            self._bounded_events()
        super().add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        """A link of the user's own."""
        if not isinstance(self._links, BoundedList):
            self._links = self._new_links(())
        super().add_link(context, attributes)

    def _for_users(self) -> None:
        if type(self._attributes) is dict and self._end_time is None:
            most, length = self._limits.max_span_attributes, self._limits.max_span_attribute_length
            bounded = BoundedAttributes(most, None, False, length)
            if length is None and len(self._own) <= _most(most):
                bounded._dict = dict(self._own)
            else:
                bounded._set_items(self._own)
            self._attributes = bounded

    def _bounded_events(self) -> None:
        if type(self._events) is list:
            self._events = BoundedList.from_seq(self._limits.max_events, self._events)


def _limited(attributes: Attributes, most: int, length: int | None) -> Any:
    """`attributes` within the SDK's limits: the last `most`, and how many were dropped; text cut at `length`."""
    if len(attributes) > most:
        return BoundedAttributes(most, attributes, True, length)
    return {key: _cut(value, length) for key, value in attributes.items()}


def _cut(value: Any, length: int | None) -> Any:
    if isinstance(value, str):
        return value[:length]
    return tuple(_cut(part, length) for part in value) if isinstance(value, tuple) else value


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

    __slots__ = (
        "_event_length", "_event_most", "_events_most", "_flags", "_ids", "_length", "_model", "_most", "_state",
        "_trace_id",
    )  # fmt: skip

    def __init__(self, root: Span, tracer: Tracer) -> None:
        context, limits = root.get_span_context(), root._limits
        self._trace_id, self._flags, self._state = context.trace_id, context.trace_flags, context.trace_state
        self._ids = tracer.id_generator.generate_span_id
        self._model: Any = root
        self._most, self._length = _most(limits.max_span_attributes), limits.max_span_attribute_length
        self._events_most = _most(limits.max_events)
        self._event_most, self._event_length = _most(limits.max_event_attributes), limits.max_attribute_length

    def start(self, name: str, kind: SpanKind, place: Place, own: Attributes, start: int) -> Handle:
        """Start a span below `place`; what it shares with the others is taken from the root."""
        model, above = self._model, place.span
        parent = above.get_span_context()
        span: Any = object.__new__(FastSpan)  # field by field: a copied dictionary costs five times as much
        span._name = name
        span._context = SpanContext(self._trace_id, self._ids(), False, self._flags, self._state)
        span._kind = kind
        span._instrumentation_info = model._instrumentation_info
        span._instrumentation_scope = model._instrumentation_scope
        span._parent = parent if type(above) is FastSpan or parent.is_valid else None
        span._start_time = start
        span._end_time = None
        span._attributes = span._own = own
        span._events = []
        span._links = ()
        span._resource = model._resource
        span._status = _UNSET
        span._sampler = model._sampler
        span._trace_config = model._trace_config
        span._record_exception = model._record_exception
        span._set_status_on_exception = model._set_status_on_exception
        span._span_processor = model._span_processor
        span._limits = model._limits
        span._lock = threading.Lock()
        span._record_end_metrics = None
        span._span_processor.on_start(span, parent_context=place.context)
        return Handle(span, own, start)

    def event(self, handle: Handle, name: str, attributes: Attributes, time: int) -> None:
        """Add a span event, clean as it is; the root cleans its two itself."""
        span: Any = handle.span
        if type(span) is not FastSpan:
            span.add_event(name, attributes, time)
            return
        if self._event_length is not None or len(attributes) > self._event_most:
            attributes = _limited(attributes, self._event_most, self._event_length)
        event: Any = object.__new__(Event)  # as its __init__ does, which is two calls
        event._name = name
        event._timestamp = time
        event._attributes = attributes
        with span._lock:
            if len(span._events) >= self._events_most:
                span._bounded_events()
            events: Any = span._events
            events.append(event)

    def end(self, handle: Handle, failed: bool, end: int) -> None:
        """Set all that is ours for good, and hand the span to the processors; the root is one of the SDK's own."""
        span: Any = handle.span
        own = handle.own
        if type(span) is not FastSpan:
            if failed and isinstance(span, Span):
                span._status = ERROR  # through the API an OK of the user's own would stay
            finish(handle, failed, end)
            return
        if self._length is not None or len(own) > self._most:
            own = _limited(essentials_last(own), self._most, self._length)
        with span._lock:
            if span._end_time is not None:
                return
            span._end_time = end
            if failed:
                span._status = ERROR
            if type(span._attributes) is dict:
                span._attributes = own
            else:
                _settle(span._attributes, own)
        processor = span._span_processor
        processor._on_ending(span)
        processor.on_end(span)


def _settle(attributes: Any, own: Attributes) -> None:
    """Put what is ours over what users have set."""
    for key, value in own.items():
        attributes._setitem_locked(key, value)
    attributes.dropped += getattr(own, "dropped", 0)
    attributes._immutable = True


def _most(limit: int | None) -> int:
    """A limit of the SDK as a number; None is no limit."""
    return sys.maxsize if limit is None else limit
