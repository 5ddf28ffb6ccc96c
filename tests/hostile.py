"""What no program expects to be given: objects that raise, and any JSON under names that mean something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
FIELDS = sorted(
    {
        *COUNTS,
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "input_tokens_details",
        "output_tokens_details",
        "cached_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "iterations",
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "totalTokenCount",
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "eval_count",
        "type",
    }
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("compaction")
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner),
    max_leaves=20,
)


class Raising:
    """An object every field of which raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class OneRaises:
    """A usage object one property of which raises."""

    input_tokens = 5

    @property
    def output_tokens(self) -> int:
        """Not to be had."""
        raise ValueError


class RaisingMapping(Mapping[str, Any]):
    """A mapping that raises."""

    def __getitem__(self, key: str) -> Any:
        raise OSError(key)

    def __iter__(self) -> Any:
        raise OSError

    def __len__(self) -> int:
        raise OSError


class NoClass:
    """An object that hides its class."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise ZeroDivisionError


class RaisingDict(dict[str, Any]):
    """A dict whose methods raise."""

    def get(self, *_: Any) -> Any:
        """Not to be had."""
        raise OSError

    def __getitem__(self, key: str) -> Any:
        raise OSError(key)


class SameAs:
    """A key that has the hash of a text and raises when it is compared with it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        raise ArithmeticError


HOSTILE = [Raising, RaisingMapping, RaisingDict, NoClass]
