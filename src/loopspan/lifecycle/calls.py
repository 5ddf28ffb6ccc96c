"""Rules of a tool call: refused is never entered, one attempt at a time, no effect beside an unknown one."""

from __future__ import annotations

from typing import Any

from loopspan import events as e
from loopspan.lifecycle.state import CallState, Refusal, Result, State, key, open_call, with_call
from loopspan.reasons import Lifecycle


def opened(state: State, event: e.ToolCallOpened) -> Result:
    if key(event) in state.calls:
        return Refusal("call_open", f"call {event.call_id!r} of tool {event.tool!r} is open already")
    call = CallState(
        tool=event.tool,
        effect=event.effect,
        max_attempts=event.max_attempts,
        subagent=event.subagent,
        digest=event.digest,
        needs_approval=event.needs_approval,
        refused=None if event.known else "unknown_tool",
    )
    return with_call(state, event, call)


def call_closed(state: State, event: e.ToolCallClosed) -> Result:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.in_flight:
        return Refusal("attempt_in_flight", f"call {event.call_id!r} closes when its attempt is over")
    if call.unknown or (call.waits_for_approval and state.lifecycle is Lifecycle.SUSPENDED):
        return state
    return state._replace(calls={k: other for k, other in state.calls.items() if k != key(event)})


def refused(state: State, event: Any) -> Result:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.in_flight:
        return Refusal("attempt_in_flight", f"{event.name}: the body of {event.tool!r} is already entered")
    approval = call.approval and call.approval._replace(over=True)
    return with_call(state, event, call._replace(refused=event.name, approval=approval))


def tool_started(state: State, event: e.ToolStarted) -> Result:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    refusal = _may_start(state, call, event)
    if refusal:
        return refusal
    started = call._replace(
        attempts=call.attempts + 1, in_flight=True, settled=False, key_digest=event.key_digest or call.key_digest
    )
    return with_call(state, event, started)


def _may_start(state: State, call: CallState, event: e.ToolStarted) -> Refusal | None:
    if call.refused:
        return Refusal("refused_call", f"{call.tool!r} was refused ({call.refused}): its body is never entered")
    if call.in_flight:
        return Refusal("attempt_in_flight", f"{call.tool!r} has an attempt in flight: one at a time")
    if call.unknown:
        return Refusal(
            "unknown_attempt", f"the outcome of the last attempt of {call.tool!r} is unknown: reconcile first"
        )
    if event.attempt < call.attempts + 1:
        return Refusal("attempt_number", f"attempt {event.attempt} of {call.tool!r}: {call.attempts} are on record")
    if call.max_attempts is not None and call.attempts >= call.max_attempts:
        return Refusal("attempt_budget", f"{call.tool!r} has used its {call.max_attempts} attempts")
    return _may_affect(state, call, event) or _may_execute(call, event)


def _may_affect(state: State, call: CallState, event: e.ToolStarted) -> Refusal | None:
    if call.effect != "read_only" and state.unknown():
        return Refusal("unknown_effect", "while a side effect is unknown only read-only tools may run")
    if call.key_digest and event.key_digest and event.key_digest != call.key_digest:
        return Refusal("another_key", f"a retry of {call.tool!r} uses the idempotency key of its first attempt")
    return None


def _may_execute(call: CallState, event: e.ToolStarted) -> Refusal | None:
    approval = call.approval
    if approval is None:
        if call.needs_approval:
            return Refusal("not_approved", f"{call.tool!r} needs an approval before it is executed")
        return None
    if approval.over or approval.approved is not True:
        return Refusal("not_approved", f"{call.tool!r} is not approved")
    if approval.rechecked != "ok":
        return Refusal("not_rechecked", f"{call.tool!r} is approved, but was not rechecked")
    if approval.digest is not None and event.digest is not None and approval.digest != event.digest:
        return Refusal("other_arguments", f"{call.tool!r} was approved with other arguments")
    return None


def _attempt_over(state: State, event: Any, **changes: Any) -> Result:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if not call.in_flight or event.attempt < call.attempts:
        return Refusal("no_attempt", f"{event.name}: attempt {event.attempt} of {event.tool!r} is not in flight")
    return with_call(state, event, call._replace(in_flight=False, **changes))


def attempt_known(state: State, event: Any) -> Result:
    return _attempt_over(state, event)


def attempt_unknown(state: State, event: e.UnknownSideEffect) -> Result:
    return _attempt_over(state, event, unknown=True)
