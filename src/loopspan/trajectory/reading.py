"""From a record to an entry, and from an entry to as much of its event as can be understood."""

from __future__ import annotations

import base64
import binascii
from dataclasses import MISSING, fields
from typing import Any

from loopspan import _journal, semconv
from loopspan._journal import Entry, Unknown
from loopspan.events import VOCABULARY, Event
from loopspan.trajectory.records import Record

_NEEDED: dict[type[Event], tuple[str, ...]] = {
    cls: tuple(
        field.name
        for field in fields(cls)  # type: ignore[arg-type]  # every event class is a dataclass
        if field.default is MISSING and not str(field.type).endswith("| None")
    )
    for cls in VOCABULARY.values()
}
"""The fields without which an event says nothing."""


def entry_of(run_id: str, record: Record) -> Entry:
    """The record as an entry; an event that cannot be read is `Unknown` there, with all that it carries."""
    seq, time, name, attributes, (trace_id, span_id, parent_id) = record
    if isinstance(attributes, Entry):
        return attributes
    return Entry(run_id, seq, time, _event(name, attributes), _id(trace_id), _id(span_id), _id(parent_id) or None)


def _event(name: str, attributes: Any) -> Event:
    try:
        return _journal.decode(name, attributes)
    except (ValueError, TypeError) as error:
        return Unknown(name, 0, attributes, f"{semconv.EVENT_VERSION}: {type(error).__name__}")


def _id(value: Any) -> int:
    """A trace or span id as a number; 0 where there is none."""
    if not value:
        return 0
    if isinstance(value, int):
        return value
    try:
        return int(value, 16) if len(value) in (16, 32) else int.from_bytes(base64.b64decode(value))
    except (ValueError, TypeError, binascii.Error):
        return 0


def hex_id(value: Any, digits: int) -> str:
    """A trace or span id as hexadecimal text, whatever form the source has."""
    return f"{_id(value):0{digits}x}"


def understood(entry: Entry) -> Event | None:
    """The event as far as it can be read: without the fields that were cut.

    None for an event of another version, and for one that lacks a field without which it says nothing.
    """
    event: Event | None = entry.event
    if type(event) is Unknown:
        event = _mended(event)
    return None if event is None or lacking(event) else event


def lacking(event: Event) -> list[str]:
    """The fields that the event cannot do without and does not have."""
    return [name for name in _NEEDED.get(type(event), ()) if getattr(event, name) is None]


def _mended(event: Unknown) -> Event | None:
    attributes = {**event.attributes, semconv.EVENT_VERSION: event.version}
    found: Event = event
    while type(found) is Unknown and found.problem is not None:
        if attributes.pop(found.problem.partition(":")[0], None) is None:
            return None
        found = _journal.decode(event.name, attributes)
    return None if type(found) is Unknown else found


def value(entry: Entry | None, field: str) -> Any:
    """A field of an entry's event, None where it is not there; an unknown event may have one of that name too."""
    event = None if entry is None else entry.event
    if isinstance(event, Unknown):
        return event.attributes.get(semconv.PREFIX + field)
    return getattr(event, field, None)


def problem(entry: Entry) -> str | None:
    """What is wrong with an entry, None where it can be read."""
    event = entry.event
    where = f"event {entry.seq} ({entry.name})"
    if isinstance(event, Unknown):
        if event.problem is None:
            return f"{where} is not known to this version of loopspan; it is kept as it is"
        return f"{where} cannot be read in full: {event.problem}, the value was cut or altered on its way"
    missing = lacking(event)
    return f"{where} lacks {', '.join(missing)}: a limit of attributes took it" if missing else None
