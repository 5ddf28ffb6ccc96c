"""What the tests of this folder ask of spans and entries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Tracer, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loopspan import semconv
from loopspan._journal import Entry
from loopspan.testing.capturing import Captured


def ours(captured: Captured) -> list[ReadableSpan]:
    """The finished spans of loopspan, without those of users."""
    return [span for span in captured.spans if span.instrumentation_scope.name == semconv.SCOPE]


def word(span: ReadableSpan) -> str:
    """The first word of a span's name: which kind of span it is."""
    return span.name.split(" ")[0]


def of(spans: Iterable[ReadableSpan], kind: str) -> list[ReadableSpan]:
    """The spans of one kind, in order."""
    return [span for span in spans if word(span) == kind]


def described(span: ReadableSpan) -> dict[str, Any]:
    """All that a span says, without what users added to it."""
    tree = json.loads(span.to_json())
    tree["attributes"] = {key: value for key, value in tree["attributes"].items() if not key.startswith("user.")}
    tree["events"] = [event for event in tree["events"] if event["name"] != "user.event"]
    scope, parent = span.instrumentation_scope, span.parent
    tree["scope"] = (scope.name, scope.version, scope.schema_url)
    tree["flags"] = int(span.context.trace_flags)
    tree["parent"] = None if parent is None else (parent.trace_id, parent.span_id, parent.is_remote)
    tree["nanoseconds"] = (span.start_time, span.end_time)
    return tree


def by_id(spans: Iterable[ReadableSpan]) -> dict[int, dict[str, Any]]:
    """The spans' descriptions by span id; no id stands for two."""
    found = [(span.context.span_id, described(span)) for span in spans]
    assert len(found) == len(dict(found))
    return dict(found)


def by_run(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The entries by run id, in order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.run_id, []).append(entry)
    return found


def pipeline(**options: Any) -> tuple[TracerProvider, InMemorySpanExporter]:
    """A provider of the SDK with an exporter into memory; `options` are those of the provider."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "captured"}), shutdown_on_exit=False, **options)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def tracer_of(provider: TracerProvider) -> Tracer:
    """Our tracer of a provider."""
    return provider.get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL)
