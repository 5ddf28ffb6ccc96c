"""lifecycle.md, *States*: nothing leads from one to another but the rows of the table."""

from __future__ import annotations

import pytest

from lifecycle.facts import (
    CALLED,
    DONE,
    IN_FLIGHT,
    MANUAL,
    ON_APPROVAL,
    ON_MANUAL,
    ON_UNKNOWN,
    RUNNING,
    UNKNOWN,
    WAITING,
    cancel,
    closed,
    decided,
    expired,
    fold,
    person_needed,
    person_said,
    rechecked,
    refusal,
    resolved,
    resumed,
    run,
    suspended,
)
from loopspan.events import Event
from loopspan.lifecycle import NEW, WHILE_SUSPENDED, Lifecycle, State, StopReason, SuspendReason, advance
from samples import CLASSES, least

NOBODY_LEFT = (*ON_APPROVAL, cancel())
EXPIRED = (*ON_APPROVAL, expired())


STATES = {
    "running": RUNNING,
    "running with a call": CALLED,
    "running, waiting": WAITING,
    "running, an attempt in flight": IN_FLIGHT,
    "running, unknown": UNKNOWN,
    "running, a person needed": MANUAL,
    "on approval": ON_APPROVAL,
    "on approval, cancel requested": NOBODY_LEFT,
    "on approval, expired": EXPIRED,
    "on approval, decided and rechecked": (*ON_APPROVAL, decided(), rechecked()),
    "on unknown": ON_UNKNOWN,
    "on unknown, a person needed": (*ON_UNKNOWN, person_needed()),
    "on unknown, resolved": (*ON_UNKNOWN, resolved()),
    "on manual": ON_MANUAL,
    "on manual, decided": (*ON_MANUAL, person_said()),
    "closed": DONE,
}


ANY = {f"closed({reason})" for reason in StopReason}
GIVEN_UP = {"closed(unresolved_side_effect)"}


LEADS_TO = {
    "running": ANY,
    "running with a call": ANY,
    "running, waiting": {"suspended(pending_approval)"},
    "running, an attempt in flight": set(),
    "running, unknown": {"suspended(unknown_side_effect)", *GIVEN_UP},
    "running, a person needed": {"suspended(manual_intervention)", *GIVEN_UP},
    "on approval": set(),
    "on approval, cancel requested": {"closed(cancelled)"},
    "on approval, expired": {"running", "closed(approval_expired)"},
    "on approval, decided and rechecked": {"running"},
    "on unknown": GIVEN_UP,
    "on unknown, a person needed": {"suspended(manual_intervention)", *GIVEN_UP},
    "on unknown, resolved": {"running"},
    "on manual": GIVEN_UP,
    "on manual, decided": {"running"},
    "closed": set(),
}


TRANSITIONS: dict[str, Event] = {
    "started": run(),
    "running": resumed(),
    **{f"suspended({reason})": suspended(reason) for reason in SuspendReason},
    **{f"closed({reason})": closed(reason, actor="alice") for reason in StopReason},
}


@pytest.mark.parametrize("name", STATES)
def test_nothing_else_leads_from_one_state_to_another(name: str):
    state = fold(STATES[name])
    made = {to for to, event in TRANSITIONS.items() if isinstance(advance(state, event), State)}
    assert made == LEADS_TO[name]


MEANWHILE = set(
    "approval_decision_received approval_recheck approval_span_closed approval_expired approval_superseded "
    "tool_failed tool_span_closed tool_call_closed step_closed reconcile_requested reconcile_resolved "
    "reconcile_unresolved reconcile_span_closed manual_intervention manual_decision_received checkpoint_saved "
    "run_suspended run_resumed run_trace_closed cancel_requested owner_changed transition_refused".split()
)
"""What a suspended run may record: decisions, reconciling, its end, and the ends of the spans that were cut."""


@pytest.mark.parametrize("cls", CLASSES)
def test_a_suspended_run_records_only_what_ends_the_suspension_or_what_it_cut(cls: type[Event]):
    result = advance(fold(ON_UNKNOWN), least(cls))
    refused_as_suspended = not isinstance(result, State) and result.message.endswith("resume it first")
    assert refused_as_suspended == (cls.name not in MEANWHILE)
    assert {known.name for known in WHILE_SUSPENDED} == MEANWHILE


@pytest.mark.parametrize("cls", CLASSES)
def test_nothing_is_written_to_a_closed_run(cls: type[Event]):
    found = refusal(fold(DONE), least(cls))
    assert (found.rule, found.message.count("success")) == ("closed", 1)


@pytest.mark.parametrize("cls", CLASSES)
def test_nothing_but_run_started_begins_a_run(cls: type[Event]):
    if cls.name == "run_started":
        assert fold([least(cls)]).lifecycle is Lifecycle.RUNNING
    else:
        assert "run_started" in refusal(NEW, least(cls)).message


@pytest.mark.parametrize("before", [RUNNING, ON_APPROVAL], ids=["running", "suspended"])
def test_a_refusal_is_recorded_without_changing_the_state(before: tuple[Event, ...]):
    state = fold(before)
    recorded = next(cls for cls in CLASSES if cls.name == "transition_refused")
    assert fold([least(recorded)], state) == state
