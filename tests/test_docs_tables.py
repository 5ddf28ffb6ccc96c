"""The tables of the documentation say what the code does."""

from __future__ import annotations

import importlib.util
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import documentation as docs
import loopspan
from documentation import DOCS, REPOSITORY
from loopspan import LoopspanError, StopReason, errors
from loopspan import events as e
from loopspan.telemetry import _attributes

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))


def program(path: Path) -> ModuleType:
    """A program of the documentation as a module; nothing is written."""
    spec = importlib.util.spec_from_file_location(f"documentation_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = program(DOCS / "make_events.py")


@pytest.mark.parametrize("name", TABLES.TABLES)
def test_tables_that_are_made_from_the_code_are_up_to_date(name):
    """`python docs/make_events.py` writes them anew."""
    page, lines = TABLES.TABLES[name]
    assert TABLES.with_table(docs.text(page), name, lines()) == docs.text(page)


def test_every_event_is_in_one_table():
    named = re.findall(r"^\| `(\w+)`(?: \*)? \|", docs.text(DOCS / "events.md"), re.MULTILINE)
    assert sorted(named) == sorted(e.VOCABULARY)


CALL = {"step": 1, "call_id": "c", "ordinal": 1, "tool": "t"}
REQUEST = {"step": 1, "request_id": "r", "attempt": 1}


def chat(outcome: str) -> e.Event:
    """The event that ends a request's attempt with this outcome."""
    return e.ModelResponded(**REQUEST) if outcome == "ok" else e.ModelFailed(**REQUEST, outcome=outcome)


def validated(outcome: str) -> e.Event:
    """The event that is a check with this outcome."""
    if outcome == "passed":
        return e.ValidationPassed(**CALL, started=1)
    return e.ValidationRejected(**CALL, started=1, rejection="validation_error")


def waited(outcome: str) -> e.Event:
    """The event that is a wait with this outcome."""
    if outcome == "pending":
        return e.HumanWait(step=1, kind="approval", started=1)
    if outcome == "expired":
        return e.ApprovalExpired(**CALL, started=1, approval_id="a")
    return e.ApprovalDecisionReceived(**CALL, started=1, approval_id="a", approved=outcome == "approved")


def backfilled(outcome: str) -> e.Event:
    """The event that is a backfill with this outcome."""
    return {"backfilled": e.ToolResultBackfilled, "missing": e.BackfillMissing}[outcome](**CALL, started=1)


EVENTS = {
    "invoke_agent": lambda outcome: e.RunTraceClosed(stop_reason=outcome),
    "step": lambda outcome: e.StepClosed(step=1, outcome=outcome),
    "chat": chat,
    "execute_tool": lambda outcome: e.ToolCallClosed(**CALL, outcome=outcome, attempts=1),
    "attempt": lambda outcome: e.ToolSpanClosed(**CALL, attempt=1, outcome=outcome),
    "validate": validated,
    "approval": lambda outcome: e.ApprovalSpanClosed(**CALL, approval_id="a", outcome=outcome),
    "approval_wait": waited,
    "backfill": backfilled,
    "reconcile": lambda outcome: e.ReconcileSpanClosed(**CALL, attempt=1, outcome=outcome),
    "manual_intervention": lambda outcome: e.ManualDecisionReceived(
        **CALL, attempt=1, outcome=outcome, started=1, actor="a"
    ),
}
"""For each span, the event that ends it with an outcome."""

STATUS = [
    tuple(cell.strip("`") for cell in row)
    for row in docs.rows(docs.text(DOCS / "span-status.md").partition("\n## ")[0])
]


@pytest.mark.parametrize(("span", "outcome", "status"), STATUS)
def test_the_status_of_a_span_is_the_documented_one(span, outcome, status):
    event = EVENTS[span](outcome)
    if type(event) in _attributes.INSTANT:
        attributes = _attributes.INSTANT[type(event)].attributes(event)
        assert outcome in attributes.values()
        failed = "error.type" in attributes
    else:
        failed = _attributes.failed(event)
    assert status == ("ERROR" if failed else "UNSET")


def test_the_status_table_has_every_outcome_that_the_code_tells_apart():
    outcomes = {outcome for span, outcome, _ in STATUS if span != "invoke_agent"}
    reasons = [outcome for span, outcome, _ in STATUS if span == "invoke_agent"]
    unset = {outcome for span, outcome, status in STATUS if span == "invoke_agent" and status == "UNSET"}
    assert outcomes >= _attributes.FAILED
    assert sorted(reasons) == sorted(StopReason)
    assert unset == _attributes.NOT_FAILED_RUNS
    assert {span for span, _, _ in STATUS} == set(EVENTS)


def first_cells(page: Path, title: str) -> list[str]:
    """What the first column of the table under a heading names."""
    return [name for row in docs.rows(docs.section(page, title)) for name in re.findall(r"`(\w+)`", row[0])]


def test_the_table_of_stop_reasons_is_complete():
    assert sorted(first_cells(DOCS / "how-a-run-ends.md", "Stop reasons")) == sorted(StopReason)


def test_the_exceptions_that_end_a_run_are_those_with_a_stop_reason():
    with_reason = {
        name
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, LoopspanError) and cls.stop_reason is not None
    }
    table = docs.rows(docs.section(DOCS / "how-a-run-ends.md", "From the loop to the reason"))
    (named,) = [row[0] for row in table if "`UnknownTool`" in row[0]]
    assert set(re.findall(r"`(\w+)`", named)) == with_reason


def test_the_table_of_settings_is_that_of_configure():
    assert first_cells(DOCS / "index.md", "Settings") == list(inspect.signature(loopspan.configure).parameters)


def test_the_map_of_the_house_has_every_room_in_order():
    (contract,) = [one for one in PROJECT["tool"]["importlinter"]["contracts"] if one["id"] == "house"]
    rooms = [room for layer in contract["layers"] for room in re.split(r"\s*[|:]\s*", layer)]
    assert first_cells(REPOSITORY / "CONTRIBUTING.md", "The house") == rooms


def test_every_dependency_has_its_reason():
    required = {re.match(r"[\w-]+", one).group() for one in PROJECT["project"]["dependencies"]}
    section = docs.section(REPOSITORY / "CONTRIBUTING.md", "Dependencies")
    named = {name for row in docs.rows(section) for name in re.findall(r"`([\w-]+)`", row[0])}
    assert named == required
    assert [extra for extra in PROJECT["project"]["optional-dependencies"] if f"`[{extra}]`" not in section] == []


def test_the_picture_of_the_readme_is_what_the_demo_shows(tmp_path):
    """But for figures and ids; `python docs/images/make.py` draws it anew."""
    drawn = tmp_path / "trace.svg"
    program(DOCS / "images" / "make.py").make(drawn)
    assert words(drawn) == words(DOCS / "images" / "trace.svg")


def words(picture: Path) -> list[str]:
    """The words of a picture that have no digit."""
    text = " ".join(
        element.text or "" for element in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")
    )
    return [word for word in text.split() if not re.search(r"\d", word) and word not in ("s", "ms", "us")]
