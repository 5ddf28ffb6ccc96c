"""lifecycle.md, *Run transitions*: how a run is closed, every row, and what does not close it."""

from __future__ import annotations

from lifecycle.facts import (
    ASKED,
    CHILD_WAITS,
    DONE,
    IN_FLIGHT,
    KEYED,
    MANUAL,
    ON_APPROVAL,
    ON_MANUAL,
    ON_UNKNOWN,
    RUNNING,
    TWO,
    UNKNOWN,
    WAITING,
    cancel,
    checkpoint,
    closed,
    entered,
    expired,
    given_up,
    opened,
    person_said,
    resolved,
    suspended,
    unknown,
)
from lifecycle.rows import Accepted, Refused, table
from loopspan.lifecycle import StopReason, SuspendReason

UNKNOWN_AND_APPROVAL = (*ASKED, opened(TWO, effect="unsafe"), entered(TWO), unknown(TWO), checkpoint())
NOBODY_LEFT = (*ON_APPROVAL, cancel())
EXPIRED = (*ON_APPROVAL, expired())


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


ROWS = [*CLOSES, *NOT_CLOSED]


@table(CLOSES)
def test_a_run_is_closed(row: Accepted):
    row.check()


@table(NOT_CLOSED)
def test_a_run_stays_open(row: Refused):
    row.check()


def test_there_are_fifteen_stop_reasons_and_three_suspend_reasons():
    assert len(StopReason) == 15
    assert list(SuspendReason) == ["pending_approval", "unknown_side_effect", "manual_intervention"]
    assert set(StopReason).isdisjoint(SuspendReason)
