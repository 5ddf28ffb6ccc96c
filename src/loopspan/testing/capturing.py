"""`capture()`: everything that loopspan records inside a block, through a real SDK into memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Sampler

from loopspan import _clock, _config, semconv
from loopspan._journal import Entry
from loopspan.trajectory import RunLog, RunView, read_runlog

Tree = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Metric:
    """The data points of one metric that fit the question, added up."""

    sum: float
    count: int
    points: list[Any]


class _Spans(SpanProcessor):
    """Keeps finished spans and knows the open ones."""

    def __init__(self) -> None:
        self.finished: list[ReadableSpan] = []
        self.open: dict[int, Span] = {}
        self._lock = threading.RLock()  # a span may end while this is held: in a garbage collection of this thread

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        """A span is open."""
        with self._lock:
            self.open[span.get_span_context().span_id] = span

    def on_end(self, span: ReadableSpan) -> None:
        """A span is finished."""
        context = span.get_span_context()
        with self._lock:
            if context is not None:
                self.open.pop(context.span_id, None)
            self.finished.append(span)


class Captured:
    """What was recorded: `runs`, `spans`, `span_tree()`, `open_spans()`, `metric()`, `logs`."""

    def __init__(self, tracer_provider: TracerProvider, spans: _Spans, reader: Any, log_exporter: Any) -> None:
        self.tracer_provider = tracer_provider
        self.entries: list[Entry] = []
        self._spans = spans
        self._reader = reader
        self._log_exporter = log_exporter

    @property
    def runlog(self) -> RunLog:
        """All events, as they were recorded."""
        return read_runlog(self.entries)

    @property
    def runs(self) -> list[RunView]:
        """The runs in order of start, open ones included."""
        return list(self.runlog.runs)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The finished spans, in the order of their ends."""
        return list(self._spans.finished)

    @property
    def logs(self) -> list[Any]:
        """The log records that were emitted."""
        return [data.log_record for data in self._log_exporter.get_finished_logs()]

    def open_spans(self) -> list[Span]:
        """The spans that were started and not ended."""
        return list(self._spans.open.values())

    def span_tree(self) -> Tree:
        """The finished spans as nested (name, children), siblings in order of start."""
        spans = sorted(self._spans.finished, key=_order)
        ids = {_id(span) for span in spans}
        children: dict[int | None, list[ReadableSpan]] = {}
        for span in spans:
            parent = span.parent.span_id if span.parent is not None and span.parent.span_id in ids else None
            children.setdefault(parent, []).append(span)

        def below(parent: int | None) -> Tree:
            return [(span.name, below(_id(span))) for span in children.get(parent, [])]

        return below(None)

    def metric(self, name: str, attributes: Mapping[str, Any] | None = None) -> Metric:
        """The points of metric `name` whose attributes include `attributes`, added up; sum 0 where there are none."""
        wanted = dict(attributes or {})
        points = [p for p in self._points(name) if wanted.items() <= dict(p.attributes or {}).items()]
        total = sum(p.sum if hasattr(p, "sum") else p.value for p in points)
        return Metric(float(total), sum(getattr(p, "count", 1) for p in points), points)

    def _points(self, name: str) -> Iterator[Any]:
        data: Any = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        yield from metric.data.data_points


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def _order(span: ReadableSpan) -> tuple[int, int]:
    """Start, then the sequence number of the span's first event: clocks may not tell two starts apart."""
    numbers = [(event.attributes or {}).get(semconv.EVENT_SEQ) for event in span.events]
    return span.start_time or 0, min((n for n in numbers if isinstance(n, int)), default=0)


@contextlib.contextmanager
def capture(
    *,
    clock: _clock.Clock | None = None,
    ids: _clock.Ids | None = None,
    sampler: Sampler | None = None,
    **settings: Any,
) -> Iterator[Captured]:
    """Record everything inside the block, content included, and raise loopspan's own faults (`strict`).

    `clock` and `ids` replace the machine's (`TickingClock()`, `CountingIds()`); `sampler` is the provider's; `settings`
    are those of `configure`. It is process-wide: threads that record meanwhile are captured too.
    """
    generator = ids if isinstance(ids, IdGenerator) else None
    provider = TracerProvider(
        sampler=sampler, resource=Resource({"service.name": "captured"}), id_generator=generator, shutdown_on_exit=False
    )
    spans = _Spans()
    provider.add_span_processor(spans)
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], Resource({}), shutdown_on_exit=False)
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK's
    logs = LoggerProvider(Resource({}), shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    captured = Captured(provider, spans, reader, exporter)
    chosen = {
        "tracer_provider": provider,
        "meter_provider": meters,
        "logger_provider": logs,
        "content": True,
        "strict": True,
        "log_sinks": (captured.entries.append,),
        **settings,
    }
    try:
        with _clock.installed(clock, ids), _config.change(**chosen):
            yield captured
    finally:
        meters.shutdown()
