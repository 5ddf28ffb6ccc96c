"""Rules of the run: started once, suspended for a reason, closed by an explicit one."""

from __future__ import annotations

from loopspan import events as e
from loopspan.lifecycle.state import Refusal, Result, State
from loopspan.reasons import Lifecycle, StopReason, SuspendReason


def started_again(state: State, event: e.RunStarted) -> Result:
    return Refusal("started_twice", "a run starts once: use another run id, or resume this one")


def checkpoint(state: State, event: e.CheckpointSaved) -> Result:
    return state._replace(checkpoint=True)


def suspended(state: State, event: e.RunSuspended) -> Result:
    if event.reason not in SuspendReason.__members__.values():
        names = ", ".join(SuspendReason)
        return Refusal("suspend_reason", f"{event.reason!r} is not a reason to suspend: use one of {names}")
    reason = SuspendReason(event.reason)
    if state.lifecycle is Lifecycle.SUSPENDED and reason is not SuspendReason.MANUAL_INTERVENTION:
        return Refusal("suspended", "a suspended run can only become graver: manual_intervention")
    missing = _not_waiting(state, reason)
    if missing:
        return Refusal("suspend_guard", missing)
    busy = [call.tool for call in state.in_flight() if not call.subagent]
    if busy:
        return Refusal("attempt_in_flight", f"suspend when these attempts are over: {', '.join(busy)}")
    return state._replace(lifecycle=Lifecycle.SUSPENDED, suspend_reason=reason)


def _not_waiting(state: State, reason: SuspendReason) -> str | None:
    """What is missing for a suspension with this reason."""
    calls = state.calls.values()
    if reason is SuspendReason.PENDING_APPROVAL:
        if not any(call.waits_for_approval for call in calls):
            return "pending_approval needs a call that waits for a decision"
        if not state.checkpoint:
            return "pending_approval needs checkpoint_saved first"
    elif reason is SuspendReason.UNKNOWN_SIDE_EFFECT and not state.unknown():
        return "unknown_side_effect needs a call whose outcome is unknown"
    elif reason is SuspendReason.MANUAL_INTERVENTION and not any(call.manual for call in calls):
        return "manual_intervention needs the event of that name first"
    return None


def resumed(state: State, event: e.RunResumed) -> Result:
    if state.lifecycle is not Lifecycle.SUSPENDED:
        return Refusal("not_suspended", "only a suspended run can resume")
    if state.suspend_reason is SuspendReason.PENDING_APPROVAL:
        decided = any(
            call.approval and (call.approval.over or call.approval.rechecked) for call in state.calls.values()
        )
        if not decided:
            return Refusal("undecided", "resume after a decision was received and rechecked")
    elif state.unknown():
        return Refusal("unresolved", "resume after the unknown side effect was reconciled or decided by a person")
    return state._replace(lifecycle=Lifecycle.RUNNING, suspend_reason=None, checkpoint=False)


FROM_SUSPENDED = frozenset({StopReason.CANCELLED, StopReason.APPROVAL_EXPIRED})


def closed(state: State, event: e.RunTraceClosed) -> Result:
    if event.stop_reason not in StopReason.__members__.values():
        names = ", ".join(StopReason)
        return Refusal("stop_reason", f"{event.stop_reason!r} does not close a run: use one of {names}")
    reason = StopReason(event.stop_reason)
    refusal = _may_close(state, event, reason)
    if refusal:
        return refusal
    return State(lifecycle=Lifecycle.CLOSED, stop_reason=reason)


def _may_close(state: State, event: e.RunTraceClosed, reason: StopReason) -> Refusal | None:
    if event.open_children:
        return Refusal("open_children", f"{event.open_children} sub-agent runs are still open: they close first")
    if reason is StopReason.SUCCESS and event.stop_detail:
        return Refusal("detail_of_success", f"success has no detail, not even {event.stop_detail!r}")
    if reason is StopReason.UNRESOLVED_SIDE_EFFECT:
        if not event.actor:
            return Refusal("no_actor", "giving up on a side effect names who gave up (actor)")
        return None
    if state.unknown():
        return Refusal(
            "unknown_effect", f"{reason}: a side effect is unknown; reconcile it, or close unresolved_side_effect"
        )
    if state.lifecycle is Lifecycle.SUSPENDED:
        return None if reason in FROM_SUSPENDED else Refusal("suspended", f"{reason}: a suspended run resumes first")
    busy = [call.tool for call in state.in_flight()]
    if busy:
        return Refusal("attempt_in_flight", f"close when these attempts are over: {', '.join(busy)}")
    if any(call.waits_for_approval for call in state.calls.values()):
        return Refusal("pending_approval", f"{reason}: a call still waits for its approval")
    return None
