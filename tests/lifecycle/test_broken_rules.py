"""The walks are worth something: break one rule, and they notice."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from lifecycle.called import Broken
from lifecycle.facts import CALLED, RUNNING, TWO, entered, fold, step
from lifecycle.legal import legal_run
from lifecycle.test_machine import Lifecycle
from lifecycle.test_tables import NEVER_REFUSED
from lifecycle.walk import broken, explained, sequence
from loopspan import events as e
from loopspan import lifecycle
from loopspan.lifecycle import RULES, Refusal, State, approvals, calls, runs
from loopspan.lifecycle.state import Rule
from samples import CLASSES

CHANGES_NOTHING = {"run_started", "reconcile_requested", "reconcile_unresolved"}
GUARDS = [
    (calls, "_may_start"),
    (calls, "_may_repeat"),
    (calls, "_may_affect"),
    (calls, "_may_execute"),
    (approvals, "_may_ask"),
    (runs, "_may_suspend"),
    (runs, "_waits_for"),
    (runs, "_may_close"),
    (runs, "_may_leave"),
    (runs, "_asked_for"),
]


@pytest.fixture(scope="module")
def sequences() -> list[list[e.Event]]:
    return [list(sequence(Random(seed))) for seed in range(1_500)]


@pytest.fixture(scope="module")
def legal_runs() -> list[list[e.Event]]:
    return [legal_run(Random(seed)) for seed in range(200)]


def noticed(sequences: list[list[e.Event]]) -> bool:
    return any(broken(events) is not None for events in sequences)


def accepted(events: list[e.Event]) -> bool:
    try:
        return fold(events).lifecycle == "closed"
    except AssertionError:
        return False


def careless(rule: Rule) -> Rule:
    """Accepts what it should refuse."""

    def accepting(state: State, event: Any) -> State | Refusal:
        result = rule(state, event)
        return state if isinstance(result, Refusal) else result

    return accepting


def forgetful(rule: Rule) -> Rule:
    """Accepts and refuses as it should, and does not change the state."""

    def forgetting(state: State, event: Any) -> State | Refusal:
        result = rule(state, event)
        return result if isinstance(result, Refusal) else state

    return forgetting


@pytest.mark.parametrize("cls", [cls for cls in RULES if cls.name not in NEVER_REFUSED])
def test_a_rule_that_accepts_everything_is_noticed(
    cls: type[e.Event], sequences: list[list[e.Event]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(RULES, cls, careless(RULES[cls]))
    assert noticed(sequences)


@pytest.mark.parametrize("cls", [cls for cls in RULES if cls.name not in CHANGES_NOTHING])
def test_a_rule_that_forgets_what_it_accepted_is_noticed(
    cls: type[e.Event],
    sequences: list[list[e.Event]],
    legal_runs: list[list[e.Event]],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(RULES, cls, forgetful(RULES[cls]))
    assert not all(map(accepted, legal_runs)) or noticed(sequences)


@pytest.mark.parametrize(("module", "guard"), GUARDS, ids=[name for _, name in GUARDS])
def test_a_guard_that_lets_everything_pass_is_noticed(
    module: Any, guard: str, sequences: list[list[e.Event]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, guard, lambda *_: None)
    assert noticed(sequences)


def test_a_suspended_run_that_records_everything_is_noticed(
    sequences: list[list[e.Event]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lifecycle, "WHILE_SUSPENDED", frozenset(CLASSES))
    assert noticed(sequences)


def test_nothing_is_noticed_when_no_rule_is_broken(sequences: list[list[e.Event]], legal_runs: list[list[e.Event]]):
    assert not noticed(sequences[:300])
    assert all(map(accepted, legal_runs))


@pytest.mark.parametrize("cls", [e.ToolStarted, e.RunTraceClosed, e.ApprovalDecisionReceived])
def test_the_machine_notices_too(cls: type[e.Event], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(RULES, cls, careless(RULES[cls]))
    quick = settings(
        max_examples=300,
        stateful_step_count=30,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    with pytest.raises(Broken):
        run_state_machine_as_test(Lifecycle, settings=quick)


def test_what_breaks_an_invariant_is_told_in_as_few_events_as_possible(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(RULES, e.ToolStarted, careless(RULES[e.ToolStarted]))
    first, *others = explained(7, [*RUNNING, step(1), *CALLED[1:], entered(TWO), step(2)]).splitlines()
    assert first == "sequence 7 breaks an invariant: tool_started of a call that was never opened"
    assert [line.split("(")[0].strip() for line in others] == ["RunStarted", "ToolStarted"]
