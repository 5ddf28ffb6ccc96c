"""One event of every class, with values of the right types."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from loopspan.events import VOCABULARY, Event

VALUES: dict[str, Any] = {"int": 1, "str": "text", "float": 0.5, "bool": True, "Json": {"a": [1, None, "é"]}}
CLASSES = tuple(VOCABULARY.values())


def of_type(declared: Any) -> Any:
    """A value for a field that is declared so."""
    return VALUES[str(declared).removesuffix(" | None")]


def least(cls: type[Event]) -> Event:
    """The event with its mandatory fields only."""
    mandatory = {f.name: of_type(f.type) for f in fields(cls) if f.default is MISSING}  # type: ignore[arg-type]
    return cls(**mandatory)


def full(cls: type[Event]) -> Event:
    """The event with a value in every field."""
    return cls(**{field.name: of_type(field.type) for field in fields(cls)})  # type: ignore[arg-type]
