"""lifecycle.md, *States* and *Run transitions*, every row; and that nothing else leads from one state to another."""

from __future__ import annotations

import pytest

from lifecycle.facts import (
    ASKED,
    CALLED,
    CHILD_WAITS,
    DONE,
    IN_FLIGHT,
    KEYED,
    MANUAL,
    ON_APPROVAL,
    ON_MANUAL,
    ON_UNKNOWN,
    RUNNING,
    SUB_AGENT,
    TWO,
    UNKNOWN,
    WAITING,
    asked,
    call_closed,
    cancel,
    checkpoint,
    closed,
    decided,
    entered,
    expired,
    failed,
    fold,
    given_up,
    opened,
    owner,
    person_needed,
    person_said,
    rechecked,
    refusal,
    resolved,
    resumed,
    run,
    step,
    suspended,
    unknown,
)
from lifecycle.rows import Accepted, Refused, table
from loopspan.events import Event
from loopspan.lifecycle import NEW, WHILE_SUSPENDED, Lifecycle, State, StopReason, SuspendReason, advance
from loopspan.lifecycle.state import key
from samples import CLASSES, least

LATER = (opened(TWO, needs_approval=True), asked(TWO, "a2"))
TWO_WAITS = (*ASKED, *LATER, checkpoint(), suspended("pending_approval"))
UNKNOWN_AND_APPROVAL = (*ASKED, opened(TWO, effect="unsafe"), entered(TWO), unknown(TWO), checkpoint())
NOBODY_LEFT = (*ON_APPROVAL, cancel())
EXPIRED = (*ON_APPROVAL, expired())

SUSPENSIONS = [
    Accepted("a run starts", (), run(), {"lifecycle": "running", "stop_reason": None, "suspend_reason": None}),
    Accepted(
        "running -> pending_approval: approval and checkpoint are on record",
        WAITING,
        suspended("pending_approval"),
        {"lifecycle": "suspended", "suspend_reason": "pending_approval", "stop_reason": None},
    ),
    Accepted(
        "the attempts that enclose a waiting call may be in flight",
        (*SUB_AGENT, opened(needs_approval=True), asked(), checkpoint()),
        suspended("pending_approval"),
        {"suspend_reason": "pending_approval"},
    ),
    Accepted(
        "the enclosing attempt ends suspended, after the run",
        (*SUB_AGENT, opened(needs_approval=True), asked(), checkpoint(), suspended("pending_approval")),
        failed(TWO, outcome="suspended"),
        {"lifecycle": "suspended"},
        {"in_flight": False, "child_waits": True},
    ),
    Accepted(
        "a run whose sub-agent waits for a decision waits too",
        (*CHILD_WAITS, checkpoint()),
        suspended("pending_approval"),
        {"suspend_reason": "pending_approval"},
    ),
    Accepted(
        "a run whose sub-agent met an unknown effect waits too",
        CHILD_WAITS,
        suspended("unknown_side_effect"),
        {"suspend_reason": "unknown_side_effect"},
    ),
    Accepted(
        "a run whose sub-agent needs a person waits too",
        CHILD_WAITS,
        suspended("manual_intervention"),
        {"suspend_reason": "manual_intervention"},
    ),
    Accepted(
        "running -> unknown_side_effect: an attempt's outcome is unknown",
        UNKNOWN,
        suspended("unknown_side_effect"),
        {"lifecycle": "suspended", "suspend_reason": "unknown_side_effect"},
    ),
    Accepted(
        "running -> manual_intervention: reconcile did not help",
        MANUAL,
        suspended("manual_intervention"),
        {"lifecycle": "suspended", "suspend_reason": "manual_intervention"},
    ),
    Accepted(
        "unknown_side_effect -> manual_intervention",
        (*ON_UNKNOWN, person_needed()),
        suspended("manual_intervention"),
        {"lifecycle": "suspended", "suspend_reason": "manual_intervention"},
    ),
    Accepted(
        "with several waits the gravest is shown: unknown before approval",
        UNKNOWN_AND_APPROVAL,
        suspended("unknown_side_effect"),
        {"suspend_reason": "unknown_side_effect"},
    ),
    Accepted(
        "with several waits the gravest is shown: manual before all",
        (*UNKNOWN_AND_APPROVAL, person_needed(TWO)),
        suspended("manual_intervention"),
        {"suspend_reason": "manual_intervention"},
    ),
]

RESUMES = [
    Accepted(
        "suspended -> running: approved and rechecked",
        (*ON_APPROVAL, decided(), rechecked()),
        resumed(),
        {"lifecycle": "running", "suspend_reason": None},
    ),
    Accepted(
        "suspended -> running: denied, to raise at the call",
        (*ON_APPROVAL, decided(approved=False), rechecked()),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted("suspended -> running: expired, to raise at the call", EXPIRED, resumed(), {"lifecycle": "running"}),
    Accepted(
        "suspended -> running: the expired call is closed already",
        (*EXPIRED, call_closed(outcome="expired", attempts=0)),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted(
        "suspended -> running: one of two calls decided, the other goes on waiting",
        (*TWO_WAITS, decided(TWO, approval_id="a2"), rechecked(TWO, approval_id="a2")),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted(
        "suspended -> running: reconciled, committed", (*ON_UNKNOWN, resolved()), resumed(), {"lifecycle": "running"}
    ),
    Accepted(
        "suspended -> running: reconciled, not committed",
        (*ON_UNKNOWN, resolved(outcome="not_committed")),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted(
        "suspended -> running: to be sent again with the same key",
        (*KEYED, suspended("unknown_side_effect"), resolved(outcome="same_key")),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted(
        "suspended -> running: a person said that it is committed",
        (*ON_MANUAL, person_said()),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted(
        "suspended -> running: a person said that it is not",
        (*ON_MANUAL, person_said(outcome="not_committed")),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted(
        "suspended -> running: the sub-agent decides for itself",
        (*CHILD_WAITS, checkpoint(), suspended("pending_approval")),
        resumed(),
        {"lifecycle": "running"},
    ),
    Accepted("a running run is asked to end", RUNNING, cancel(), {"lifecycle": "running", "cancel_requested": True}),
    Accepted("a suspended run is asked to end", ON_APPROVAL, cancel(), {"lifecycle": "suspended"}),
    Accepted("a checkpoint", RUNNING, checkpoint(), {"lifecycle": "running", "checkpoint": True}),
    Accepted("the next step", (*RUNNING, step(1)), step(2), {"step": 2}),
    Accepted("the same step in another period", (*RUNNING, step(2)), step(2), {"step": 2}),
    Accepted(
        "running, owner gone -> running with a new fence", RUNNING, owner(1), {"lifecycle": "running", "fence": 1}
    ),
    Accepted("a suspended run has a new owner too", (*ON_APPROVAL, owner(1)), owner(2), {"lifecycle": "suspended"}),
]

CLOSES = [
    *(
        Accepted(f"running -> closed({reason})", RUNNING, closed(reason, actor="a"), {"stop_reason": reason})
        for reason in StopReason
    ),
    Accepted(
        "suspended -> closed(cancelled), asked for",
        NOBODY_LEFT,
        closed("cancelled", stop_detail="requested"),
        {"lifecycle": "closed", "stop_reason": "cancelled", "suspend_reason": None},
    ),
    Accepted(
        "suspended -> closed(approval_expired), when it has",
        EXPIRED,
        closed("approval_expired"),
        {"lifecycle": "closed", "stop_reason": "approval_expired", "suspend_reason": None},
    ),
    Accepted(
        "suspended -> closed(approval_expired), when that of a sub-agent has",
        (*CHILD_WAITS, checkpoint(), suspended("pending_approval")),
        closed("approval_expired"),
        {"stop_reason": "approval_expired"},
    ),
    Accepted(
        "unknown_side_effect -> closed(cancelled), once it is resolved",
        (*ON_UNKNOWN, cancel(), resolved()),
        closed("cancelled"),
        {"stop_reason": "cancelled"},
    ),
    *(
        Accepted(f"{name} -> closed(unresolved_side_effect)", before, given_up(), {"stop_reason": reason.value})
        for reason in [StopReason.UNRESOLVED_SIDE_EFFECT]
        for name, before in {
            "unknown_side_effect": ON_UNKNOWN,
            "manual_intervention": ON_MANUAL,
            "manual_intervention, abandoned by a person": (*ON_MANUAL, person_said(outcome="abandoned")),
            "running after a failed reconcile": MANUAL,
            "unknown_side_effect of a sub-agent": (*CHILD_WAITS, suspended("unknown_side_effect")),
        }.items()
    ),
]

NOT_STARTED_OR_SUSPENDED = [
    Refused("a run starts once", RUNNING, run(), "started_twice", "use another run id, or resume"),
    Refused("a suspended run does not start", ON_APPROVAL, run(), "suspended", "resume it first"),
    Refused("a closed run does not start", DONE, run(), "closed", "start another run"),
    Refused("a suspension has a reason", WAITING, suspended(""), "suspend_reason", "use one of pending_approval"),
    Refused("a stop reason suspends nothing", WAITING, suspended("cancelled"), "suspend_reason", "use one of"),
    Refused("nobody was asked", RUNNING, suspended("pending_approval"), "nothing_waits", "approval_requested first"),
    Refused(
        "the decision is there already",
        (*WAITING, decided()),
        suspended("pending_approval"),
        "nothing_waits",
        "approval_requested first",
    ),
    Refused("no checkpoint", ASKED, suspended("pending_approval"), "no_checkpoint", "record checkpoint_saved"),
    Refused(
        "the checkpoint is from before the approval",
        (*WAITING, *LATER),
        suspended("pending_approval"),
        "no_checkpoint",
        "after approval_requested",
    ),
    Refused(
        "the checkpoint is from before the last period",
        (*TWO_WAITS, decided(), rechecked(), resumed()),
        suspended("pending_approval"),
        "no_checkpoint",
        "record checkpoint_saved",
    ),
    Refused(
        "another attempt is in flight beside the approval",
        (*WAITING, opened(TWO), entered(TWO)),
        suspended("pending_approval"),
        "attempt_in_flight",
        "when these attempts are over: tool_2",
    ),
    Refused("nothing is unknown", IN_FLIGHT, suspended("unknown_side_effect"), "nothing_waits", "unknown_side_effect"),
    Refused(
        "another attempt is in flight beside the unknown one",
        (run(), opened(TWO), entered(TWO), *UNKNOWN[1:]),
        suspended("unknown_side_effect"),
        "attempt_in_flight",
        "tool_2",
    ),
    Refused(
        "nobody called a person",
        UNKNOWN,
        suspended("manual_intervention"),
        "nothing_waits",
        "manual_intervention first",
    ),
    Refused(
        "an approval hides no unknown effect",
        UNKNOWN_AND_APPROVAL,
        suspended("pending_approval"),
        "graver_wait",
        "suspend with unknown_side_effect",
    ),
    Refused(
        "an unknown effect hides no manual intervention",
        MANUAL,
        suspended("unknown_side_effect"),
        "graver_wait",
        "suspend with manual_intervention",
    ),
    Refused(
        "a suspended run does not wait anew",
        (*ON_APPROVAL, checkpoint()),
        suspended("pending_approval"),
        "suspended",
        "resume it before",
    ),
    Refused("it becomes graver once", ON_MANUAL, suspended("manual_intervention"), "suspended", "resume it before"),
    Refused("it becomes no lighter", ON_MANUAL, suspended("unknown_side_effect"), "suspended", "resume it before"),
    Refused(
        "pending_approval becomes no manual_intervention",
        ON_APPROVAL,
        suspended("manual_intervention"),
        "suspended",
        "resume it before",
    ),
    Refused("steps count upwards", (*RUNNING, step(2)), step(1), "past_step", "take the next number"),
]

NOT_RESUMED = [
    Refused("a running run resumes not", RUNNING, resumed(), "not_suspended", "go on"),
    Refused("a closed run resumes not", DONE, resumed(), "closed", "start another run"),
    Refused("undecided", ON_APPROVAL, resumed(), "undecided", "after a decision was received and rechecked"),
    Refused("decided, not rechecked", (*ON_APPROVAL, decided()), resumed(), "undecided", "rechecked"),
    Refused(
        "rechecked before the suspension",
        (*ASKED, decided(), rechecked(), *LATER, checkpoint(), suspended("pending_approval")),
        resumed(),
        "undecided",
        "rechecked",
    ),
    Refused("still unknown", ON_UNKNOWN, resumed(), "unresolved", "reconciled"),
    Refused("a person has not been heard", ON_MANUAL, resumed(), "unresolved", "a person said what happened"),
    Refused(
        "abandoned by a person",
        (*ON_MANUAL, person_said(outcome="abandoned")),
        resumed(),
        "unresolved",
        "a person said what happened",
    ),
    Refused(
        "the enclosing attempt has not ended",
        (*SUB_AGENT, *ASKED[1:], checkpoint(), suspended("pending_approval"), decided(), rechecked()),
        resumed(),
        "attempt_in_flight",
        "record tool_failed (suspended) first for tool_2",
    ),
    Refused("the fence is the former owner's", (*RUNNING, owner(2)), owner(2), "old_fence", "claim the run anew"),
    Refused("the fence is older", (*ON_APPROVAL, owner(2)), owner(1), "old_fence", "claim the run anew"),
]

NOT_CLOSED = [
    Refused("without a reason", RUNNING, closed(""), "stop_reason", "use one of success"),
    Refused("a suspend reason closes nothing", ON_APPROVAL, closed("pending_approval"), "stop_reason", "use one of"),
    Refused("twice", DONE, closed("success"), "closed", "start another run"),
    Refused(
        "success has no detail", RUNNING, closed("success", stop_detail="truly"), "detail_of_success", "leave it out"
    ),
    Refused("open sub-agents", RUNNING, closed("success", open_children=2), "open_children", "close them first"),
    Refused("an attempt is in flight", IN_FLIGHT, closed("tool_failed"), "attempt_in_flight", "are over: tool_1"),
    Refused(
        "an attempt is in flight, the run is given up",
        (*UNKNOWN, opened(TWO, effect="read_only"), entered(TWO)),
        given_up(),
        "attempt_in_flight",
        "are over: tool_2",
    ),
    Refused("a call waits", WAITING, closed("success"), "pending_approval", "close the call first"),
    Refused(
        "a call waits, another is given up",
        UNKNOWN_AND_APPROVAL,
        given_up(),
        "pending_approval",
        "close the call first",
    ),
    *(
        Refused(
            f"{reason} while an effect is unknown", before, closed(reason), "unknown_effect", "reconcile it, or close"
        )
        for reason in StopReason
        if reason is not StopReason.UNRESOLVED_SIDE_EFFECT
        for before in (UNKNOWN,)
    ),
    Refused(
        "to be sent again is still unknown",
        (*KEYED, resolved(outcome="same_key")),
        closed("tool_failed"),
        "unknown_effect",
        "reconcile it, or close",
    ),
    *(
        Refused(
            f"a waiting run does not close with {reason}", NOBODY_LEFT, closed(reason), "suspended", "resume it first"
        )
        for reason in StopReason
        if reason not in ("cancelled", "approval_expired", "unresolved_side_effect")
    ),
    Refused("nobody asked for it", ON_APPROVAL, closed("cancelled"), "not_requested", "record cancel_requested first"),
    Refused(
        "a cancel that meets an unknown effect waits",
        (*ON_UNKNOWN, cancel()),
        closed("cancelled"),
        "unknown_effect",
        "reconcile it",
    ),
    Refused(
        "nothing has expired", NOBODY_LEFT, closed("approval_expired"), "not_expired", "record approval_expired first"
    ),
    Refused("given up by nobody", ON_UNKNOWN, closed("unresolved_side_effect"), "no_actor", "actor="),
    Refused("there is nothing to give up", NOBODY_LEFT, given_up(), "nothing_unknown", "resume the run or cancel it"),
    Refused(
        "what is resolved is not given up", (*ON_UNKNOWN, resolved()), given_up(), "nothing_unknown", "resume the run"
    ),
]

ROWS = [*SUSPENSIONS, *RESUMES, *CLOSES, *NOT_STARTED_OR_SUSPENDED, *NOT_RESUMED, *NOT_CLOSED]


@table([*SUSPENSIONS, *RESUMES, *CLOSES])
def test_a_transition_of_the_table_is_made(row: Accepted):
    row.check()


@table([*NOT_STARTED_OR_SUSPENDED, *NOT_RESUMED, *NOT_CLOSED])
def test_a_transition_that_is_not_of_the_table_is_refused(row: Refused):
    row.check()


def test_there_are_fifteen_stop_reasons_and_three_suspend_reasons():
    assert len(StopReason) == 15
    assert list(SuspendReason) == ["pending_approval", "unknown_side_effect", "manual_intervention"]
    assert set(StopReason).isdisjoint(SuspendReason)


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


def test_the_waits_of_a_run_are_known_by_call():
    state = fold((*UNKNOWN_AND_APPROVAL, suspended("unknown_side_effect"), person_needed(TWO)))
    first, second = state.calls
    assert state.waits() == {first: "pending_approval", second: "manual_intervention"}
    assert (first, second) == (key(opened()), key(opened(TWO)))


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
