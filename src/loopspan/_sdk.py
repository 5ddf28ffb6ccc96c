"""The parts of the OpenTelemetry SDK that `setup` wires together; imported when it is called."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

# Not at the first export: these execute text, and when that happens at exit CPython forgets that it was a Ctrl-C.
from google.protobuf.json_format import MessageToDict
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from loopspan import _guard


class Exports:
    """Counts the exports that failed: the SDK's own flush says that all is well whatever came of them."""

    def __init__(self) -> None:
        self._failed = 0

    def watch(self, exporter: Any) -> Any:
        """`exporter`, counted."""
        export = exporter.export

        def watched(*args: Any, **kwargs: Any) -> Any:
            delivered = False
            try:
                result = export(*args, **kwargs)
                delivered = result.name == "SUCCESS"
                return result
            finally:
                self._failed += not delivered

        exporter.export = watched
        return exporter

    def failures(self) -> int:
        """How many exports have failed since this was last asked."""
        failed, self._failed = self._failed, 0
        return failed


exports: WeakKeyDictionary[Any, Exports] = WeakKeyDictionary()
"""The exports of each provider that is made here."""


def provider(service_name: str | None, endpoint: str | None, file: str | Path | None) -> TracerProvider:
    """A tracer provider that exports in batches, to the file or the endpoint."""
    resource = Resource.create({"service.name": service_name} if service_name else {})
    made = TracerProvider(resource=resource)
    exporter = FileSpanExporter(Path(file)) if file is not None else _otlp_exporter(endpoint)
    exports[made] = Exports()
    made.add_span_processor(BatchSpanProcessor(exports[made].watch(exporter)))
    return made


def meter_provider(resource: Resource, endpoint: str | None) -> Any:
    """A meter provider that exports to the endpoint; None where OTEL_METRICS_EXPORTER says none."""
    if os.environ.get("OTEL_METRICS_EXPORTER", "").strip().lower() == "none":
        return None
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    counted = Exports()
    made = MeterProvider([PeriodicExportingMetricReader(counted.watch(_otlp_metric_exporter(endpoint)))], resource)
    exports[made] = counted
    return made


def set_globally(tracers: TracerProvider, meters: Any) -> None:
    """Make these the process's providers, where it has none of the SDK's yet."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(tracers)
    if meters is not None and not isinstance(metrics.get_meter_provider(), type(meters)):
        metrics.set_meter_provider(meters)


class FileSpanExporter(SpanExporter):
    """Appends to an OTLP-JSON file: one line an export, an ExportTraceServiceRequest in JSON."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """One line for these spans; a line is written whole or the export has failed."""
        line = otlp_json(encode_spans(spans)) + "\n"
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            _guard.log.error("loopspan: %d spans were not written to %s: %s", len(spans), self._path, error)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def otlp_json(request: Any) -> str:
    """An OTLP request as JSON text; ids are hexadecimal there, not base64 as elsewhere in protobuf's JSON."""
    tree = MessageToDict(request, use_integers_for_enums=True)
    originals = [span for rs in request.resource_spans for ss in rs.scope_spans for span in ss.spans]
    copies = [span for rs in tree.get("resourceSpans", ()) for ss in rs["scopeSpans"] for span in ss["spans"]]
    for original, copy in zip(originals, copies, strict=True):
        _hexadecimal(original, copy)
        for link, link_copy in zip(original.links, copy.get("links", ()), strict=True):
            _hexadecimal(link, link_copy)
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _hexadecimal(original: Any, copy: dict[str, Any]) -> None:
    copy["traceId"], copy["spanId"] = original.trace_id.hex(), original.span_id.hex()
    if copy.get("parentSpanId"):
        copy["parentSpanId"] = original.parent_span_id.hex()


def _over_grpc(signal: str, endpoint: str | None) -> bool:
    """Whether the variables ask for gRPC; an endpoint that was given is an HTTP one."""
    chosen = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return endpoint is None and chosen == "grpc"


def _otlp_exporter(endpoint: str | None) -> SpanExporter:
    if _over_grpc("TRACES", endpoint):
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint.rstrip("/") + "/v1/traces" if endpoint else None)


def _otlp_metric_exporter(endpoint: str | None) -> Any:
    if _over_grpc("METRICS", endpoint):
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter(endpoint.rstrip("/") + "/v1/metrics" if endpoint else None)
