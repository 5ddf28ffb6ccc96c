"""Reading single values out of answers that may hold anything."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from loopspan.usage import Get, peek


def text(value: Any) -> str | None:
    """`value` as plain text, or the name of an enum that is no text; None for anything else and for empty text."""
    kind = type(value)
    if kind is str:
        return value or None
    if issubclass(kind, str):
        return str.__str__(value) or None
    return text(value.name) if issubclass(kind, Enum) else None


def items(value: Any) -> Sequence[Any] | None:
    """`value` as a list; None where it is none."""
    if type(value) is list:
        return value
    try:
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) else None
    except Exception:  # noqa: BLE001  # an answer's own code: a list that raises counts as absent
        return None


def either(get: Get, *names: str) -> Any:
    """The first of several fields that has a value."""
    for name in names:
        value = get(name)
        if value is not None:
            return value
    return None


def joined(pieces: Sequence[str | None]) -> str | None:
    """The pieces as one text; None where there is nothing."""
    if len(pieces) == 1:
        return pieces[0] or None
    return "".join([piece for piece in pieces if piece]) or None


def texts(parts: Any, kind: str) -> list[str | None]:
    """The `text` of those parts whose `type` is `kind`."""
    return [text(peek(part, "text")) for part in items(parts) or () if text(peek(part, "type")) == kind]
