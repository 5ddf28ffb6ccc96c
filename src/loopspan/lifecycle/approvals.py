"""Rules of an approval: asked, decided once, rechecked before it is used; expiry is never approval."""

from __future__ import annotations

from typing import Any

from loopspan import events as e
from loopspan.lifecycle.calls import committed_call, idle_call, refused, refused_call, unknown_attempt
from loopspan.lifecycle.state import Approval, CallState, Refusal, Result, State, with_call


def approval_requested(state: State, event: e.ApprovalRequested) -> Result:
    call = idle_call(state, event)
    if isinstance(call, Refusal):
        return call
    refusal = _may_ask(call, event)
    if refusal:
        return refusal
    approval = Approval(event.approval_id, event.digest, event.expires_at)
    return with_call(state, event, call._replace(approval=approval))._replace(checkpoint=False)


def _may_ask(call: CallState, event: e.ApprovalRequested) -> Refusal | None:
    if call.refused:
        return refused_call(call)
    if call.committed:
        return committed_call(call)
    if call.unknown:
        return unknown_attempt(call)
    if event.expires_at <= event.requested_at:
        return Refusal("expiry", "an approval expires after it was requested: give a later expires_at")
    former = call.approval
    if former is None:
        return None
    if not former.over:
        return Refusal(
            "approval_open", f"approval {former.id!r} is open: supersede it before the call is asked for anew"
        )
    if former.id == event.approval_id:
        return Refusal("approval_id", f"approval {former.id!r} is over: a new request has an id of its own")
    return None


def _approval(state: State, event: Any) -> tuple[CallState, Approval] | Refusal:
    """The call and its approval, while that can still change."""
    call = idle_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.approval is None or call.approval.id != event.approval_id:
        return Refusal(
            "no_approval", f"{event.name}: approval {event.approval_id!r} of this call was not requested: ask first"
        )
    if call.approval.over:
        return Refusal("approval_over", f"approval {event.approval_id!r} is over, nothing changes it: ask anew")
    return call, call.approval


def decided(state: State, event: e.ApprovalDecisionReceived) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    call, approval = found
    if event.decided_at is not None and event.decided_at >= approval.expires_at:
        return Refusal("expired", f"approval {approval.id!r} expired before it was decided: record approval_expired")
    if approval.approved is not None and approval.approved != event.approved:
        return Refusal(
            "decision_conflict", f"approval {approval.id!r} was decided differently: the first decision stands"
        )
    return with_call(state, event, call._replace(approval=approval._replace(approved=event.approved)))


def rechecked(state: State, event: e.ApprovalRecheck) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    call, approval = found
    if approval.approved is None and event.outcome == "ok":
        return Refusal("undecided", f"approval {approval.id!r} has no decision to recheck: wait for it")
    return with_call(state, event, call._replace(approval=approval._replace(rechecked=event.outcome)))


def denied(state: State, event: e.ApprovalDenied) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    if not found[0].denied:
        return Refusal("not_denied", f"nobody denied {event.approval_id!r}: record approval_decision_received first")
    return refused(state, event)


def expired(state: State, event: e.ApprovalExpired) -> Result:
    found = _approval(state, event)
    return found if isinstance(found, Refusal) else refused(state, event)


def superseded(state: State, event: e.ApprovalSuperseded) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    call, approval = found
    if call.denied:
        return Refusal("denied", f"approval {approval.id!r} was denied, and that stands: record approval_denied")
    return with_call(state, event, call._replace(approval=approval._replace(over=True)))
