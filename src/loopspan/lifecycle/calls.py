"""Rules of a tool call: refused is never entered, one attempt at a time, no effect twice or beside an unknown one."""

from __future__ import annotations

from typing import Any

from loopspan import events as e
from loopspan.lifecycle.state import (
    HARMLESS,
    STRICT,
    CallState,
    Refusal,
    Result,
    State,
    in_step,
    key,
    open_call,
    with_call,
)
from loopspan.reasons import Lifecycle
from loopspan.values import Effect

UNKNOWN_TOOL = "unknown_tool"
REJECTIONS = frozenset({UNKNOWN_TOOL, "validation_error"})
OUTCOMES = frozenset("ok accepted failed rejected denied expired suspended unknown cancelled timeout reused".split())
"""What a call can come to."""

SUCCEEDED = frozenset({"ok", "accepted"})
FAILED = frozenset({"failed", "timeout", "cancelled", "suspended"})


def opened(state: State, event: e.ToolCallOpened) -> Result:
    open_already = state.calls.get(key(event))
    if open_already is not None and not open_already.parked:
        return Refusal("call_open", f"call {event.call_id!r} of tool {event.tool!r} is open: count its ordinal up")
    if open_already is None and event.step is not None and event.step < state.step:
        return Refusal("past_step", f"step {event.step} is over, {state.step} is open: the call belongs there")
    call = open_already or _again(state.done.get(key(event)), event)
    if call is None:
        return with_call(in_step(state, event.step), event, _new(event))
    refused = call.refused if event.known else UNKNOWN_TOOL
    return with_call(in_step(state, event.step), event, call._replace(parked=False, refused=refused))


def _new(event: e.ToolCallOpened) -> CallState:
    refused = None if event.known else UNKNOWN_TOOL
    return CallState(event.tool, event.effect, event.max_attempts, event.subagent, event.needs_approval, refused)


def _again(former: CallState | None, event: e.ToolCallOpened) -> CallState | None:
    """Who repeats a closed call has a new budget and is asked anew, but counts on, and what is bound stays bound."""
    if former is None:
        return None
    approval = former.approval if former.denied else None
    return former._replace(max_attempts=event.max_attempts, entries=0, approval=approval, child_waits=False)


def call_closed(state: State, event: e.ToolCallClosed) -> Result:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if event.outcome not in OUTCOMES:
        return _no_outcome(event, OUTCOMES)
    if call.parked:
        return Refusal(
            "call_parked", f"call {event.call_id!r} is closed for this period: open it again after run_resumed"
        )
    if call.in_flight:
        return Refusal("attempt_in_flight", f"call {event.call_id!r}: record the end of its attempt first")
    waiting = call.waits_for_approval and state.lifecycle is Lifecycle.SUSPENDED
    if call.unknown or waiting or event.outcome == "suspended":
        return with_call(state, event, call._replace(parked=True))
    done = {**state.done, key(event): call} if call.remembered else state.done
    return state._replace(calls={k: other for k, other in state.calls.items() if k != key(event)}, done=done)


def _no_outcome(event: Any, allowed: frozenset[str]) -> Refusal:
    return Refusal("outcome", f"{event.name}: {event.outcome!r} is no outcome, use one of {', '.join(sorted(allowed))}")


def idle_call(state: State, event: Any) -> CallState | Refusal:
    """The call, when its body is not entered at present."""
    call = open_call(state, event)
    if isinstance(call, CallState) and call.in_flight:
        return Refusal("attempt_in_flight", f"{event.name}: record the end of the attempt of {event.tool!r} first")
    return call


# refused before the body


def rejected(state: State, event: e.ValidationRejected) -> Result:
    if event.rejection not in REJECTIONS:
        names = ", ".join(sorted(REJECTIONS))
        return Refusal("rejection", f"{event.rejection!r} is no rejection: use one of {names}")
    return refused(state, event)


def refused(state: State, event: Any) -> Result:
    call = idle_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.committed:
        return committed_call(call)
    approval = call.approval and call.approval._replace(over=True)
    return with_call(state, event, call._replace(refused=event.name, approval=approval))


def reused(state: State, event: e.ToolResultReused) -> Result:
    call = idle_call(state, event)
    if isinstance(call, Refusal):
        return call
    if call.unknown:
        return unknown_attempt(call)
    return with_call(state, event, call._replace(committed=True))


# attempts


def tool_started(state: State, event: e.ToolStarted) -> Result:
    call = idle_call(state, event)
    if isinstance(call, Refusal):
        return call
    refusal = (
        _may_start(call, event) or _may_repeat(call, event) or _may_affect(state, call) or _may_execute(call, event)
    )
    if refusal:
        return refusal
    started = call._replace(
        attempts=event.attempt,
        entries=call.entries + 1,
        in_flight=True,
        unknown=False,
        resend=False,
        settled=False,
        child_waits=False,
        key_digest=event.key_digest,
    )
    return with_call(state, event, started)


def _may_start(call: CallState, event: e.ToolStarted) -> Refusal | None:
    if call.refused:
        return refused_call(call)
    if call.committed:
        return committed_call(call)
    if call.unknown and not call.resend:
        return unknown_attempt(call)
    if call.parked:
        return Refusal("call_parked", f"{call.tool!r} is closed for this period: record tool_call_opened again first")
    return None


def refused_call(call: CallState) -> Refusal:
    return Refusal(
        "refused_call", f"{call.tool!r} was refused ({call.refused}) and is never entered: propose another call"
    )


def committed_call(call: CallState) -> Refusal:
    return Refusal("committed", f"{call.tool!r} is committed: hand its result back (tool_result_reused)")


def unknown_attempt(call: CallState) -> Refusal:
    return Refusal("unknown_attempt", f"the outcome of the last attempt of {call.tool!r} is unknown: reconcile first")


def _may_repeat(call: CallState, event: e.ToolStarted) -> Refusal | None:
    if not call.attempts:
        return None if event.attempt > 0 else Refusal("attempt_number", "attempts are numbered from 1")
    if event.attempt != call.attempts + 1:
        return Refusal("attempt_number", f"attempt {event.attempt} of {call.tool!r}: the next is {call.attempts + 1}")
    if call.max_attempts is not None and call.entries >= call.max_attempts:
        return Refusal(
            "attempt_budget", f"{call.tool!r} has used its attempts ({call.max_attempts}): raise Retry(max_attempts=)"
        )
    if event.key_digest != call.key_digest:
        return Refusal("another_key", f"{call.tool!r}: a retry uses the idempotency key of the first attempt")
    if call.effect == Effect.UNSAFE and not (call.settled or call.child_waits):
        return Refusal("unsafe_retry", f"{call.tool!r} is unsafe, never repeated: could it be keyed or reconcilable?")
    return None


def _may_affect(state: State, call: CallState) -> Refusal | None:
    if len(state.calls) == 1 or call.effect == Effect.READ_ONLY:
        return None
    if any(other.unknown for other in state.calls.values() if other is not call):
        return Refusal("unknown_effect", "a side effect is unknown: reconcile it first, only read-only tools may run")
    return None


def _may_execute(call: CallState, event: e.ToolStarted) -> Refusal | None:
    approval = call.approval
    if approval is None:
        if call.needs_approval:
            return Refusal("not_approved", f"{call.tool!r} needs an approval: record approval_requested first")
        return None
    if approval.over or approval.approved is not True:
        return Refusal("not_approved", f"{call.tool!r} is not approved: wait for the decision, or ask anew")
    if approval.rechecked != "ok":
        return Refusal("not_rechecked", f"{call.tool!r} is approved: record a fresh approval_recheck before its body")
    if approval.digest is not None and approval.digest != event.digest:
        return Refusal("other_arguments", f"{call.tool!r} was approved with other arguments: supersede it, ask anew")
    return None


def _attempt(state: State, event: Any) -> CallState | Refusal:
    """The call whose attempt the event ends."""
    call = open_call(state, event)
    if isinstance(call, CallState) and not (call.in_flight and event.attempt == call.attempts):
        return Refusal(
            "no_attempt",
            f"{event.name}: attempt {event.attempt} of {event.tool!r} is not in flight: tool_started first",
        )
    return call


def attempt_succeeded(state: State, event: e.ToolSucceeded) -> Result:
    call = _attempt(state, event)
    if isinstance(call, Refusal):
        return call
    if event.outcome not in SUCCEEDED:
        return _no_outcome(event, SUCCEEDED)
    once = call.effect in STRICT or call.approval is not None or state.durable
    return with_call(state, event, call._replace(in_flight=False, committed=once))


def attempt_failed(state: State, event: e.ToolFailed) -> Result:
    call = _attempt(state, event)
    if isinstance(call, Refusal):
        return call
    if event.outcome not in FAILED:
        return _no_outcome(event, FAILED)
    if event.outcome == "suspended":
        return _attempt_suspended(state, event, call)
    if state.lifecycle is Lifecycle.SUSPENDED:
        return Refusal("suspended", f"the run is suspended: the attempt of {call.tool!r} ends suspended as well")
    return with_call(state, event, call._replace(in_flight=False))


def _attempt_suspended(state: State, event: e.ToolFailed, call: CallState) -> Result:
    """The body is entered again in another period: that entry is counted, and takes nothing from the budget."""
    if not call.subagent:
        return Refusal(
            "no_subagent", f"{call.tool!r}: only the body of tool(subagent=True) can be suspended: declare it"
        )
    return with_call(state, event, call._replace(in_flight=False, child_waits=True, entries=call.entries - 1))


def attempt_unknown(state: State, event: e.UnknownSideEffect) -> Result:
    call = _attempt(state, event)
    if isinstance(call, Refusal):
        return call
    if call.effect in HARMLESS or (call.effect is None and not state.durable):
        effect = call.effect or "not declared"
        return Refusal(
            "failed_instead", f"{call.tool!r}: its effect is {effect}, so record tool_failed or declare effect="
        )
    return with_call(state, event, call._replace(in_flight=False, unknown=True))
