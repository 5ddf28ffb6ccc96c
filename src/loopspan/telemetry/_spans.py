"""How a span is written: through OpenTelemetry's public API, or (`_fast_span`) past the SDK's cleaning of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from loopspan import semconv

Attributes = dict[str, Any]

ERROR = Status(StatusCode.ERROR)


ESSENTIALS = (
    semconv.CONVERSATION,
    semconv.OPERATION,
    semconv.TOOL_NAME,
    semconv.AGENT,
    semconv.ERROR_TYPE,
    semconv.LIFECYCLE,
    semconv.STOP_REASON,
    semconv.STEP_OUTCOME,
    semconv.REQUEST_OUTCOME,
    semconv.TOOL_OUTCOME,
    semconv.ATTEMPT_OUTCOME,
    semconv.RUN_ID,
)
"""Identity and outcome: what goes last where a limit takes attributes, the last of these last."""


def essentials_last(own: Attributes) -> Attributes:
    """`own` in an order in which limits, which take the first keys, leave identity and outcome."""
    rest = {key: value for key, value in own.items() if key not in ESSENTIALS}
    return {**rest, **{key: own[key] for key in ESSENTIALS if key in own}}


class Place(NamedTuple):
    """Where a span hangs: its parent, and the Context that has the parent as current span."""

    span: Span
    context: Context


class Handle:
    """A span of ours, with all that we have put on it.

    What we put on it is kept apart from what users add, so that it can be set again before the end: the SDK drops the
    oldest attributes first, and identity and outcome must survive.
    """

    __slots__ = ("own", "span", "start")

    def __init__(self, span: Span, own: Attributes, start: int) -> None:
        self.span = span
        self.own = own
        self.start = start


class Writer(Protocol):
    """Writes one run's spans, all but the root."""

    def start(self, name: str, kind: SpanKind, place: Place, own: Attributes, start: int) -> Handle:
        """Start a span below `place`; `start` is nanoseconds since the epoch."""
        ...

    def event(self, handle: Handle, name: str, attributes: Attributes, time: int) -> None:
        """Add a span event."""
        ...

    def end(self, handle: Handle, failed: bool, end: int) -> None:
        """End the span; `failed` makes its status ERROR."""
        ...


class PublicWriter:
    """Through the public API: works with every provider."""

    __slots__ = ("_tracer",)

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def start(self, name: str, kind: SpanKind, place: Place, own: Attributes, start: int) -> Handle:
        """Start a span below `place`."""
        return Handle(self._tracer.start_span(name, place.context, kind, own, start_time=start), own, start)

    def event(self, handle: Handle, name: str, attributes: Attributes, time: int) -> None:
        """Add a span event."""
        handle.span.add_event(name, attributes, time)

    def end(self, handle: Handle, failed: bool, end: int) -> None:
        """Set all that is ours again where users have added something, then end."""
        finish(handle, failed, end)


def finish(handle: Handle, failed: bool, end: int) -> None:
    """End a span through the public API, with all that is ours on it."""
    span, own = handle.span, handle.own
    present = _present(span)
    if present is None:
        span.set_attributes(essentials_last(own))
    else:
        lacking = {key: value for key, value in own.items() if key not in present or present[key] != value}
        span.set_attributes(lacking)
        if len(_present(span) or ()) < len(present | lacking):  # a limit has taken some of them
            span.set_attributes(essentials_last(own))
    if failed:
        span.set_status(ERROR)
    span.end(end)


def _present(span: Span) -> Attributes | None:
    """A copy of the attributes that the span has; None where they cannot be seen."""
    attributes = getattr(span, "attributes", None)
    if not isinstance(attributes, Mapping):
        return None
    copied: Attributes = attributes.copy() if hasattr(attributes, "copy") else dict(attributes)
    return copied


class NullWriter:
    """For runs that are not sampled: nothing is written, and the caller's own spans see the run's context."""

    __slots__ = ("_root",)

    def __init__(self, root: Span) -> None:
        self._root = root

    def start(self, name: str, kind: SpanKind, place: Place, own: Attributes, start: int) -> Handle:
        """The root's span, with what metrics need to know."""
        return Handle(self._root, own, start)

    def event(self, handle: Handle, name: str, attributes: Attributes, time: int) -> None:
        """Nothing."""

    def end(self, handle: Handle, failed: bool, end: int) -> None:
        """Nothing."""
