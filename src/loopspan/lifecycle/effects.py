"""Rules of an unknown side effect: only the truth, or a person, settles it."""

from __future__ import annotations

from typing import Any

from loopspan import events as e
from loopspan.lifecycle.state import CallState, Refusal, Result, State, open_call, with_call
from loopspan.values import Effect

RESOLUTIONS = ("committed", "not_committed", "same_key")
DECISIONS = ("committed", "not_committed", "abandoned")


def _unknown_call(state: State, event: Any) -> CallState | Refusal:
    call = open_call(state, event)
    if isinstance(call, Refusal):
        return call
    if not call.unknown:
        return Refusal("not_unknown", f"{event.name}: what {event.tool!r} did is known, there is nothing to settle")
    if event.attempt != call.attempts:
        return Refusal("attempt_number", f"{event.name}: attempt {call.attempts} of {event.tool!r} is the unknown one")
    return call


def asks(state: State, event: Any) -> Result:
    call = _unknown_call(state, event)
    return call if isinstance(call, Refusal) else state


def resolved(state: State, event: e.ReconcileResolved) -> Result:
    call = _unknown_call(state, event)
    if isinstance(call, Refusal):
        return call
    if event.outcome not in RESOLUTIONS:
        names = ", ".join(RESOLUTIONS)
        return Refusal("outcome", f"{event.outcome!r} does not resolve a side effect: use one of {names}")
    if event.outcome != "same_key":
        return with_call(state, event, _settle(call, event.outcome))
    if call.effect != Effect.KEYED:
        return Refusal("same_key", f"{call.tool!r} is not keyed, so the same key proves nothing: ask the remote side")
    return with_call(state, event, call._replace(resend=True, manual=False))


def _settle(call: CallState, outcome: str) -> CallState:
    """Known now. What was approved before is looked at again before another attempt."""
    approval = call.approval and call.approval._replace(rechecked=None)
    committed = outcome == "committed"
    return call._replace(
        unknown=False, resend=False, manual=False, committed=committed, settled=not committed, approval=approval
    )


def manual(state: State, event: e.ManualIntervention) -> Result:
    call = _unknown_call(state, event)
    return call if isinstance(call, Refusal) else with_call(state, event, call._replace(manual=True, resend=False))


def manually_decided(state: State, event: e.ManualDecisionReceived) -> Result:
    call = _unknown_call(state, event)
    if isinstance(call, Refusal):
        return call
    if not event.actor:
        return Refusal("no_actor", "a manual decision names who decided: actor=")
    if event.outcome not in DECISIONS:
        names = ", ".join(DECISIONS)
        return Refusal("outcome", f"{event.outcome!r} is no manual outcome: use one of {names}")
    return state if event.outcome == "abandoned" else with_call(state, event, _settle(call, event.outcome))
