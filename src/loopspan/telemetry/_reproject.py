"""A RunLog made into spans once more: the same spans, ids, times and attributes as live."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.sdk.trace import Tracer
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context

from loopspan import events as e
from loopspan._journal import Entry
from loopspan.telemetry import _attributes
from loopspan.telemetry._fast_span import FastWriter, blank
from loopspan.telemetry._projector import SpanProjector
from loopspan.telemetry._spans import Handle, Place


class _GivenIds(FastWriter):
    """Gives each span the ids that its entry has."""

    __slots__ = ()

    def take(self, entry: Entry) -> None:
        """The next span is that of `entry`."""
        self._trace_id, self._ids = entry.trace_id, lambda: entry.span_id


def reproject(entries: Iterable[Entry], tracer: Tracer) -> None:
    """Write the spans of one run's entries, in order, to the processors of `tracer`'s provider.

    Spans that the log leaves open are not ended. Raises ValueError for a log that does not begin with run_started.
    """
    projection: _Projection | None = None
    for entry in entries:
        if projection is None:
            projection = _Projection(entry, tracer)
        projection.add(entry)


class _Projection:
    def __init__(self, first: Entry, tracer: Tracer) -> None:
        started = first.event
        if not isinstance(started, e.RunStarted):
            raise ValueError(f"run {first.run_id} begins with {first.name}, not with run_started: its root is missing")
        self._started = started
        identity = _attributes.identity(first.run_id, started)
        self._projector = SpanProjector(identity, content=not started.content_in_events_only)
        self._open: dict[int, Handle] = {}
        flags = TraceFlags(started.trace_flags)
        state = TraceState.from_header([started.trace_state] if started.trace_state else [])
        self._context = SpanContext(first.trace_id, first.span_id, False, flags, state)
        self._writer = _GivenIds(blank(tracer, self._context), tracer)
        self._projector.writer = self._writer

    def _place(self, entry: Entry) -> Place:
        """Where the entry's span hangs: below a span of this run, or below one that is somebody else's."""
        handle = self._open.get(entry.parent_id or 0)
        if handle is not None:
            span = handle.span
        else:
            remote = self._started.remote_parent
            parent = SpanContext(entry.trace_id, entry.parent_id or 0, remote, self._context.trace_flags)
            span = NonRecordingSpan(parent)
        return Place(span, set_span_in_context(span))

    def add(self, entry: Entry) -> None:
        """Project one entry as its event was projected when it happened."""
        self._writer.take(entry)
        event, kind, handle = entry.event, type(entry.event), self._open.get(entry.span_id)
        if kind in _attributes.INSTANT:
            self._projector.instant(event, entry.seq, entry.time, self._place(entry))
        elif handle is None:
            self._open[entry.span_id] = self._projector.open(event, entry.seq, entry.time, self._place(entry))
        elif kind in _attributes.ENDS:
            self._projector.end(event, entry.seq, entry.time, handle)
            del self._open[entry.span_id]
        else:
            self._projector.add(event, entry.seq, entry.time, handle)
