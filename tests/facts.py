"""What spans say, in a form that is easy to compare."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import StatusCode

from loopspan.testing import Captured


def facts(captured: Captured, name: str, *keys: str) -> list[tuple[Any, ...]]:
    """(status, attributes under `keys`) of each span of this name, in the order of their starts."""
    spans = sorted((span for span in captured.spans if span.name == name), key=lambda span: span.start_time)
    return [(span.status.status_code, *(span.attributes.get(key) for key in keys)) for span in spans]


def failures(captured: Captured) -> int:
    """How many tool calls of a trace did not do what was asked: what a dashboard counts."""
    return sum(
        span.status.status_code is StatusCode.ERROR for span in captured.spans if span.name.startswith("execute_tool")
    )
