"""The parts of the OpenTelemetry SDK that `setup` wires together; imported when it is called."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from loopspan import _guard


def provider(service_name: str | None, endpoint: str | None, file: Path | None) -> TracerProvider:
    """A tracer provider that exports in batches, to the file or the endpoint."""
    resource = Resource.create({"service.name": service_name} if service_name else {})
    made = TracerProvider(resource=resource)
    exporter = FileSpanExporter(file) if file is not None else _otlp_exporter(endpoint)
    made.add_span_processor(BatchSpanProcessor(exporter))
    return made


def is_configured() -> bool:
    """Whether the process has a tracer provider of the SDK already."""
    return isinstance(trace.get_tracer_provider(), TracerProvider)


class FileSpanExporter(SpanExporter):
    """Appends to an OTLP-JSON file: one line an export, an ExportTraceServiceRequest in JSON."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """One line for these spans; a line is written whole or the export has failed."""
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

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
    from google.protobuf.json_format import MessageToDict

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


def _otlp_exporter(endpoint: str | None) -> SpanExporter:
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if endpoint is None and protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint.rstrip("/") + "/v1/traces" if endpoint else None)
