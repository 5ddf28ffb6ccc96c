"""Reading what a body returned or streamed as an `Answer`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopspan import _guard
from loopspan._scopes.options import RequestOptions
from loopspan.usage import Usage
from loopspan.values import Answer, Streamed

if TYPE_CHECKING:
    from loopspan._answers import Accumulator


class Reader:
    """Reads the answer of one attempt: by the user's hook, or by the shapes that are known."""

    __slots__ = ("_accumulator", "_chunks", "_content", "_options", "_provider")

    def __init__(self, options: RequestOptions, provider: str | None, content: bool) -> None:
        self._options = options
        self._provider = provider
        self._content = content
        self._accumulator: Accumulator | None = None
        self._chunks: list[Any] = []

    def chunk(self, item: Any) -> None:
        """One piece of a stream."""
        if self._options.read is not None:
            self._chunks.append(item)
            return
        if self._accumulator is None:
            from loopspan._answers import Accumulator

            self._accumulator = Accumulator(content=self._content)
        self._accumulator.feed(item)

    def partial(self, value: Any = None) -> Answer | None:
        """What a stream said before it broke, where it said what it used. `value` is as for `read`.

        What a snapshot says of the output is only a beginning.
        """
        answer = self.heard() or self._known(value)
        if answer is None or answer.usage is None:
            return None
        if self._accumulator is None and isinstance(answer.usage, Usage):
            return replace(answer, usage=replace(answer.usage, output_tokens=None))
        return answer

    def complete(self, value: Any) -> bool:
        """Whether what came of a stream up to here is a whole answer. `value` is as for `read`."""
        answer = self._known(value)
        return answer is not None and bool(answer.finish_reasons)

    def read(self, value: Any) -> Answer | None:
        """The answer; None where nobody can read it. A stream's value is what its generator returned, or a snapshot."""
        if self._options.read is not None:
            streamed = Streamed(tuple(self._chunks), value.value) if isinstance(value, Streamed) else value
            return hook("read", self._options.read, streamed)
        return self._known(value)

    def heard(self) -> Answer | None:
        """What the chunks say up to here."""
        return None if self._accumulator is None else self._accumulator.answer()

    def _known(self, value: Any) -> Answer | None:
        """By the shapes that are known: the chunks, and where these do not make an answer, the value."""
        heard = self.heard()
        if heard is not None and heard.finish_reasons:
            return heard
        from loopspan._answers import read

        told = read(value.value if isinstance(value, Streamed) else value, self._provider)
        return told if told is not None and (heard is None or told.finish_reasons) else heard

    def read_error(self, error: BaseException) -> Answer | None:
        """What an exception of `parse_errors` says was answered and billed."""
        reader = self._options.read_error
        return None if reader is None else hook("read_error", reader, error)


def hook(name: str, function: Any, value: Any) -> Answer | None:
    """What a reading hook says; anything but an Answer or None is a fault."""
    answer = _guard.contained(f"the {name}= hook", function, value)
    if answer is None or isinstance(answer, Answer):
        return answer
    problem = TypeError(f"{name}= returned {type(answer).__name__}: return a loopspan.Answer or None")
    _guard.fault(f"the {name}= hook", problem)
    return None
