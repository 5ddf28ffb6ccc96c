"""A collector on the loopback device, for OTLP over HTTP and over gRPC: it decodes what it is sent."""

from __future__ import annotations

import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Exports:
    """What was received."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.metrics: set[str] = set()

    @property
    def spans(self) -> list[Any]:
        """All spans."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def names(self) -> list[str]:
        """The names of all spans."""
        return [span.name for span in self.spans]

    @property
    def resources(self) -> list[dict[str, str]]:
        """The attributes of all resources that are text."""
        return [
            {item.key: item.value.string_value for item in resource.resource.attributes}
            for request in self.requests
            for resource in request.resource_spans
        ]


class HttpCollector(ThreadingHTTPServer):
    """Answers every export with `status`; while it `hangs`, it answers nothing."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.answers = threading.Event()
        self.answers.set()
        self.exports = Exports()
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []

    @property
    def address(self) -> str:
        """The base address for exporters."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> HttpCollector:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: HttpCollector

    def do_POST(self) -> None:
        """Take one export."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.paths.append(self.path)
        self.server.headers.append({key.lower(): value for key, value in self.headers.items()})
        self.server.answers.wait(timeout=30)
        if self.server.status == 200:
            self._keep(body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _keep(self, body: bytes) -> None:
        if self.path.endswith("/metrics"):
            request = ExportMetricsServiceRequest.FromString(body)
            scopes = (scope for resource in request.resource_metrics for scope in resource.scope_metrics)
            self.server.exports.metrics.update(metric.name for scope in scopes for metric in scope.metrics)
        else:
            self.server.exports.requests.append(ExportTraceServiceRequest.FromString(body))

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


class GrpcCollector(TraceServiceServicer):  # type: ignore[misc]  # generated code
    """Takes traces over gRPC."""

    def __init__(self) -> None:
        self.exports = Exports()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # the name of the call in OTLP
        """Take one export."""
        self.exports.requests.append(request)
        return ExportTraceServiceResponse()

    def __enter__(self) -> GrpcCollector:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None)
