"""Approval inside this process: ask, wait, recheck. Expiry is never approval, and neither is a check that fails."""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Mapping
from typing import Any

from loopspan import _clock, _guard, _redact
from loopspan import events as e
from loopspan._scopes.call import ToolCall
from loopspan._scopes.commands import Command, Invoke, Outcome
from loopspan._scopes.proposals import canonical
from loopspan.errors import ApprovalDenied, ApprovalExpired, CallTimeout, StoreRequired
from loopspan.values import Approval, ApprovalRequest, Decision, seconds

_ROUNDS = 3
"""How often a call is asked for anew when what was approved has changed."""

Refusal = BaseException | None


def ask(call: ToolCall, arguments: Mapping[str, Any]) -> Generator[Command, Outcome, Refusal]:
    """Ask where the tool needs it. Returns None for a call that may be executed, else the error; the call is closed."""
    policy = call.options.approval
    if policy is None:
        return None
    if policy.when is not None and not _guard.contained("the when= hook", policy.when, arguments, default=True):
        return None
    if policy.decide is None:
        call.close("cancelled")
        return StoreRequired(
            f"tool {call.name!r} waits for an approval that would have to outlive this process: give "
            "Approval(decide=...) to ask here, or keep the run in a store"
        )
    for _ in range(_ROUNDS):
        refused, superseded = yield from _round(call, policy, arguments)
        if not superseded:
            return refused
    call.close("denied", "approval_superseded")
    return ApprovalDenied(
        f"tool {call.name!r}: what was approved had changed {_ROUNDS} times, or could not be looked at; "
        "its body was not entered"
    )


def again(call: ToolCall, arguments: Mapping[str, Any]) -> Generator[Command, Outcome, Refusal]:
    """Before an attempt that follows one whose effect did not happen: what was approved is looked at once more."""
    asked: _Asked | None = call.approved
    if asked is None or (call.verdict is not None and call.verdict.outcome == "unknown"):
        return None
    if call.run.recorder.anchor.now() >= asked.expires_at:
        return _expired(asked)
    refused, superseded = _recheck(asked, arguments)
    return (yield from ask(call, arguments)) if superseded else refused


class _Asked:
    """One request for approval."""

    def __init__(self, call: ToolCall, policy: Approval, arguments: Mapping[str, Any]) -> None:
        self.call = call
        self.policy = policy
        self.id = _clock.new_id()
        self.digest = _redact.digest(canonical(arguments))
        self.resource = _resource(policy, arguments)
        self.shown = None if self.resource is _UNSEEN else self.resource
        self.wait_s = seconds(policy.expires_in, "expires_in") or 0.0
        self.requested_at = call.run.recorder.anchor.now()
        self.expires_at = self.requested_at + int(self.wait_s * 1_000_000_000)

    def where(self) -> dict[str, Any]:
        return {**self.call.where(), "approval_id": self.id}

    def request(self, arguments: Mapping[str, Any]) -> ApprovalRequest:
        return ApprovalRequest(
            id=self.id,
            run_id=self.call.run.run_id,
            tool=self.call.name,
            arguments=arguments,
            arguments_digest=self.call.digest or "",
            requested_at=_utc(self.requested_at),
            expires_at=_utc(self.expires_at),
            policy_version=self.policy.policy_version,
            resource=self.shown,
        )


def _utc(nanoseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(nanoseconds / 1_000_000_000, dt.UTC)


_UNSEEN: Any = object()
"""The facts of a resource that could not be looked at: never the same as any others."""


def _resource(policy: Approval, arguments: Mapping[str, Any]) -> Any:
    if policy.resource is None:
        return None
    return _guard.contained("the resource= hook", policy.resource, arguments, default=_UNSEEN)


def _differ(one: Any, other: Any) -> bool:
    """Whether facts have changed, or cannot be compared."""
    return one is _UNSEEN or other is _UNSEEN or bool(one != other)


def _round(
    call: ToolCall, policy: Approval, arguments: Mapping[str, Any]
) -> Generator[Command, Outcome, tuple[Refusal, bool]]:
    """(error or None, whether it must be asked anew)."""
    run, asked = call.run, _Asked(call, policy, arguments)
    event = e.ApprovalRequested(
        **asked.where(),
        requested_at=asked.requested_at,
        expires_at=asked.expires_at,
        digest=call.digest,
        policy_version=policy.policy_version,
        resource=None if asked.shown is None else _redact.digest(_redact.to_json(asked.shown, sort=True)),
    )
    span = run.recorder.open(event, call.place())
    run.recorder.end(e.ApprovalSpanClosed(**asked.where()), span)
    decide: Any = policy.decide
    run.limits.wait_begins(asked.requested_at)
    outcome = yield Invoke(call, decide, (asked.request(arguments),), {}, asked.wait_s, body=False)
    now = run.recorder.anchor.now()
    run.limits.wait_ends(now)
    if isinstance(outcome.error, BaseException) and not isinstance(outcome.error, Exception):
        call.close("cancelled", _redact.error_type(outcome.error))
        return outcome.error, False
    if now >= asked.expires_at or isinstance(outcome.error, CallTimeout):
        return _expired(asked), False
    return _decided(asked, _decision(outcome, policy), arguments)


def _decision(outcome: Outcome, policy: Approval) -> Decision:
    """What was decided; an answer that is none, or a person who may not, is a no."""
    value = outcome.value
    if outcome.error is not None:
        _guard.fault("the decide= hook", outcome.error)  # type: ignore[arg-type]  # an Exception, see _round
        return Decision(False, None, "the decision could not be asked for")
    decision = Decision(value) if isinstance(value, bool) else value
    if not isinstance(decision, Decision):
        _guard.fault(
            "the decide= hook", TypeError(f"decide= returned {type(value).__name__}: return a bool or a Decision")
        )
        return Decision(False, None, "the answer was neither yes nor no")
    if decision.approved and policy.approvers is not None and decision.by not in policy.approvers:
        return Decision(False, decision.by, f"{decision.by!r} may not approve this")
    return decision


def _expired(asked: _Asked) -> ApprovalExpired:
    call = asked.call
    call.run.recorder.instant(e.ApprovalExpired(**asked.where(), started=asked.requested_at), call.run.place())
    call.close("expired", "approval_expired")
    return ApprovalExpired(f"tool {call.name!r}: nobody decided within {asked.wait_s:g} s; its body was not entered")


def _decided(asked: _Asked, decision: Decision, arguments: Mapping[str, Any]) -> tuple[Refusal, bool]:
    call, recorder = asked.call, asked.call.run.recorder
    event = e.ApprovalDecisionReceived(
        **asked.where(),
        approved=decision.approved,
        started=asked.requested_at,
        decided_by=_redact.name(decision.by),
        comment=_redact.clean(decision.comment) if decision.comment and recorder.content.in_events else None,
    )
    recorder.instant(event, call.run.place())
    if not decision.approved:
        recorder.add(e.ApprovalDenied(**asked.where(), reason=event.comment), call.handle)
        call.close("denied", "approval_denied")
        by = f" by {decision.by}" if decision.by else ""
        return ApprovalDenied(f"tool {call.name!r} was denied{by}; its body was not entered"), False
    return _recheck(asked, arguments)


def _recheck(asked: _Asked, arguments: Mapping[str, Any]) -> tuple[Refusal, bool]:
    """Look at everything again, since time has passed."""
    call, recorder = asked.call, asked.call.run.recorder
    changed = _changed(asked, arguments)
    recorder.add(e.ApprovalRecheck(**asked.where(), outcome=changed or "ok", digest=call.digest), call.handle)
    if changed is not None:
        recorder.add(e.ApprovalSuperseded(**asked.where(), reason=changed), call.handle)
        call.digest = _redact.digest(canonical(arguments))
        return None, True
    started = recorder.anchor.now()
    denied = call.permitted(arguments, started, "recheck")
    if denied is None:
        call.passed(started, "recheck")
        call.approved = asked
    return denied, False


def _changed(asked: _Asked, arguments: Mapping[str, Any]) -> str | None:
    if asked.digest != _redact.digest(canonical(arguments)):
        return "arguments"
    now = _resource(asked.policy, arguments)
    if _guard.contained("the resource= hook", _differ, asked.resource, now, default=True):
        return "resource"
    return None
