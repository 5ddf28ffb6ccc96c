"""The rules of a run as one table and one pure function: `advance(state, event)` gives a state or a refusal.

A run is running, suspended or closed (lifecycle.md). Every rule is a row of `RULES`: the event that it guards, and a
function of the state and the event that returns the next state or a `Refusal`. An event without a row changes nothing
while the run is running. The state holds only what is open, and what binds the step that is open, so that an event
costs the same at every step.
"""

from __future__ import annotations

from loopspan import events as e
from loopspan.lifecycle import approvals, calls, effects, runs
from loopspan.lifecycle.state import NEW, Refusal, Result, Rule, State
from loopspan.reasons import Lifecycle, StopReason, SuspendReason

__all__ = ["NEW", "RULES", "WHILE_SUSPENDED", "Lifecycle", "Refusal", "State", "StopReason", "SuspendReason", "advance"]

RULES: dict[type[e.Event], Rule] = {
    e.RunStarted: runs.started_again,
    e.CheckpointSaved: runs.checkpoint,
    e.RunSuspended: runs.suspended,
    e.RunResumed: runs.resumed,
    e.RunTraceClosed: runs.closed,
    e.CancelRequested: runs.cancel_requested,
    e.OwnerChanged: runs.owner_changed,
    e.StepStarted: runs.step_started,
    e.ToolCallOpened: calls.opened,
    e.ToolCallClosed: calls.call_closed,
    e.ValidationRejected: calls.rejected,
    e.PermissionDenied: calls.refused,
    e.ToolStarted: calls.tool_started,
    e.ToolSucceeded: calls.attempt_succeeded,
    e.ToolFailed: calls.attempt_failed,
    e.UnknownSideEffect: calls.attempt_unknown,
    e.ToolResultReused: calls.reused,
    e.ApprovalRequested: approvals.approval_requested,
    e.ApprovalDecisionReceived: approvals.decided,
    e.ApprovalRecheck: approvals.rechecked,
    e.ApprovalDenied: approvals.denied,
    e.ApprovalExpired: approvals.expired,
    e.ApprovalSuperseded: approvals.superseded,
    e.ReconcileRequested: effects.asks,
    e.ReconcileResolved: effects.resolved,
    e.ReconcileUnresolved: effects.asks,
    e.ManualIntervention: effects.manual,
    e.ManualDecisionReceived: effects.manually_decided,
}
"""The table: every event that the lifecycle guards."""

WHILE_SUSPENDED: frozenset[type[e.Event]] = frozenset(
    {
        e.ApprovalDecisionReceived,
        e.ApprovalRecheck,
        e.ApprovalSpanClosed,
        e.ApprovalExpired,
        e.ApprovalSuperseded,
        e.ToolFailed,
        e.ToolSpanClosed,
        e.ToolCallClosed,
        e.StepClosed,
        e.ReconcileRequested,
        e.ReconcileResolved,
        e.ReconcileUnresolved,
        e.ReconcileSpanClosed,
        e.ManualIntervention,
        e.ManualDecisionReceived,
        e.CheckpointSaved,
        e.RunSuspended,
        e.RunResumed,
        e.RunTraceClosed,
        e.CancelRequested,
        e.OwnerChanged,
        e.TransitionRefused,
    }
)
"""What a suspended run may still record: decisions, reconciling, and the ends of spans that the suspension cut."""


def advance(state: State, event: e.Event) -> Result:
    """The state after `event`, or why it is refused (the state is then as before).

    Pure: the same state and event give the same answer, and neither is changed.
    """
    lifecycle = state.lifecycle
    if lifecycle is Lifecycle.RUNNING:
        rule = RULES.get(type(event))
        return state if rule is None else rule(state, event)
    if lifecycle is Lifecycle.SUSPENDED:
        if type(event) not in WHILE_SUSPENDED:
            return Refusal("suspended", f"the run is suspended ({state.suspend_reason}): resume it first")
        rule = RULES.get(type(event))
        return state if rule is None else rule(state, event)
    if lifecycle is Lifecycle.CLOSED:
        return Refusal("closed", f"the run is closed ({state.stop_reason}) and takes no more events: start another run")
    if type(event) is not e.RunStarted:
        return Refusal("not_started", f"{event.name}: the first event of a run is run_started, record it before")
    return state._replace(lifecycle=Lifecycle.RUNNING, durable=event.durable)
