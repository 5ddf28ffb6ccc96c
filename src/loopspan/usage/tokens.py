"""Tokens of one answer, of many, and between two readings of a counter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from loopspan.usage.shapes import count, normalise


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, or a sum or difference of such; None is unknown, 0 is a reported 0.

    `input_tokens` includes `cache_read_tokens` and `cache_write_tokens`; `output_tokens` includes `reasoning_tokens`
    (lifecycle.md, *Tokens and cost*). `incomplete`: input or output, or a part of them, is unknown for something that
    is counted here.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    incomplete: bool = False

    @classmethod
    def parse(cls, source: Any, provider: str | None = None) -> Usage | None:
        """What a provider's usage object says, normalised; None where it has no field that is known. Never raises.

        `source` is a mapping, a pydantic model or any object with attributes: of OpenAI (chat completions, responses)
        and those who follow its form, Anthropic, Gemini, Bedrock Converse, Ollama (the whole answer), LangChain, or one
        with the names of this class. The field names decide. `provider` (a name of the GenAI conventions) only decides
        what they leave open: whether xAI's and Perplexity's reasoning is part of the output.

        A field that is None, a bool, text, negative, not whole, or 2**53 and more, is None; where it belongs to input
        or output the result is `incomplete`. Every other field stands.
        """
        try:
            if type(source) is cls:
                return _checked(source)
            found = [cls(*counts) for counts in normalise(source, provider)]
            return found[0] if len(found) == 1 else total(found) if found else None
        except Exception:  # noqa: BLE001  # whatever the object does, the answer's other fields stand
            return None

    @property
    def uncached_input_tokens(self) -> int | None:
        """Input that was neither read from nor written to a cache; unknown with the input, never negative."""
        if self.input_tokens is None:
            return None
        return max(0, self.input_tokens - (self.cache_read_tokens or 0) - (self.cache_write_tokens or 0))

    @property
    def total_tokens(self) -> int | None:
        """Input and output together, as far as they are known; None where neither is."""
        return _sum(self.input_tokens, self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        """The sum by fields: None and n are n, None and None are None.

        Incomplete where one of the two is, or where one counts something and does not know its input or its output.
        """
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cache_read_tokens, other.cache_read_tokens),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
            _partial(self) or _partial(other),
        )

    def minus(self, former: Usage) -> Usage:
        """What was added between two readings of cumulative counters: this one, and the `former` one.

        Input and output: a difference of 0 is 0. Cached and reasoning tokens: a difference that is not positive is None
        (rule of the seed). A counter that went back, or that this reading does not know, is None; for input and output
        the result is then `incomplete`. A counter without a former reading started at 0.
        """
        input_tokens = _difference(self.input_tokens, former.input_tokens)
        output_tokens = _difference(self.output_tokens, former.output_tokens)
        return Usage(
            input_tokens,
            output_tokens,
            _difference(self.cache_read_tokens, former.cache_read_tokens) or None,
            _difference(self.cache_write_tokens, former.cache_write_tokens) or None,
            _difference(self.reasoning_tokens, former.reasoning_tokens) or None,
            self.incomplete or input_tokens is None or output_tokens is None,
        )

    def over(self, former: Usage) -> Usage:
        """The base for the next `minus`: this reading, with `former` for the counters that this one does not know."""
        return Usage(
            _latest(self.input_tokens, former.input_tokens),
            _latest(self.output_tokens, former.output_tokens),
            _latest(self.cache_read_tokens, former.cache_read_tokens),
            _latest(self.cache_write_tokens, former.cache_write_tokens),
            _latest(self.reasoning_tokens, former.reasoning_tokens),
        )


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of all, by the rules of `+`; of none, a Usage that counts nothing."""
    return sum(usages, Usage())


def _partial(usage: Usage) -> bool:
    """Whether a sum with `usage` in it is incomplete. One that has no count at all is no observation."""
    if usage.incomplete or (usage.input_tokens is not None and usage.output_tokens is not None):
        return usage.incomplete
    return any(value is not None for value in _counts(usage))


def _counts(usage: Usage) -> tuple[int | None, ...]:
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


def _checked(usage: Usage) -> Usage:
    """`usage` itself where every field of it is a count or None, else with the others taken out."""
    if all(value is None or count(value) is value for value in _counts(usage)):
        return usage
    known = [count(value) for value in _counts(usage)]
    return Usage(known[0], known[1], known[2], known[3], known[4], None in known[:2] or bool(usage.incomplete))


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _difference(now: int | None, before: int | None) -> int | None:
    """`now - before`; None where `now` is unknown or lies below `before`."""
    return None if now is None or now < (before or 0) else now - (before or 0)


def _latest(now: int | None, before: int | None) -> int | None:
    return before if now is None else now
