"""Rules of an approval: asked, decided once, rechecked before it is used; expiry is never approval."""

from __future__ import annotations

from typing import Any

from loopspan import events as e
from loopspan.lifecycle.calls import refused
from loopspan.lifecycle.state import Approval, CallState, Refusal, Result, State, open_call, with_call


def approval_requested(state: State, event: e.ApprovalRequested) -> Result:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.refused:
        return Refusal("refused_call", f"{call.tool!r} was refused ({call.refused}): nobody is asked")
    if event.expires_at <= event.requested_at:
        return Refusal("expiry", "an approval expires after it was requested")
    return with_call(state, event, call._replace(approval=Approval(event.approval_id, event.digest)))


def _approval(state: State, event: Any) -> tuple[CallState, Approval] | Refusal:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.approval is None or call.approval.id != event.approval_id:
        return Refusal("no_approval", f"{event.name}: approval {event.approval_id!r} was not requested for this call")
    return call, call.approval


def decided(state: State, event: e.ApprovalDecisionReceived) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    call, approval = found
    if approval.over:
        return Refusal("approval_over", f"approval {approval.id!r} is over: a late decision changes nothing")
    if approval.approved is not None and approval.approved != event.approved:
        return Refusal("decision_conflict", f"approval {approval.id!r} was decided differently before")
    return with_call(state, event, call._replace(approval=approval._replace(approved=event.approved)))


def rechecked(state: State, event: e.ApprovalRecheck) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    call, approval = found
    if approval.approved is None and event.outcome == "ok":
        return Refusal("undecided", f"approval {approval.id!r} has no decision to recheck")
    return with_call(state, event, call._replace(approval=approval._replace(rechecked=event.outcome)))


def approval_refused(state: State, event: Any) -> Result:
    found = _approval(state, event)
    return found if isinstance(found, Refusal) else refused(state, event)


def superseded(state: State, event: e.ApprovalSuperseded) -> Result:
    found = _approval(state, event)
    if isinstance(found, Refusal):
        return found
    call, approval = found
    return with_call(state, event, call._replace(approval=approval._replace(over=True)))
