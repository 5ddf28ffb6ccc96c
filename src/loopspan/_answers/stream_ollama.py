"""Streams of Ollama."""

from __future__ import annotations

from typing import Any, Final

from loopspan._answers.fields import either, items, joined, text
from loopspan._answers.whole import Said, message_text
from loopspan.usage import getter, peek


class Ollama:
    """The last chunk is done, and has the counts."""

    _ABOUT: Final = ("model", "done", "done_reason", "prompt_eval_count", "eval_count", "prompt_eval_cached_count")

    def __init__(self, content: bool) -> None:
        self._content = content
        self._said = Said()
        self._calls: list[Any] = []
        self._about: dict[str, Any] = {}

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether it says if it is done, and has a message or a text."""
        return type(peek(chunk, "done")) is bool and either(getter(chunk), "message", "response") is not None

    def feed(self, chunk: Any) -> None:
        """Take a chunk."""
        given = {name: peek(chunk, name) for name in self._ABOUT}
        self._about |= {name: value for name, value in given.items() if value is not None}
        message = peek(chunk, "message")
        self._calls += items(peek(message, "tool_calls")) or ()
        if self._content:
            self._said.content.append(text(peek(chunk, "response")))
            message_text(getter(chunk if message is None else message), self._said)

    def whole(self) -> Any:
        """An answer of chat."""
        said = {"content": joined(self._said.content), "thinking": joined(self._said.reasoning)}
        return {**self._about, "message": {**said, "tool_calls": self._calls}}
