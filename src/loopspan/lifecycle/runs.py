"""Rules of the run: started once, suspended for a reason, closed by an explicit one."""

from __future__ import annotations

from loopspan import events as e
from loopspan.lifecycle.state import GRAVITY, CallState, Refusal, Result, State, in_step
from loopspan.reasons import Lifecycle, StopReason, SuspendReason

FROM_SUSPENDED = frozenset({StopReason.CANCELLED, StopReason.APPROVAL_EXPIRED})


def started_again(state: State, event: e.RunStarted) -> Result:
    return Refusal("started_twice", "a run starts once: use another run id, or resume this one")


def step_started(state: State, event: e.StepStarted) -> Result:
    if event.step < state.step:
        return Refusal(
            "past_step", f"step {event.step} after step {state.step}: steps count upwards, take the next number"
        )
    return in_step(state, event.step)


def checkpoint(state: State, event: e.CheckpointSaved) -> Result:
    return state._replace(checkpoint=True)


def cancel_requested(state: State, event: e.CancelRequested) -> Result:
    return state._replace(cancel_requested=True)


def owner_changed(state: State, event: e.OwnerChanged) -> Result:
    if event.fence <= state.fence:
        return Refusal("old_fence", f"fence {event.fence} is not above {state.fence}: claim the run anew")
    return state._replace(fence=event.fence)


# suspend and resume


def suspended(state: State, event: e.RunSuspended) -> Result:
    if event.reason not in SuspendReason.__members__.values():
        names = ", ".join(SuspendReason)
        return Refusal("suspend_reason", f"{event.reason!r} is not a reason to suspend: use one of {names}")
    reason = SuspendReason(event.reason)
    refusal = _may_suspend(state, reason)
    if refusal:
        return refusal
    again = state.lifecycle is Lifecycle.SUSPENDED
    calls = {key: _waiting(call, again) for key, call in state.calls.items()}
    done = {key: call._replace(waited=False) for key, call in state.done.items()}
    return state._replace(lifecycle=Lifecycle.SUSPENDED, suspend_reason=reason, calls=calls, done=done)


def _waiting(call: CallState, again: bool) -> CallState:
    """A recheck from before the suspension says nothing about afterwards."""
    approval = call.approval and call.approval._replace(rechecked=None)
    return call._replace(approval=approval, waited=call.wait is not None or (again and call.waited))


def _may_suspend(state: State, reason: SuspendReason) -> Refusal | None:
    if state.lifecycle is Lifecycle.SUSPENDED and (
        state.suspend_reason is not SuspendReason.UNKNOWN_SIDE_EFFECT or reason is not SuspendReason.MANUAL_INTERVENTION
    ):
        return Refusal("suspended", f"the run is suspended ({state.suspend_reason}): resume it before it waits anew")
    refusal = _waits_for(state, reason)
    if refusal:
        return refusal
    if reason is SuspendReason.PENDING_APPROVAL and not state.checkpoint:
        return Refusal("no_checkpoint", "pending_approval: record checkpoint_saved after approval_requested")
    busy = [call.tool for call in state.in_flight() if not call.subagent]
    if busy:
        return Refusal("attempt_in_flight", f"suspend when these attempts are over: {', '.join(busy)}")
    return None


_MISSING = {
    SuspendReason.PENDING_APPROVAL: "no call waits for a decision: record approval_requested first",
    SuspendReason.UNKNOWN_SIDE_EFFECT: "no call's outcome is unknown: record unknown_side_effect first",
    SuspendReason.MANUAL_INTERVENTION: "no unknown call needs a person: record manual_intervention first",
}


def _waits_for(state: State, reason: SuspendReason) -> Refusal | None:
    """The reason is the gravest of the waits; what a sub-agent waits for stands in its own run."""
    waits = state.waits().values()
    graver = [wait for wait in waits if GRAVITY[wait] > GRAVITY[reason]]
    if graver:
        gravest = max(graver, key=GRAVITY.__getitem__)
        return Refusal("graver_wait", f"{reason}: a call waits for something graver, suspend with {gravest}")
    if reason in waits or any(call.subagent and (call.in_flight or call.child_waits) for call in state.calls.values()):
        return None
    return Refusal("nothing_waits", f"{reason}: {_MISSING[reason]}")


def resumed(state: State, event: e.RunResumed) -> Result:
    if state.lifecycle is not Lifecycle.SUSPENDED:
        return Refusal("not_suspended", "only a suspended run can resume: this one is running, go on")
    if any(call.unknown and not call.resend for call in state.calls.values()):
        return Refusal(
            "unresolved", "resume after the unknown side effect was reconciled, or a person said what happened"
        )
    busy = [call.tool for call in state.in_flight()]
    if busy:
        return Refusal("attempt_in_flight", f"record tool_failed (suspended) first for {', '.join(busy)}")
    if state.suspend_reason is SuspendReason.PENDING_APPROVAL and not _decided(state):
        return Refusal("undecided", "resume after a decision was received and rechecked")
    return state._replace(lifecycle=Lifecycle.RUNNING, suspend_reason=None, checkpoint=False)


def _decided(state: State) -> bool:
    """Whether one of the waits is over; the rechecks of the other calls follow when they are executed."""
    approvals = [call.approval for call in _waited(state) if call.approval is not None]
    return _a_child_waits(state) or any(approval.over or approval.rechecked is not None for approval in approvals)


def _waited(state: State) -> list[CallState]:
    """The calls that the run was suspended for."""
    return [call for call in (*state.calls.values(), *state.done.values()) if call.waited]


# the end


def closed(state: State, event: e.RunTraceClosed) -> Result:
    if event.stop_reason not in StopReason.__members__.values():
        names = ", ".join(StopReason)
        return Refusal("stop_reason", f"{event.stop_reason!r} does not close a run: use one of {names}")
    reason = StopReason(event.stop_reason)
    refusal = _may_close(state, event, reason) or _may_leave(state, reason)
    if refusal:
        return refusal
    return State(lifecycle=Lifecycle.CLOSED, stop_reason=reason)


def _may_close(state: State, event: e.RunTraceClosed, reason: StopReason) -> Refusal | None:
    if event.open_children:
        return Refusal("open_children", f"{event.open_children} sub-agent runs are still open: close them first")
    if reason is StopReason.SUCCESS and event.stop_detail:
        return Refusal("detail_of_success", f"success has no detail, not even {event.stop_detail!r}: leave it out")
    busy = [call.tool for call in state.in_flight()]
    if busy:
        return Refusal("attempt_in_flight", f"close when these attempts are over: {', '.join(busy)}")
    if reason is StopReason.UNRESOLVED_SIDE_EFFECT:
        return None if event.actor else Refusal("no_actor", "say who gave up on the side effect: actor=")
    if state.unknown():
        return Refusal(
            "unknown_effect", f"{reason}: a side effect is unknown; reconcile it, or close unresolved_side_effect"
        )
    return None


def _may_leave(state: State, reason: StopReason) -> Refusal | None:
    """Whether what the run waits for may be left at that."""
    if state.lifecycle is not Lifecycle.SUSPENDED:
        if any(call.waits_for_approval for call in state.calls.values()):
            return Refusal("pending_approval", f"{reason}: a call waits for its approval, close the call first")
        return None
    if reason is StopReason.UNRESOLVED_SIDE_EFFECT:
        if state.unknown() or _a_child_waits(state):
            return None
        return Refusal("nothing_unknown", f"{reason}: no side effect is unknown, resume the run or cancel it")
    if reason not in FROM_SUSPENDED:
        return Refusal("suspended", f"{reason}: the run is suspended ({state.suspend_reason}), resume it first")
    return _asked_for(state, reason)


def _asked_for(state: State, reason: StopReason) -> Refusal | None:
    """Nobody closes a waiting run by accident."""
    if reason is StopReason.CANCELLED and not state.cancel_requested:
        return Refusal(
            "not_requested", "cancelled: a suspended run is cancelled on request, record cancel_requested first"
        )
    if reason is StopReason.APPROVAL_EXPIRED and not (_expired(state) or _a_child_waits(state)):
        return Refusal("not_expired", "approval_expired: no approval has expired, record approval_expired first")
    return None


def _a_child_waits(state: State) -> bool:
    return any(call.child_waits for call in state.calls.values())


def _expired(state: State) -> bool:
    return any(call.refused == e.ApprovalExpired.name for call in _waited(state))
