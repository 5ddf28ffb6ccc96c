"""How an event is made: frozen, slotted, keyword-only, registered under its name; and the fields that several share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
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
def shared(cls: E) -> E:
    """Make `cls` a slotted dataclass without methods, for fields that several events share."""
    made: Any = dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False, match_args=False)(cls)
    return cast("E", made)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def event(cls: E) -> E:
    """Make `cls` a frozen, slotted, keyword-only dataclass and register it.

    Events are made at every boundary. A frozen dataclass sets each field through `object.__setattr__`, which costs
    three times as much as plain assignment: the fields are set on a mutable twin, which is then given its frozen class.
    """
    twin: Any = shared(cls)
    made: Any = type(cls.__name__, (twin,), {**_FROZEN, "__doc__": cls.__doc__, "__module__": cls.__module__})
    made._twin = twin
    made.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
    made.field_names = tuple(field.name for field in fields(twin))
    made.json_fields = frozenset(field.name for field in fields(twin) if field.type == "Json")
    VOCABULARY[made.name] = made
    return cast("E", made)


def _first(cls: type[Event], /, **values: Any) -> Event:
    """The first event of its class: write the class's own `__new__`, which makes this one and all later ones."""
    made: Any = cls
    made.__new__ = _written(cls)
    return cls(**values)


def _written(cls: type[Event]) -> Callable[..., Event]:
    """`__new__` with one assignment a field, where a call with `**values` would cost several times as much."""
    declared = fields(cls)  # type: ignore[arg-type]  # every event class is a dataclass
    required = [f.name for f in declared if f.default is MISSING]
    optional = [f"{f.name}=default_{f.name}" for f in declared if f.default is not MISSING]
    return compiled(
        f"__new__(cls{', *, ' if declared else ''}{', '.join(required + optional)})",
        ["made = blank(twin)", *[f"made.{f.name} = {f.name}" for f in declared], "made.__class__ = cls", "return made"],
        {"blank": object.__new__, "twin": cls._twin, **{f"default_{f.name}": f.default for f in declared}},
    )


def compiled(head: str, body: list[str], names: dict[str, Any]) -> Callable[..., Any]:
    """The function `head` with these lines, written out for one class as dataclasses write out `__init__`.

    Compiled before it is executed: CPython forgets that a process ends by Ctrl-C when text is executed at its exit.
    """
    exec(compile("\n    ".join([f"def {head}:", *body]), __name__, "exec"), names)
    made: Callable[..., Any] = names[head.partition("(")[0]]
    return made


def _values(self: Event) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self.field_names}


def _equal(self: Event, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.field_names)


def _shown(self: Event) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in _values(self).items())})"


def _refuse(self: Event, field: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__}.{field}: events are frozen; make another one with dataclasses.replace")


def _rebuild(cls: Any, values: dict[str, Any]) -> Any:
    return cls(**values)


def _reduce(self: Event) -> tuple[Any, ...]:
    return _rebuild, (type(self), _values(self))


_FROZEN = {
    "__slots__": (),
    "__new__": _first,
    "__init__": object.__init__,
    "__eq__": _equal,
    "__hash__": None,
    "__repr__": _shown,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduce,
}


@shared
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


@shared
class InRequest(Event):
    """Happens in attempt number `attempt` of one model request."""

    step: int | None
    request_id: str
    attempt: int


@shared
class InCall(Event):
    """Happens in one logical tool call: run, step, call id and the ordinal among equals name it."""

    step: int | None
    call_id: str
    ordinal: int
    tool: str
