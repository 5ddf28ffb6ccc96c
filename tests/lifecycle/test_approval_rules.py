"""lifecycle.md, *Approval*: asked, decided, rechecked; every row of the recheck's table, and what is refused."""

from __future__ import annotations

import pytest

from lifecycle.facts import (
    APPROVED,
    ASKED,
    CALLED,
    IN_FLIGHT,
    MINUTE,
    ON_APPROVAL,
    READY,
    RUNNING,
    TWO,
    UNKNOWN,
    asked,
    call_closed,
    checkpoint,
    closed,
    decided,
    denied,
    entered,
    expired,
    failed,
    fold,
    not_permitted,
    opened,
    rechecked,
    rejected,
    resolved,
    resumed,
    reused,
    run,
    succeeded,
    superseded,
    suspended,
    unknown,
)
from lifecycle.rows import Accepted, Refused, table
from loopspan.events import Event

NEEDED = (run(), opened(needs_approval=True))
NO = (*ASKED, decided(approved=False))
OVER = {
    "denied": (*NO, denied()),
    "expired": (*ASKED, expired()),
    "superseded": (*APPROVED, rechecked(outcome="arguments"), superseded()),
}
LOST = (
    run(),
    opened(effect="reconcilable", needs_approval=True),
    asked(digest="d"),
    decided(),
    rechecked(),
    entered(digest="d"),
    unknown(),
)
"""An approved call was executed, and nobody knows whether it happened."""

ANEW = (*OVER["superseded"], asked(approval_id="a2", digest="e"))
RESUMED = (*ON_APPROVAL, decided(), rechecked(), resumed())

ASKING = [
    Accepted("a person is asked", NEEDED, asked(), {"lifecycle": "running"}, {"waits_for_approval": True}),
    Accepted("the request voids the checkpoint before it", (*CALLED, checkpoint()), asked(), {"checkpoint": False}),
    Accepted("a yes", ASKED, decided(), {"lifecycle": "running"}, {"waits_for_approval": False, "denied": False}),
    Accepted("a no", ASKED, decided(approved=False), {"lifecycle": "running"}, {"denied": True}),
    Accepted("the same decision again is a no-op", APPROVED, decided(), call={"denied": False}),
    Accepted("the same no again is a no-op", NO, decided(approved=False), call={"denied": True}),
    Accepted("a decision in time", ASKED, decided(at=MINUTE - 1), call={"waits_for_approval": False}),
    Accepted("a decision changes no state by itself", ON_APPROVAL, decided(), {"lifecycle": "suspended"}),
    Accepted(
        "nor does a denial", ON_APPROVAL, decided(approved=False), {"lifecycle": "suspended", "stop_reason": None}
    ),
    Accepted("nor does an expiry", ON_APPROVAL, expired(), {"lifecycle": "suspended", "stop_reason": None}),
    Accepted("the denial is raised at the call", NO, denied(), call={"refused": "approval_denied"}),
    Accepted("nobody decided in time", ASKED, expired(), call={"refused": "approval_expired"}),
    Accepted(
        "the call is asked for anew", OVER["superseded"], asked(approval_id="a2"), call={"waits_for_approval": True}
    ),
]

RECHECKS = [
    Accepted("all equal: the attempt", READY, entered(digest="d"), call={"in_flight": True}),
    Accepted("all equal: the attempt, after a suspension", RESUMED, entered(digest="d"), call={"in_flight": True}),
    *(
        Accepted(f"{changed} changed", APPROVED, rechecked(outcome=changed), {"lifecycle": "running"})
        for changed in ("arguments", "tool", "policy", "resource", "permission", "committed", "unknown", "expired")
    ),
    *(
        Accepted(f"{changed} changed: superseded", (*APPROVED, rechecked(outcome=changed)), superseded())
        for changed in ("arguments", "tool", "policy", "resource")
    ),
    Accepted(
        "superseded, asked anew, approved: the attempt with the new arguments",
        (*ANEW, decided(approval_id="a2"), rechecked(approval_id="a2")),
        entered(digest="e"),
        call={"in_flight": True},
    ),
    Accepted(
        "permission gone",
        (*APPROVED, rechecked()),
        not_permitted(stage="recheck"),
        call={"refused": "permission_denied"},
    ),
    Accepted(
        "tool gone", READY, rejected(rejection="unknown_tool", stage="recheck"), call={"refused": "validation_rejected"}
    ),
    Accepted("arguments no longer valid", READY, rejected(stage="recheck"), call={"refused": "validation_rejected"}),
    Accepted("already committed: the result is reused", READY, reused(), call={"committed": True}),
    Accepted("expired, approved earlier, not yet executed", READY, expired(), call={"refused": "approval_expired"}),
    Accepted("found expired before anybody decided", (*ON_APPROVAL, rechecked(outcome="expired")), expired()),
    Accepted(
        "not committed: rechecked, then the next attempt",
        (*LOST, resolved(outcome="not_committed"), rechecked()),
        entered(attempt=2, digest="d"),
        call={"attempts": 2},
    ),
    Accepted(
        "a failed attempt is repeated under the same approval",
        (*READY, entered(digest="d"), failed()),
        entered(attempt=2, digest="d"),
        call={"attempts": 2},
    ),
    Accepted(
        "an approval that was decided while another call ran",
        (*ASKED, decided(), rechecked(outcome="resource"), rechecked()),
        entered(digest="d"),
        call={"in_flight": True},
    ),
]

NOT_ASKED = [
    Refused("a call that is not open", RUNNING, asked(), "call_not_open", "tool_call_opened first"),
    Refused("it expires before it was asked", NEEDED, asked(expires_at=1), "expiry", "give a later expires_at"),
    Refused("the body is entered already", IN_FLIGHT, asked(), "attempt_in_flight", "the end of the attempt"),
    Refused("the result is there already", (*CALLED, reused()), asked(), "committed", "tool_result_reused"),
    Refused("asked already", ASKED, asked(approval_id="a2"), "approval_open", "supersede it before"),
    Refused("approved already", APPROVED, asked(approval_id="a2"), "approval_open", "supersede it before"),
    Refused(
        "denied already: nobody is asked until they say yes", NO, asked(approval_id="a2"), "approval_open", "supersede"
    ),
    Refused("a new request under an old id", OVER["superseded"], asked(), "approval_id", "an id of its own"),
    Refused("refused by a person", OVER["denied"], asked(approval_id="a2"), "refused_call", "propose another call"),
    Refused("expired", OVER["expired"], asked(approval_id="a2"), "refused_call", "propose another call"),
]

NOT_DECIDED = [
    *(
        Refused(f"{event.name} of a request that was not made", CALLED, event, "no_approval", "ask first")
        for event in (decided(), rechecked(), denied(), expired(), superseded())
    ),
    *(
        Refused(f"{event.name} of another request", ASKED, event, "no_approval", "ask first")
        for event in (
            decided(approval_id="a2"),
            rechecked(approval_id="a2"),
            denied(approval_id="a2"),
            expired(approval_id="a2"),
            superseded(approval_id="a2"),
        )
    ),
    *(
        Refused(f"{event.name} of a request that is {name}", before, event, "approval_over", "ask anew")
        for name, before in OVER.items()
        for event in (decided(), rechecked(), denied(), expired(), superseded())
    ),
    Refused("of a request that was made anew", ANEW, decided(), "no_approval", "ask first"),
    Refused("of a call that is not open", RUNNING, decided(), "call_not_open", "tool_call_opened first"),
    Refused("while the body is entered", (*READY, entered(digest="d")), expired(), "attempt_in_flight", "the end of"),
    Refused("yes, then no", APPROVED, decided(approved=False), "decision_conflict", "the first decision stands"),
    Refused("no, then yes", NO, decided(), "decision_conflict", "the first decision stands"),
    Refused("yes, too late: expiry is never approval", ASKED, decided(at=MINUTE), "expired", "record approval_expired"),
    Refused("a denial that nobody spoke", ASKED, denied(), "not_denied", "approval_decision_received first"),
    Refused("a denial of what was approved", APPROVED, denied(), "not_denied", "approval_decision_received first"),
    Refused("a recheck of what is not decided", ASKED, rechecked(), "undecided", "wait for it"),
    Refused("a denial is not superseded away", NO, superseded(), "denied", "record approval_denied"),
    Refused(
        "a denial is raised when the run goes on",
        (*ON_APPROVAL, decided(approved=False)),
        denied(),
        "suspended",
        "resume",
    ),
]

NOT_EXECUTED = [
    Refused("nobody was asked", NEEDED, entered(), "not_approved", "record approval_requested first"),
    Refused("nobody has decided", ASKED, entered(digest="d"), "not_approved", "wait for the decision"),
    Refused("a person said no", NO, entered(digest="d"), "not_approved", "wait for the decision, or ask anew"),
    Refused("superseded", OVER["superseded"], entered(digest="d"), "not_approved", "ask anew"),
    Refused("denied", OVER["denied"], entered(digest="d"), "refused_call", "propose another call"),
    Refused("expired", OVER["expired"], entered(digest="d"), "refused_call", "propose another call"),
    Refused("not rechecked", APPROVED, entered(digest="d"), "not_rechecked", "a fresh approval_recheck"),
    *(
        Refused(
            f"the recheck found {found}",
            (*APPROVED, rechecked(outcome=found)),
            entered(digest="d"),
            "not_rechecked",
            "fresh",
        )
        for found in ("arguments", "tool", "policy", "resource", "permission", "committed", "unknown", "expired")
    ),
    Refused("with other arguments", READY, entered(digest="e"), "other_arguments", "supersede it, ask anew"),
    Refused("with arguments that nobody knows", READY, entered(), "other_arguments", "supersede it, ask anew"),
    Refused(
        "rechecked before the run was suspended",
        (
            *READY,
            *(opened(TWO), asked(TWO, "a2"), checkpoint(), suspended("pending_approval")),
            *(decided(TWO, approval_id="a2"), rechecked(TWO, approval_id="a2"), resumed()),
        ),
        entered(digest="d"),
        "not_rechecked",
        "a fresh approval_recheck",
    ),
    Refused(
        "not committed, not rechecked since",
        (*LOST, resolved(outcome="not_committed")),
        entered(attempt=2, digest="d"),
        "not_rechecked",
        "a fresh approval_recheck",
    ),
    Refused(
        "an approval is used up by a success",
        (*READY, entered(digest="d"), succeeded()),
        entered(attempt=2, digest="d"),
        "committed",
        "tool_result_reused",
    ),
    Refused("an unknown attempt", LOST, entered(attempt=2, digest="d"), "unknown_attempt", "reconcile first"),
    Refused(
        "in a waiting run", (*ON_APPROVAL, decided(), rechecked()), entered(digest="d"), "suspended", "resume it first"
    ),
    Refused(
        "the denied call is opened again",
        (*NO, call_closed(outcome="denied", attempts=0), opened()),
        entered(digest="d"),
        "not_approved",
        "wait for the decision, or ask anew",
    ),
    Refused(
        "the denied call is opened again, and asked for again",
        (*NO, call_closed(outcome="denied", attempts=0), opened()),
        asked(approval_id="a2"),
        "approval_open",
        "supersede",
    ),
    Refused(
        "the approved call failed and is repeated by its caller: asked anew",
        (*LOST[:6], failed(), call_closed(outcome="failed"), opened(effect="reconcilable", needs_approval=True)),
        entered(attempt=2, digest="d"),
        "not_approved",
        "record approval_requested first",
    ),
]

ROWS = [*ASKING, *RECHECKS, *NOT_ASKED, *NOT_DECIDED, *NOT_EXECUTED]


@table([*ASKING, *RECHECKS])
def test_an_approval_goes_on(row: Accepted):
    row.check()


@table([*NOT_ASKED, *NOT_DECIDED, *NOT_EXECUTED])
def test_an_approval_is_no_licence(row: Refused):
    row.check()


@pytest.mark.parametrize(
    ("said", "reason", "outcome"),
    [
        ((decided(approved=False), denied()), "approval_denied", "denied"),
        ((expired(),), "approval_expired", "expired"),
    ],
    ids=["denied", "expired"],
)
def test_an_uncaught_refusal_closes_the_run_with_its_reason(said: tuple[Event, ...], reason: str, outcome: str):
    state = fold([*ASKED, *said, call_closed(outcome=outcome, attempts=0), closed(reason)])
    assert (state.lifecycle, state.stop_reason) == ("closed", reason)


def test_a_denial_that_the_loop_handles_lets_the_run_go_on():
    state = fold([*NO, denied(), call_closed(outcome="denied", attempts=0), closed("success")])
    assert state.stop_reason == "success"


def test_an_unknown_call_that_was_approved_is_unknown_and_not_approved():
    state = fold([*LOST, suspended("unknown_side_effect")])
    assert list(state.waits().values()) == ["unknown_side_effect"]
    assert fold(UNKNOWN).waits() == {next(iter(state.calls)): "unknown_side_effect"}
