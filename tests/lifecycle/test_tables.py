"""The tables are complete: every rule of the code is broken by a row, every guarded event is accepted by one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lifecycle import test_approval_rules, test_call_rules, test_close_rules, test_effect_rules, test_run_rules
from lifecycle.rows import Accepted, Refused
from loopspan import lifecycle
from loopspan.events import Event
from loopspan.lifecycle import RULES

TABLES = (test_run_rules, test_close_rules, test_call_rules, test_effect_rules, test_approval_rules)
ROWS = [row for table in TABLES for row in table.ROWS]
ACCEPTED = {type(row.event) for row in ROWS if isinstance(row, Accepted)}
REFUSED = {type(row.event) for row in ROWS if isinstance(row, Refused)}
NEVER_REFUSED = {"cancel_requested", "checkpoint_saved"}
"""Accepted in every run that is not closed."""


def rules() -> set[str]:
    """The names of the rules, as the source of the package has them."""
    folder = Path(lifecycle.__file__).parent
    calls = (node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    return {
        str(ast.literal_eval(node.args[0]))
        for node in calls
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refusal"
    }


def test_every_rule_is_broken_by_a_row():
    broken = {row.rule for row in ROWS if isinstance(row, Refused)} | {"not_started"}  # see test_transitions
    assert broken == rules()


@pytest.mark.parametrize("cls", RULES)
def test_every_guarded_event_is_accepted_and_refused_by_rows(cls: type[Event]):
    assert cls in ACCEPTED
    assert cls in REFUSED or cls.name in NEVER_REFUSED
