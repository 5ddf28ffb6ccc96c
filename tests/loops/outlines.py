"""What a trace says, as an indented text that a test can hold as a literal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loopspan import semconv
from loopspan.testing import Captured

DETAILS = {
    semconv.INVOKE_AGENT: (semconv.STOP_REASON, semconv.STOP_DETAIL),
    semconv.STEP: (semconv.STEP_NUMBER,),
    semconv.CHAT: (semconv.USAGE_INPUT, semconv.USAGE_OUTPUT, semconv.FINISH_REASONS, semconv.REQUEST_OUTCOME),
    semconv.EXECUTE_TOOL: (semconv.TOOL_CALL_ID, semconv.TOOL_ID_SOURCE, semconv.TOOL_OUTCOME),
    semconv.ATTEMPT: (semconv.ATTEMPT_OUTCOME,),
}
"""What is told of each kind of span, by the first word of its name; outcomes only where they are not `ok`."""

UNSAID = (None, "ok", "given")


def outline(captured: Captured) -> str:
    """The spans of all traces as an indented text: siblings in order of start, but for calls, which may be at once."""
    children: dict[Any, list[Any]] = {}
    for span in captured.spans:
        children.setdefault(span.parent.span_id if span.parent else None, []).append(span)
    return "\n".join(_lines(children, None, ""))


def _lines(children: dict[Any, list[Any]], parent: Any, indent: str) -> Iterator[str]:
    for span in sorted(children.get(parent, []), key=_place):
        yield indent + " ".join([span.name, *_details(span)])
        yield from _lines(children, span.context.span_id, indent + "  ")


def _place(span: Any) -> tuple[Any, ...]:
    call_id = span.attributes.get(semconv.TOOL_CALL_ID, "")
    return (span.name.startswith(semconv.BACKFILL), call_id, span.start_time)


def _details(span: Any) -> Iterator[str]:
    kind = span.name.split(" ")[0]
    for name in DETAILS.get(kind, ()):
        value = _value(span.attributes, name)
        if value not in UNSAID:
            yield value


def _value(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    return ",".join(value) if isinstance(value, tuple) else None if value is None else str(value)


def durations(captured: Captured, name: str) -> list[float]:
    """Seconds of all spans of this name, in order of start."""
    found = sorted((span for span in captured.spans if span.name == name), key=lambda span: span.start_time)
    return [(span.end_time - span.start_time) / 1e9 for span in found]
