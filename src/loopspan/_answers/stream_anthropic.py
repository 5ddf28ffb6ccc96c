"""Streams of Anthropic messages."""

from __future__ import annotations

from typing import Any, Final

from loopspan._answers.fields import joined, text
from loopspan._answers.pieces import Calls
from loopspan._answers.whole import Said
from loopspan.usage import count, peek

_INPUT: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_USAGE: Final = (*_INPUT, "output_tokens", "output_tokens_details", "iterations")


class Messages:
    """Counts are cumulative: later ones replace earlier ones. What the start says of output is only a beginning."""

    def __init__(self, content: bool) -> None:
        self._content = content
        self._calls = Calls()
        self._said = Said()
        self._usage: dict[str, Any] = {}
        self._message: Any = None
        self._stop: str | None = None

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether the event is one of a message."""
        return text(peek(chunk, "type")) in (
            "message_start",
            "content_block_start",
            "content_block_delta",
            "message_delta",
        )

    def feed(self, chunk: Any) -> None:
        """Take an event."""
        match text(peek(chunk, "type")):
            case "message_start":
                message = peek(chunk, "message")
                self._message = {"id": peek(message, "id"), "model": peek(message, "model")}
                self._count(peek(message, "usage"), _INPUT)
            case "content_block_start":
                self._block(count(peek(chunk, "index")), peek(chunk, "content_block"))
            case "content_block_delta":
                self._delta(count(peek(chunk, "index")), peek(chunk, "delta"))
            case "message_delta":
                self._stop = text(peek(peek(chunk, "delta"), "stop_reason")) or self._stop
                self._count(peek(chunk, "usage"), _USAGE)

    def _count(self, usage: Any, names: tuple[str, ...]) -> None:
        given = {name: peek(usage, name) for name in names}
        self._usage |= {name: value for name, value in given.items() if value is not None}

    def _block(self, index: int | None, block: Any) -> None:
        if text(peek(block, "type")) == "tool_use":
            self._calls.add(index, text(peek(block, "id")), text(peek(block, "name")), peek(block, "input"))
        elif self._content:
            self._say(block)

    def _delta(self, index: int | None, delta: Any) -> None:
        if text(peek(delta, "type")) == "input_json_delta":
            self._calls.add(index, None, None, peek(delta, "partial_json"))
        elif self._content:
            self._say(delta)

    def _say(self, piece: Any) -> None:
        self._said.content.append(text(peek(piece, "text")))
        self._said.reasoning.append(text(peek(piece, "thinking")))

    def whole(self) -> Any:
        """A message."""
        said = [
            {"type": "thinking", "thinking": joined(self._said.reasoning)},
            {"type": "text", "text": joined(self._said.content)},
        ]
        usage = self._usage or None
        return {
            **(self._message or {}),
            "content": said + self._calls.whole(),
            "stop_reason": self._stop,
            "usage": usage,
        }
