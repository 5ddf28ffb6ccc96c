"""Events in few words, and the states that a run is brought into by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loopspan import events as e
from loopspan.lifecycle import NEW, Refusal, State, advance

Call = dict[str, Any]
MINUTE = 60_000_000_000


def call(number: int, step: int = 1) -> Call:
    """The fields that name a logical call."""
    return {"step": step, "call_id": f"call_{number}", "ordinal": 1, "tool": f"tool_{number}"}


ONE, TWO, THREE = call(1), call(2), call(3)


def fold(events: Iterable[e.Event], state: State = NEW) -> State:
    """The state after events that are all accepted."""
    for event in events:
        result = advance(state, event)
        assert isinstance(result, State), f"{event} was refused: {result}"
        state = result
    return state


def snapshot(state: State) -> State:
    """A copy that shares nothing that could be changed."""
    return state._replace(calls=dict(state.calls), done=dict(state.done))


def refusal(state: State, event: e.Event) -> Refusal:
    """Why `event` is refused; it leaves no trace in the state, and is refused again for the same reason."""
    before = snapshot(state)
    result = advance(state, event)
    assert isinstance(result, Refusal), f"{event} was accepted"
    assert state == before
    assert advance(state, event) == result
    return result


# the run


def run(**fields: Any) -> e.Event:
    return e.RunStarted(agent="agent", **fields)


def step(number: int) -> e.Event:
    return e.StepStarted(step=number)


def checkpoint() -> e.Event:
    return e.CheckpointSaved()


def suspended(reason: str) -> e.Event:
    return e.RunSuspended(reason=reason)


def resumed() -> e.Event:
    return e.RunResumed()


def cancel() -> e.Event:
    return e.CancelRequested(by="alice")


def owner(fence: int) -> e.Event:
    return e.OwnerChanged(owner="another", fence=fence)


def closed(reason: str, **fields: Any) -> e.Event:
    return e.RunTraceClosed(stop_reason=reason, **fields)


def given_up() -> e.Event:
    return closed("unresolved_side_effect", actor="alice")


# a call


def opened(which: Call = ONE, **fields: Any) -> e.Event:
    return e.ToolCallOpened(**{**which, **fields})


def call_closed(which: Call = ONE, outcome: str = "ok", attempts: int = 1) -> e.Event:
    return e.ToolCallClosed(**which, outcome=outcome, attempts=attempts)


def rejected(which: Call = ONE, rejection: str = "validation_error", stage: str = "proposal") -> e.Event:
    return e.ValidationRejected(**which, started=1, rejection=rejection, stage=stage)


def not_permitted(which: Call = ONE, stage: str = "proposal") -> e.Event:
    return e.PermissionDenied(**which, started=1, stage=stage)


def entered(which: Call = ONE, attempt: int = 1, **fields: Any) -> e.Event:
    return e.ToolStarted(**which, attempt=attempt, **fields)


def succeeded(which: Call = ONE, attempt: int = 1, outcome: str = "ok") -> e.Event:
    return e.ToolSucceeded(**which, attempt=attempt, outcome=outcome)


def failed(which: Call = ONE, attempt: int = 1, outcome: str = "failed") -> e.Event:
    return e.ToolFailed(**which, attempt=attempt, outcome=outcome)


def unknown(which: Call = ONE, attempt: int = 1) -> e.Event:
    return e.UnknownSideEffect(**which, attempt=attempt)


def reused(which: Call = ONE) -> e.Event:
    return e.ToolResultReused(**which)


# people


def asked(which: Call = ONE, approval_id: str = "a1", expires_at: int = MINUTE, digest: str | None = None) -> e.Event:
    return e.ApprovalRequested(**which, approval_id=approval_id, requested_at=1, expires_at=expires_at, digest=digest)


def decided(which: Call = ONE, approved: bool = True, approval_id: str = "a1", at: int | None = None) -> e.Event:
    return e.ApprovalDecisionReceived(**which, approval_id=approval_id, approved=approved, started=1, decided_at=at)


def rechecked(which: Call = ONE, outcome: str = "ok", approval_id: str = "a1") -> e.Event:
    return e.ApprovalRecheck(**which, approval_id=approval_id, outcome=outcome)


def denied(which: Call = ONE, approval_id: str = "a1") -> e.Event:
    return e.ApprovalDenied(**which, approval_id=approval_id)


def expired(which: Call = ONE, approval_id: str = "a1") -> e.Event:
    return e.ApprovalExpired(**which, approval_id=approval_id, started=1)


def superseded(which: Call = ONE, approval_id: str = "a1") -> e.Event:
    return e.ApprovalSuperseded(**which, approval_id=approval_id, reason="arguments")


# unknown effects


def inquired(which: Call = ONE, attempt: int = 1) -> e.Event:
    return e.ReconcileRequested(**which, attempt=attempt)


def resolved(which: Call = ONE, outcome: str = "committed", attempt: int = 1) -> e.Event:
    return e.ReconcileResolved(**which, attempt=attempt, outcome=outcome)


def unresolved(which: Call = ONE, attempt: int = 1) -> e.Event:
    return e.ReconcileUnresolved(**which, attempt=attempt)


def person_needed(which: Call = ONE, attempt: int = 1) -> e.Event:
    return e.ManualIntervention(**which, attempt=attempt)


def person_said(which: Call = ONE, outcome: str = "committed", attempt: int = 1, actor: str = "alice") -> e.Event:
    return e.ManualDecisionReceived(**which, attempt=attempt, outcome=outcome, started=1, actor=actor)


# where a run can be

RUNNING = (run(),)
CALLED = (run(), opened())
IN_FLIGHT = (*CALLED, entered())
ASKED = (run(), opened(needs_approval=True), asked(digest="d"))
WAITING = (*ASKED, checkpoint())
APPROVED = (*ASKED, decided())
READY = (*APPROVED, rechecked())
UNKNOWN = (run(), opened(effect="reconcilable"), entered(), unknown())
KEYED = (run(), opened(effect="keyed"), entered(key_digest="k"), unknown())
MANUAL = (*UNKNOWN, unresolved(), person_needed())
ON_APPROVAL = (*WAITING, suspended("pending_approval"))
ON_UNKNOWN = (*UNKNOWN, suspended("unknown_side_effect"))
ON_MANUAL = (*MANUAL, suspended("manual_intervention"))
SUB_AGENT = (run(), opened(TWO, subagent=True), entered(TWO))
CHILD_WAITS = (*SUB_AGENT, failed(TWO, outcome="suspended"))
DONE = (run(), closed("success"))
FAILED = (*IN_FLIGHT, failed())


def of(effect: str | None, **fields: Any) -> tuple[e.Event, ...]:
    """A run with a call of a tool with that effect."""
    return (run(), opened(effect=effect, **fields))


def once(effect: str) -> tuple[e.Event, ...]:
    """That call has failed, and nothing has happened."""
    return (*of(effect), entered(), failed())
