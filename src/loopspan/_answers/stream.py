"""Answers that came in pieces: every form is put together and then read like one that came whole.

No piece is kept. What grows with the stream is the arguments of the calls and, where it is asked for, the text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Protocol

from loopspan._answers.stream_anthropic import Messages
from loopspan._answers.stream_bedrock import Converse
from loopspan._answers.stream_gemini import Gemini
from loopspan._answers.stream_ollama import Ollama
from loopspan._answers.stream_openai import Chat, Responses
from loopspan._answers.whole import read
from loopspan.usage import peek
from loopspan.values import Answer


class Accumulator:
    """Takes the chunks of one streamed answer, in any form that `read` knows, and says what they add up to.

    `content` keeps the text and the reasoning of the answer, too. Usage is what the last chunk with usage says
    (Anthropic: the start of the message, with what later events say in its place); a stream without any has none.
    """

    __slots__ = ("_content", "_form", "_last", "_provider")

    def __init__(self, provider: str | None = None, *, content: bool = False) -> None:
        self._provider = provider
        self._content = content
        self._form: _Form | None = None
        self._last: Answer | None = None

    def feed(self, chunk: Any) -> None:
        """Take one more chunk. Never raises; a chunk that is not understood changes nothing."""
        try:
            if self._form is None:
                self._begin(chunk)
            if self._form is not None:
                self._form.feed(chunk)
        except Exception:  # noqa: BLE001  # whatever an object does, the rest of the stream stands
            return

    def _begin(self, chunk: Any) -> None:
        form = next((form for form in _FORMS if form.begins(chunk)), None)
        if form is not None:
            self._form = form(self._content)
            return
        whole = read(chunk, self._provider)
        if whole is not None and (whole.tool_calls is not None or peek(chunk, "usage") is not None):
            self._last = whole

    def answer(self) -> Answer | None:
        """What the stream says up to here; None where its form is not known.

        Where neither a call nor a finish reason has come, nobody knows whether it would have asked for tools.
        """
        answer = self._last if self._form is None else read(self._form.whole(), self._provider)
        if answer is None:
            return None
        if not answer.tool_calls and not answer.finish_reasons:
            answer = replace(answer, tool_calls=None)
        return answer if self._content else replace(answer, content=None, reasoning=None)


class _Form(Protocol):
    """One form of stream."""

    def __init__(self, content: bool) -> None: ...

    @staticmethod
    def begins(chunk: Any) -> bool:
        """Whether a chunk is of this form."""

    def feed(self, chunk: Any) -> None:
        """Take a chunk."""

    def whole(self) -> Any:
        """The answer in the form that it has when it comes whole."""


_FORMS: Final[tuple[type[_Form], ...]] = (Chat, Responses, Messages, Converse, Gemini, Ollama)
