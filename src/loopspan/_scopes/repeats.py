"""Whether a request repeats a failed one: equal arguments, compared without reading through messages."""

from __future__ import annotations

from typing import Any

Shape = tuple[tuple[Any, int | None], ...]
"""A call's arguments, with the length that lists have."""


def shape(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Shape:
    """What a repeated request is recognised by."""
    return tuple((value, len(value) if isinstance(value, list) else None) for value in (*args, *kwargs.values()))


def same_arguments(one: Any, other: Any) -> bool:
    """Whether two calls got the same arguments: lists by identity and length, or by their last item; never digested."""
    if len(one) != len(other):
        return False
    return all(_same(a, b) for a, b in zip(one, other, strict=True))


def _same(one: Any, other: Any) -> bool:
    (former, length), (now, now_length) = one, other
    if length is None:
        return former is now or (isinstance(now, str | int | float | bool | None) and former == now)
    return length == now_length and (former is now or length == 0 or former[length - 1] is now[length - 1])
