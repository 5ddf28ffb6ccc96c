"""What the rules know of a run: its state, what it waits for, and the calls that are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from loopspan.reasons import Lifecycle, StopReason, SuspendReason
from loopspan.values import Effect

GRAVITY = {reason: rank for rank, reason in enumerate(SuspendReason)}

HARMLESS = frozenset({Effect.READ_ONLY, Effect.IDEMPOTENT})
"""Effects whose attempts can always be repeated: a failure is a failure, never unknown."""

STRICT = frozenset({Effect.KEYED, Effect.RECONCILABLE, Effect.UNSAFE})
"""Effects that must not happen twice."""

CallKey = tuple[int | None, str, int]


class Refusal(NamedTuple):
    """Why an event is not accepted: the rule's name, and a sentence for people that says the way out."""

    rule: str
    message: str


class Approval(NamedTuple):
    """Where an approval of a call stands; `over` is one that is denied, expired or superseded."""

    id: str
    digest: str | None
    expires_at: int
    approved: bool | None = None
    rechecked: str | None = None
    over: bool = False


class CallState(NamedTuple):
    """What the rules need of a call.

    `attempts` is the number of the last one, `entries` counts those of the budget. `settled`: somebody said that the
    last attempt had no effect. `resend`: it is unknown, to be sent again with the same key. `child_waits`: the last
    attempt ended with a sub-agent that is suspended. `parked`: the span is closed, the call goes on in another period.
    `waited`: the run was suspended for it.
    """

    tool: str
    effect: str | None = None
    max_attempts: int | None = None
    subagent: bool = False
    needs_approval: bool = False
    refused: str | None = None
    approval: Approval | None = None
    attempts: int = 0
    entries: int = 0
    in_flight: bool = False
    committed: bool = False
    unknown: bool = False
    resend: bool = False
    manual: bool = False
    settled: bool = False
    child_waits: bool = False
    parked: bool = False
    waited: bool = False
    key_digest: str | None = None

    @property
    def waits_for_approval(self) -> bool:
        """A person was asked and has not been heard."""
        return self.approval is not None and self.approval.approved is None and not self.approval.over

    @property
    def wait(self) -> SuspendReason | None:
        """What this call makes the run wait for."""
        if self.unknown and not self.resend:
            return SuspendReason.MANUAL_INTERVENTION if self.manual else SuspendReason.UNKNOWN_SIDE_EFFECT
        return SuspendReason.PENDING_APPROVAL if self.waits_for_approval else None

    @property
    def denied(self) -> bool:
        """A person said no."""
        return self.approval is not None and self.approval.approved is False

    @property
    def remembered(self) -> bool:
        """Whether what happened binds a later entry of the same logical call, after this one is closed."""
        return self.denied or self.refused is not None or self.committed or self.effect in STRICT


NO_CALLS: Mapping[CallKey, CallState] = MappingProxyType({})


class State(NamedTuple):
    """A run as the rules see it; immutable.

    `calls` are open; `done` are those closed calls of the current step that still bind (see `CallState.remembered`).
    """

    lifecycle: Lifecycle | None = None
    stop_reason: StopReason | None = None
    suspend_reason: SuspendReason | None = None
    calls: Mapping[CallKey, CallState] = NO_CALLS
    done: Mapping[CallKey, CallState] = NO_CALLS
    step: int = 0
    fence: int = 0
    durable: bool = False
    checkpoint: bool = False
    cancel_requested: bool = False

    def unknown(self) -> list[CallState]:
        """The calls whose effect nobody knows."""
        return [call for call in self.calls.values() if call.unknown]

    def in_flight(self) -> list[CallState]:
        """The calls with an attempt inside the tool's body."""
        return [call for call in self.calls.values() if call.in_flight]

    def waits(self) -> dict[CallKey, SuspendReason]:
        """What the run waits for, by call."""
        return {key: call.wait for key, call in self.calls.items() if call.wait is not None}


NEW = State()
Result = State | Refusal
Rule = Callable[[State, Any], Result]


def key(event: Any) -> CallKey:
    """The logical call that an event belongs to."""
    return (event.step, event.call_id, event.ordinal)


def in_step(state: State, step: int | None) -> State:
    """The state in step number `step`; what bound the calls of the former step is forgotten."""
    return state if step is None or step <= state.step else state._replace(step=step, done=NO_CALLS)


def with_call(state: State, event: Any, call: CallState) -> State:
    return state._replace(calls={**state.calls, key(event): call})


def open_call(state: State, event: Any) -> CallState | Refusal:
    call = state.calls.get(key(event))
    if call is None:
        return Refusal(
            "call_not_open",
            f"{event.name}: call {event.call_id!r} of tool {event.tool!r} is not open: record tool_call_opened first",
        )
    return call
