"""What the rules know of a run: its state, why it waits or stopped, and the calls that are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple


class Lifecycle(StrEnum):
    """The three states of a run."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class StopReason(StrEnum):
    """Why a run closed: the seed's twelve, and three that real loops need."""

    SUCCESS = "success"
    UNKNOWN_TOOL = "unknown_tool"
    VALIDATION_ERROR = "validation_error"
    PERMISSION_DENIED = "permission_denied"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_EXPIRED = "approval_expired"
    TOOL_FAILED = "tool_failed"
    RETRY_BUDGET_EXHAUSTED = "retry_budget_exhausted"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    MAX_STEPS = "max_steps"
    UNRESOLVED_SIDE_EFFECT = "unresolved_side_effect"
    MODEL_FAILED = "model_failed"
    BUDGET_EXHAUSTED = "budget_exhausted"
    LOOP_ERROR = "loop_error"


class SuspendReason(StrEnum):
    """Why a run waits, the gravest last. A suspend reason never closes a run."""

    PENDING_APPROVAL = "pending_approval"
    UNKNOWN_SIDE_EFFECT = "unknown_side_effect"
    MANUAL_INTERVENTION = "manual_intervention"


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
