"""Streams of OpenAI, and of those who follow its form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loopspan._answers.fields import either, items, joined, text
from loopspan._answers.pieces import Calls
from loopspan._answers.whole import Said, message_text
from loopspan.usage import count, getter, peek


@dataclass(slots=True)
class _Choice:
    """One choice of a chat completion under way."""

    said: Said = field(default_factory=Said)
    calls: Calls = field(default_factory=Calls)
    refusal: str | None = None
    reason: str | None = None

    def whole(self) -> dict[str, Any]:
        """The choice as it would have come whole."""
        calls = [
            {"id": row["id"], "function": {"name": row["name"], "arguments": row["input"]}}
            for row in self.calls.whole()
        ]
        message = {
            "content": joined(self.said.content),
            "reasoning_content": joined(self.said.reasoning),
            "refusal": self.refusal,
            "tool_calls": calls,
        }
        return {"message": message, "finish_reason": self.reason}


class Chat:
    """OpenAI chat completions and others of that form; also inside an SDK's own events (`chunk`, `data`)."""

    def __init__(self, content: bool) -> None:
        self._content = content
        self._choices: dict[int, _Choice] = {}
        self._about: dict[str, Any] = {}

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether there is a list of choices."""
        return items(peek(_unwrapped(chunk), "choices")) is not None

    def feed(self, chunk: Any) -> None:
        """Take a chunk."""
        chunk = _unwrapped(chunk)
        for name in ("id", "model", "usage"):
            self._note(name, peek(chunk, name))
        if peek(chunk, "usage") is None:
            self._note("usage", peek(peek(chunk, "x_groq"), "usage"))
        for choice in items(peek(chunk, "choices")) or ():
            self._note("usage", peek(choice, "usage"))
            self._take(choice, self._choices.setdefault(count(peek(choice, "index")) or 0, _Choice()))

    def _note(self, name: str, value: Any) -> None:
        if value is not None:
            self._about[name] = value

    def _take(self, choice: Any, state: _Choice) -> None:
        delta = either(getter(choice), "delta", "message")
        state.reason = text(peek(choice, "finish_reason")) or state.reason
        state.refusal = text(peek(delta, "refusal")) or state.refusal
        if self._content:
            message_text(getter(delta), state.said)
        for row in items(peek(delta, "tool_calls")) or ():
            body = either(getter(row), "function", "custom")
            index, arguments = count(peek(row, "index")), either(getter(body), "arguments", "input")
            state.calls.add(index, text(peek(row, "id")), text(peek(body, "name")), arguments)
        old = peek(delta, "function_call")
        if old is not None:
            state.calls.add(-1, None, text(peek(old, "name")), peek(old, "arguments"))

    def whole(self) -> Any:
        """A chat completion."""
        return {**self._about, "choices": [choice.whole() for _, choice in sorted(self._choices.items())]}


def _unwrapped(chunk: Any) -> Any:
    """The chunk inside an event of OpenAI's or Mistral's SDK."""
    return chunk if peek(chunk, "choices") is not None else either(getter(chunk), "chunk", "data")


class Responses:
    """OpenAI responses: the last event that carries the response has all of it."""

    def __init__(self, content: bool) -> None:
        self._response: Any = None

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether the event is one of a response."""
        return (text(peek(chunk, "type")) or "").startswith("response.")

    def feed(self, chunk: Any) -> None:
        """Take an event."""
        response = peek(chunk, "response")
        if response is not None:
            self._response = response

    def whole(self) -> Any:
        """The response."""
        return self._response
