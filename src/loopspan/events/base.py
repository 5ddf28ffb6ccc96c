"""How an event is made: frozen, slotted, keyword-only, registered under its name; and the fields that several share."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

Json = Any
"""A value that travels as JSON text."""

VOCABULARY: dict[str, type[Event]] = {}
"""Every event class by its name."""


class Event:
    """Base of all events: `name` in the RunLog, `version` of the fields."""

    __slots__ = ()
    name: ClassVar[str]
    version: ClassVar[int] = 1
    field_names: ClassVar[tuple[str, ...]]
    json_fields: ClassVar[frozenset[str]]
    _twin: ClassVar[type[Event]]


E = TypeVar("E", bound=type[Event])


@dataclass_transform(frozen_default=True, kw_only_default=True)
def event(cls: E) -> E:
    """Make `cls` a frozen, slotted, keyword-only dataclass and register it.

    Events are made at every boundary. A frozen dataclass sets each field through `object.__setattr__`, which costs
    three times as much as plain assignment: the fields are set on a mutable twin, which is then given its frozen class.
    """
    twin: Any = dataclass(slots=True, kw_only=True)(cls)
    made: Any = type(cls.__name__, (twin,), {**_FROZEN, "__doc__": cls.__doc__, "__module__": cls.__module__})
    made._twin = twin
    made.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
    made.field_names = tuple(field.name for field in fields(twin))
    made.json_fields = frozenset(field.name for field in fields(twin) if field.type == "Json")
    VOCABULARY[made.name] = made
    return cast("E", made)


def _new(cls: type[Event], **values: Any) -> Event:
    made: Event = cls._twin(**values)
    made.__class__ = cls
    return made


def _refuse(self: Event, field: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__}.{field}: events are frozen; make another one with dataclasses.replace")


def _rebuild(cls: Any, values: dict[str, Any]) -> Any:
    return cls(**values)


def _reduce(self: Event) -> tuple[Any, ...]:
    return _rebuild, (type(self), {name: getattr(self, name) for name in self.field_names})


_FROZEN = {
    "__slots__": (),
    "__new__": _new,
    "__init__": lambda self, **values: None,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduce,
}


@dataclass(slots=True, kw_only=True)
class Totals(Event):
    """Tokens and cost that were observed: None is unknown, never 0 in its place."""

    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    usage_incomplete: bool = False
    cost: Json = None
    unpriced: int = 0


@dataclass(slots=True, kw_only=True)
class InRequest(Event):
    """Happens in attempt number `attempt` of one model request."""

    step: int | None
    request_id: str
    attempt: int


@dataclass(slots=True, kw_only=True)
class InCall(Event):
    """Happens in one logical tool call: run, step, call id and the ordinal among equals name it."""

    step: int | None
    call_id: str
    ordinal: int
    tool: str
