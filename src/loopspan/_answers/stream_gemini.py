"""Streams of Gemini."""

from __future__ import annotations

from typing import Any, Final

from loopspan._answers.fields import either, items
from loopspan._answers.whole import block_reason
from loopspan.usage import count, getter, peek


class Gemini:
    """Every chunk looks like an answer; its usage counts from the start of the stream."""

    def __init__(self, content: bool) -> None:
        self._content = content
        self._parts: list[Any] = []
        self._reasons: dict[int, Any] = {}
        self._about: dict[str, Any] = {}

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether it has candidates, or says why there are none."""
        return items(peek(chunk, "candidates")) is not None or block_reason(getter(chunk)) is not None

    def feed(self, chunk: Any) -> None:
        """Take a chunk."""
        for snake, camel in _GEMINI_ABOUT:
            value = either(getter(chunk), snake, camel)
            if value is not None:
                self._about[snake] = value
        for candidate in items(peek(chunk, "candidates")) or ():
            reason = either(getter(candidate), "finish_reason", "finishReason")
            if reason is not None:
                self._reasons[count(peek(candidate, "index")) or 0] = reason
            parts = items(peek(peek(candidate, "content"), "parts")) or ()
            self._parts += [part for part in parts if _is_call(part) or (self._content and peek(part, "text"))]

    def whole(self) -> Any:
        """An answer of generate_content; all parts in one candidate."""
        reasons = [{"finish_reason": reason} for _, reason in sorted(self._reasons.items())]
        return {**self._about, "candidates": [{"content": {"parts": self._parts}}, *reasons]}


_GEMINI_ABOUT: Final = (
    ("usage_metadata", "usageMetadata"),
    ("model_version", "modelVersion"),
    ("response_id", "responseId"),
    ("prompt_feedback", "promptFeedback"),
)


def _is_call(part: Any) -> bool:
    return either(getter(part), "function_call", "functionCall") is not None
