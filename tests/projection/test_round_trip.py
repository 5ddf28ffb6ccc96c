"""Properties of random runs: the RunLog, its spans, and the way back."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loopspan import semconv
from loopspan._journal import Entry
from loopspan.lifecycle import NEW, Refusal, State, advance
from loopspan.telemetry._reproject import reproject
from loopspan.testing.capturing import Captured
from projection.playing import playing
from projection.programs import PROGRAMS, Loop

PARENTS = {
    "invoke_agent": {None, "invoke_agent", "step", "attempt", "chat", "execute_tool"},
    "step": {"invoke_agent"},
    "chat": {"invoke_agent", "step", "attempt"},
    "execute_tool": {"step", "attempt"},
    "validate": {"execute_tool"},
    "approval": {"execute_tool"},
    "attempt": {"execute_tool"},
    "reconcile": {"execute_tool"},
    "backfill": {"step"},
    "approval_wait": {"invoke_agent"},
}
"""Which span hangs below which."""


def played(program: Loop, **settings: Any) -> Captured:
    """What is captured of `program`."""
    with playing(**settings) as (player, captured):
        player.play(program)
    return captured


def runs(entries: list[Entry]) -> dict[str, list[Entry]]:
    """The entries by run."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.run_id, []).append(entry)
    return found


def ours(captured: Captured) -> list[ReadableSpan]:
    """The spans of ours."""
    return [span for span in captured.spans if span.instrumentation_scope.name == semconv.SCOPE]


def described(span: ReadableSpan) -> dict[str, Any]:
    """All that a span says, without what users added to it."""
    tree = json.loads(span.to_json())
    tree["attributes"] = {key: value for key, value in tree["attributes"].items() if not key.startswith("user.")}
    tree["events"] = [event for event in tree["events"] if event["name"] != "user.event"]
    scope, parent = span.instrumentation_scope, span.parent
    tree["scope"] = (scope.name, scope.version, scope.schema_url)
    tree["flags"] = int(span.context.trace_flags)
    tree["parent"] = None if parent is None else (parent.trace_id, parent.span_id, parent.is_remote)
    tree["times"] = (span.start_time, span.end_time, [event.timestamp for event in span.events])
    return tree


def by_id(spans: Any) -> dict[int, dict[str, Any]]:
    """The spans' descriptions by span id."""
    found = {span.context.span_id: described(span) for span in spans}
    assert len(found) == len(spans), "one span, one id"
    return found


@given(PROGRAMS)
def test_projecting_a_run_log_again_gives_the_same_spans(program: Loop):
    captured = played(program)
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "captured"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL)
    for entries in runs(captured.entries).values():
        reproject(entries, tracer)
    assert by_id(exporter.get_finished_spans()) == by_id(ours(captured))
