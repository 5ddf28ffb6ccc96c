"""Streams of Bedrock Converse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from loopspan._answers.fields import either, joined, text
from loopspan._answers.pieces import Calls
from loopspan._answers.whole import Said
from loopspan.usage import count, getter, peek


class Converse:
    """Each event is a mapping with one key; usage comes in the metadata at the end."""

    _EVENTS: Final = ("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop")

    def __init__(self, content: bool) -> None:
        self._content = content
        self._calls = Calls()
        self._said = Said()
        self._about: dict[str, Any] = {}

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether it is an event of this stream."""
        return isinstance(chunk, Mapping) and either(getter(chunk), *Converse._EVENTS) is not None

    def feed(self, chunk: Any) -> None:
        """Take an event."""
        start, delta = peek(chunk, "contentBlockStart"), peek(chunk, "contentBlockDelta")
        use = peek(peek(start, "start"), "toolUse")
        if use is not None and text(peek(use, "type")) != "server_tool_use":
            self._calls.add(_block_index(start), text(peek(use, "toolUseId")), text(peek(use, "name")), None)
        if delta is not None:
            self._delta(_block_index(delta), peek(delta, "delta"))
        stop = peek(peek(chunk, "messageStop"), "stopReason")
        if stop is not None:
            self._about["stopReason"] = stop
        metadata = peek(chunk, "metadata")
        if metadata is not None:
            self._about |= {"usage": peek(metadata, "usage"), "trace": peek(metadata, "trace")}

    def _delta(self, index: int | None, delta: Any) -> None:
        use = peek(delta, "toolUse")
        if use is not None:
            self._calls.add(index, None, None, peek(use, "input"))
        elif self._content:
            self._said.content.append(text(peek(delta, "text")))
            self._said.reasoning.append(text(peek(peek(delta, "reasoningContent"), "text")))

    def whole(self) -> Any:
        """An answer of Converse."""
        said = [
            {"reasoningContent": {"reasoningText": {"text": joined(self._said.reasoning)}}},
            {"text": joined(self._said.content)},
        ]
        uses = [
            {"toolUse": {"toolUseId": row["id"], "name": row["name"], "input": row["input"]}}
            for row in self._calls.whole()
        ]
        return {**self._about, "output": {"message": {"content": said + uses}}}


def _block_index(event: Any) -> int | None:
    return count(peek(event, "contentBlockIndex"))
