"""The envelope of an event, and its form as attributes: what goes into spans and logs, and comes back.

Encoding leaves out fields that have their default. Decoding converts by the field's type, since backends turn integers
and booleans into text; an event that is not known, or whose fields cannot be read, is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from loopspan import _redact, semconv
from loopspan.events import VOCABULARY, Event
from loopspan.events.base import compiled

Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as it stands in a run's log: sequence number, time, and the span that it is on.

    The fields of the event can be read from the entry itself.
    """

    run_id: str
    seq: int
    time: int
    event: Event
    trace_id: int = 0
    span_id: int = 0
    parent_id: int | None = None

    @property
    def name(self) -> str:
        """The event's name in the vocabulary."""
        return self.event.name

    def __getattr__(self, field: str) -> Any:
        if field.startswith("__"):
            raise AttributeError(field)
        return getattr(self.event, field)


class Unknown(Event):
    """An event that this version cannot read, with all that it carried: kept, shown and emitted again."""

    __slots__ = ("attributes", "name", "problem", "version")

    def __init__(self, name: str, version: int, attributes: Mapping[str, Any], problem: str | None = None) -> None:
        self.name = name  # type: ignore[misc]  # known events have it on the class
        self.version = version  # type: ignore[misc]
        self.attributes = dict(attributes)
        self.problem = problem

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unknown):
            return NotImplemented
        return (self.name, self.version, self.attributes) == (other.name, other.version, other.attributes)

    __hash__ = None  # type: ignore[assignment]  # holds a dict

    def __repr__(self) -> str:
        return f"Unknown({self.name!r}, version={self.version}, {self.attributes!r})"


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "str": str,
    "float": float,
    "bool": _boolean,
    "Json": _parsed,
}


class _Form:
    """How one event class is read; made at its first event."""

    __slots__ = ("fields", "required")

    def __init__(self, cls: type[Event]) -> None:
        declared = fields(cls)  # type: ignore[arg-type]  # every event class is a dataclass
        self.fields = {
            semconv.PREFIX + field.name: (field.name, _CONVERTERS[str(field.type).removesuffix(" | None")])
            for field in declared
        }
        self.required = tuple(field.name for field in declared if field.default is MISSING)


class _Forms(dict[type[Event], _Form]):
    def __missing__(self, cls: type[Event]) -> _Form:
        form = self[cls] = _Form(cls)
        return form


Encode = Callable[[Any, int], Attributes]


class _Encoders(dict[type[Event], Encode]):
    """A function for each event class, with two lines a field: events are encoded at every boundary."""

    def __missing__(self, cls: type[Event]) -> Encode:
        encoder = self[cls] = _encode_unknown if cls is Unknown else _written(cls)
        return encoder


def _written(cls: type[Event]) -> Encode:
    lines, names = ["out = {}"], {"to_json": _redact.to_json, "seq_key": semconv.EVENT_SEQ}
    for field in fields(cls):  # type: ignore[arg-type]  # see _Form
        default = None if field.default is MISSING else field.default
        names |= {f"key_{field.name}": semconv.PREFIX + field.name, f"default_{field.name}": default}
        given = "value is not None" if default is None else f"value != default_{field.name}"
        written = "to_json(value)" if field.type == "Json" else "value"
        lines += [f"value = event.{field.name}", f"if {given}: out[key_{field.name}] = {written}"]
    lines += ["out[seq_key] = seq", "out[version_key] = version", "return out"]
    names |= {"version_key": semconv.EVENT_VERSION, "version": cls.version}
    return compiled("encode(event, seq)", lines, names)


def _encode_unknown(event: Any, seq: int) -> Attributes:
    return {**event.attributes, semconv.EVENT_SEQ: seq, semconv.EVENT_VERSION: event.version}


_FORMS = _Forms()

ENCODERS = _Encoders()
"""`encode` of each event class, for those who call it at every boundary."""


def encode(event: Event, seq: int) -> Attributes:
    """The attributes of `event`: its own fields, then sequence number and version (limits evict the first keys)."""
    return ENCODERS[type(event)](event, seq)


def kept(event: Event) -> Event:
    """`event` with copies of its JSON values, as a reader gets them back: nobody changes them any more."""
    nested = {name: json.loads(_redact.to_json(getattr(event, name))) for name in type(event).json_fields}
    return replace(event, **nested) if nested else event  # type: ignore[type-var]  # every event class is a dataclass


_ENVELOPE = (semconv.EVENT_SEQ, semconv.EVENT_VERSION)
_UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What converting a value raises that is not of the field's type: text that was cut, infinity, JSON without an end."""


def decode(name: str, attributes: Mapping[str, Any]) -> Event:
    """The event that `attributes` describe; `Unknown` where the name, the version or a value is not understood."""
    cls = VOCABULARY.get(name)
    version = attributes.get(semconv.EVENT_VERSION, 1)
    try:
        version = int(version)
    except _UNREADABLE as error:
        return _unknown(name, version, attributes, f"{semconv.EVENT_VERSION}: {type(error).__name__}")
    if cls is None or version != cls.version:
        return _unknown(name, version, attributes)
    form = _FORMS[cls]
    values: dict[str, Any] = dict.fromkeys(form.required)
    key = ""
    try:
        for key, value in attributes.items():
            field = form.fields.get(key)
            if field is not None:
                values[field[0]] = field[1](value)
            elif key.startswith(semconv.PREFIX) and key not in _ENVELOPE:
                return _unknown(name, version, attributes)
    except _UNREADABLE as error:
        return _unknown(name, version, attributes, f"{key}: {type(error).__name__}")
    return cls(**values)


def _unknown(name: str, version: int, attributes: Mapping[str, Any], problem: str | None = None) -> Unknown:
    own = {key: value for key, value in attributes.items() if key not in _ENVELOPE}
    return Unknown(name, version, own, problem)
