"""What the rules know of a run: its state, why it waits or stopped, and the calls that are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from loopspan.reasons import Lifecycle, StopReason, SuspendReason

GRAVITY = {reason: rank for rank, reason in enumerate(SuspendReason)}

CallKey = tuple[int | None, str, int]


class Refusal(NamedTuple):
    """Why an event is not accepted: the rule's name, and a sentence for people."""

    rule: str
    message: str


class Approval(NamedTuple):
    """Where an approval of an open call stands."""

    id: str
    digest: str | None
    approved: bool | None = None
    rechecked: str | None = None
    over: bool = False


class CallState(NamedTuple):
    """What the rules need of an open call."""

    tool: str
    effect: str | None = None
    max_attempts: int | None = None
    subagent: bool = False
    digest: str | None = None
    needs_approval: bool = False
    refused: str | None = None
    approval: Approval | None = None
    attempts: int = 0
    in_flight: bool = False
    unknown: bool = False
    manual: bool = False
    settled: bool = False
    key_digest: str | None = None

    @property
    def waits_for_approval(self) -> bool:
        """A person was asked and has not been heard."""
        return self.approval is not None and self.approval.approved is None and not self.approval.over


class State(NamedTuple):
    """A run as the rules see it; immutable."""

    lifecycle: Lifecycle | None = None
    stop_reason: StopReason | None = None
    suspend_reason: SuspendReason | None = None
    calls: Mapping[CallKey, CallState] = MappingProxyType({})
    checkpoint: bool = False

    def unknown(self) -> list[CallState]:
        """The calls whose effect nobody knows."""
        return [call for call in self.calls.values() if call.unknown]

    def in_flight(self) -> list[CallState]:
        """The calls with an attempt inside the tool's body."""
        return [call for call in self.calls.values() if call.in_flight]


NEW = State()
Result = State | Refusal
Rule = Callable[[State, Any], Result]


def key(event: Any) -> CallKey:
    """The logical call that an event belongs to."""
    return (event.step, event.call_id, event.ordinal)


def with_call(state: State, event: Any, call: CallState) -> State:
    return state._replace(calls={**state.calls, key(event): call})


def open_call(state: State, event: Any) -> CallState | Refusal:
    call = state.calls.get(key(event))
    if call is None:
        return Refusal("call_not_open", f"{event.name}: call {event.call_id!r} of tool {event.tool!r} is not open")
    return call
