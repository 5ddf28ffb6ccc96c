"""Rules of an unknown side effect: only the truth, or a person, settles it."""

from __future__ import annotations

from typing import Any

from loopspan import events as e
from loopspan.lifecycle.state import CallState, Refusal, Result, State, open_call, with_call


def _unknown_call(state: State, event: Any) -> CallState | Refusal:
    call = open_call(state, event)
    if isinstance(call, CallState) and not call.unknown:
        return Refusal("not_unknown", f"{event.name}: the outcome of {event.tool!r} is not unknown")
    return call


def asks(state: State, event: Any) -> Result:
    call = _unknown_call(state, event)
    return call if isinstance(call, Refusal) else state


def resolved(state: State, event: e.ReconcileResolved) -> Result:
    call = _unknown_call(state, event)
    if isinstance(call, Refusal):
        return call
    if event.outcome not in ("committed", "not_committed", "same_key"):
        return Refusal(
            "outcome", f"{event.outcome!r} does not resolve a side effect: committed, not_committed or same_key"
        )
    if event.outcome == "same_key" and call.effect != "keyed":
        return Refusal("same_key", f"{call.tool!r} is not keyed: the same key proves nothing")
    return with_call(state, event, _settle(call, event.outcome))


def _settle(call: CallState, outcome: str) -> CallState:
    refused = "committed" if outcome == "committed" else call.refused
    return call._replace(unknown=False, manual=False, settled=True, refused=refused)


def manual(state: State, event: e.ManualIntervention) -> Result:
    call = _unknown_call(state, event)
    return call if isinstance(call, Refusal) else with_call(state, event, call._replace(manual=True))


def manually_decided(state: State, event: e.ManualDecisionReceived) -> Result:
    call = _unknown_call(state, event)
    if isinstance(call, Refusal):
        return call
    if not event.actor:
        return Refusal("no_actor", "a manual decision names its actor")
    if event.outcome == "abandoned":
        return state
    if event.outcome not in ("committed", "not_committed"):
        return Refusal("outcome", f"{event.outcome!r} is no manual outcome: committed, not_committed or abandoned")
    return with_call(state, event, _settle(call, event.outcome))
