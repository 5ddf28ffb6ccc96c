"""lifecycle.md, *Run transitions*: started, suspended, resumed; every row, and what is refused."""

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
    SUB_AGENT,
    TWO,
    UNKNOWN,
    WAITING,
    asked,
    call_closed,
    cancel,
    checkpoint,
    decided,
    entered,
    expired,
    failed,
    fold,
    opened,
    owner,
    person_needed,
    person_said,
    rechecked,
    resolved,
    resumed,
    run,
    step,
    suspended,
    unknown,
)
from lifecycle.rows import Accepted, Refused, table
from loopspan.lifecycle.state import key

LATER = (opened(TWO, needs_approval=True), asked(TWO, "a2"))
TWO_WAITS = (*ASKED, *LATER, checkpoint(), suspended("pending_approval"))
UNKNOWN_AND_APPROVAL = (*ASKED, opened(TWO, effect="unsafe"), entered(TWO), unknown(TWO), checkpoint())
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


ROWS = [*SUSPENSIONS, *RESUMES, *NOT_STARTED_OR_SUSPENDED, *NOT_RESUMED]


@table([*SUSPENSIONS, *RESUMES])
def test_a_transition_of_the_table_is_made(row: Accepted):
    row.check()


@table([*NOT_STARTED_OR_SUSPENDED, *NOT_RESUMED])
def test_a_transition_that_is_not_of_the_table_is_refused(row: Refused):
    row.check()


def test_the_waits_of_a_run_are_known_by_call():
    state = fold((*UNKNOWN_AND_APPROVAL, suspended("unknown_side_effect"), person_needed(TWO)))
    first, second = state.calls
    assert state.waits() == {first: "pending_approval", second: "manual_intervention"}
    assert (first, second) == (key(opened()), key(opened(TWO)))
