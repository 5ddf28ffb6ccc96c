"""The tables of the documentation that come from the code: `python docs/make_events.py` writes them anew.

`events.md` gets the vocabulary of the RunLog, `tokens-and-cost.md` the metrics. Each table stands between two comments;
all else in these pages is written by hand. `tests/test_docs.py` holds that they are up to date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from loopspan import semconv
from loopspan.events import VOCABULARY, Event, calls, effects, people, requests, runs
from loopspan.events.base import InCall, InRequest, Totals
from loopspan.lifecycle import RULES
from loopspan.telemetry import _attributes, _instruments

DOCS = Path(__file__).resolve().parent
ROOMS = {
    "The run and its steps": runs,
    "Model requests": requests,
    "Tool calls": calls,
    "People": people,
    "Unknown side effects": effects,
}
SHARED: dict[str, type[Event]] = {"call": InCall, "request": InRequest, "totals": Totals}
TYPES = {"str": "text", "int": "integer", "float": "number", "bool": "boolean", "Json": "JSON"}


def events() -> Iterator[str]:
    """The vocabulary: the fields that several events have, then a table for each room of `loopspan.events`."""
    yield from ("", "| short for | fields |", "|---|---|")
    for name, base in SHARED.items():
        yield row(f"*{name}*", ", ".join(map(worded, fields(base))))  # type: ignore[arg-type]  # a dataclass
    for title, room in ROOMS.items():
        yield from ("", f"## {title}", "", "| event | says | span | fields |", "|---|---|---|---|")
        for event in VOCABULARY.values():
            if event.__module__ == room.__name__:
                yield row(f"`{event.name}`{guarded(event)}", said(event), span(event), ", ".join(field_list(event)))


def guarded(event: type[Event]) -> str:
    """A mark for what the lifecycle may refuse."""
    return " *" if event in RULES else ""


def said(event: type[Event]) -> str:
    """The docstring on one line."""
    return " ".join((inspect.getdoc(event) or "").split())


def span(event: type[Event]) -> str:
    """What the event does to a span."""
    for table, verb in ((_attributes.OPENS, "starts"), (_attributes.INSTANT, "is")):
        if event in table:
            return f"{verb} `{table[event].name(Anything()).split()[0]}`"
    return f"ends `{ENDED[event]}`" if event in _attributes.ENDS else ""


class Anything:
    """Stands for an event of any kind: every field is the same text."""

    def __getattr__(self, field: str) -> str:
        return "anything"


ENDED = {
    runs.RunTraceClosed: semconv.INVOKE_AGENT,
    runs.StepClosed: semconv.STEP,
    requests.ModelResponded: semconv.CHAT,
    requests.ModelFailed: semconv.CHAT,
    calls.ToolSpanClosed: semconv.ATTEMPT,
    calls.ToolCallClosed: semconv.EXECUTE_TOOL,
    people.ApprovalSpanClosed: semconv.APPROVAL,
    effects.ReconcileSpanClosed: semconv.RECONCILE,
}
"""The word of the span that each of `_attributes.ENDS` ends."""


def field_list(event: type[Event]) -> Iterator[str]:
    """The fields with their types, those that several events have under one word."""
    inherited: set[str] = set()
    for name, base in SHARED.items():
        if issubclass(event, base):
            inherited.update(field.name for field in fields(base))  # type: ignore[arg-type]  # a dataclass
            yield f"*{name}*"
    for field in fields(event):  # type: ignore[arg-type]  # every event class is a dataclass
        if field.name not in inherited:
            yield worded(field)


def worded(field: Field[Any]) -> str:
    """The field with its type; one that may be left out has a question mark."""
    return f"`{field.name}`{'' if needed(field) else '?'} {kind(field)}"


def needed(field: Field[Any]) -> bool:
    """Whether the event is never without this field."""
    return field.default is MISSING and not str(field.type).endswith("| None")


def kind(field: Field[Any]) -> str:
    """The type in words."""
    return TYPES[str(field.type).removesuffix(" | None")]


def metrics() -> Iterator[str]:
    """The metrics, in the order of the names' origin."""
    yield from ("", "| metric | kind, unit | what it counts |", "|---|---|---|")
    for names in (_instruments.GENAI, _instruments.FORMER_NAMES, _instruments.OWN):
        for name, spec in names.items():
            instrument = "counter" if spec.boundaries is None else "histogram"
            version = " (`1.41`)" if names is _instruments.FORMER_NAMES else ""
            yield row(f"`{name}`{version}", f"{instrument}, {spec.unit}", spec.description)
    yield row(f"`{semconv.M_FAULTS}`", "counter, {fault}", "Contained faults of hooks and of loopspan's own telemetry.")
    yield ""


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


TABLES = {"events": (DOCS / "events.md", events), "metrics": (DOCS / "tokens-and-cost.md", metrics)}


def with_table(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with this table in it. Raises ValueError where it has no place for it."""
    begin, end = f"<!-- begin {name}: docs/make_events.py -->", f"<!-- end {name} -->"
    table = "\n".join([begin, *lines, end])
    made, places = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: table, page, flags=re.DOTALL)
    if places != 1:
        raise ValueError(f"the page has {places} places for the table {name!r}: it needs one {begin} … {end}")
    return made


def main() -> None:
    """Write every page anew."""
    for name, (page, lines) in TABLES.items():
        page.write_text(with_table(page.read_text("utf-8"), name, lines()), "utf-8")


if __name__ == "__main__":
    main()
