"""Spans of other instrumentations around our code: whose operation it is (*Beside other instrumentations*)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import get_current_span

from loopspan import semconv
from loopspan._scopes.context import Scope

NOTHING: Mapping[str, Any] = {}


def around(scope: Scope, operation: str) -> Mapping[str, Any]:
    """The attributes of the current span, where it is another instrumentation's and reports `operation`; else none."""
    span = get_current_span()
    if span is scope.handle.span:
        return NOTHING
    said = getattr(span, "attributes", None)
    if not isinstance(said, Mapping) or said.get(semconv.OPERATION) != operation or semconv.RUN_ID in said:
        return NOTHING
    return said


def call_id(said: Mapping[str, Any], tool: str) -> str | None:
    """The call id that a span of `execute_tool` tells, where it is about this tool."""
    found = said.get(semconv.TOOL_CALL_ID)
    return found if isinstance(found, str) and said.get(semconv.TOOL_NAME, tool) == tool else None
