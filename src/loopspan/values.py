"""The frozen values that users hand in: what an answer said, which call this is, how to retry, who approves."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import random
from typing import Any, Generic, Literal, TypeVar

from loopspan.errors import ConfigurationError
from loopspan.usage import Cost, Usage

T = TypeVar("T")
Duration = float | dt.timedelta
"""Seconds, or a timedelta."""
Errors = tuple[type[BaseException], ...]


class Effect(StrEnum):
    """What a tool may do outside of the process (lifecycle.md, *Effects*)."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    KEYED = "keyed"
    RECONCILABLE = "reconcilable"
    UNSAFE = "unsafe"


def seconds(value: Duration | None, option: str) -> float | None:
    """`value` as seconds; raises ConfigurationError where it is not a positive, finite duration."""
    if value is None:
        return None
    number = value.total_seconds() if isinstance(value, dt.timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < float("inf"):
        raise ConfigurationError(f"{option}={value!r}: give a positive number of seconds or a timedelta")
    return float(number)


def count(value: int | None, option: str, least: int = 1) -> int | None:
    """`value` as a count; raises ConfigurationError where it is not an integer of at least `least`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{option}={value!r}: give an integer of at least {least}, or None for no limit")
    return value


def function(value: Any, option: str) -> None:
    """Raise ConfigurationError where `value` is neither None nor callable."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{option}={value!r}: give a function, or leave it out")


def flag(value: Any, option: str) -> None:
    """Raise ConfigurationError where `value` is no bool: text such as "no" would count as True."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{option}={value!r}: give True or False")


def text(value: Any, option: str) -> None:
    """Raise ConfigurationError where `value` is neither None nor text."""
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"{option}={value!r}: give text, or leave it out")


def several(value: Any, cls: type, option: str, what: str) -> None:
    """Raise ConfigurationError where `value` is neither None nor a list or tuple of `cls`: `what`, in words."""
    fits = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
    if value is not None and not (fits and all(isinstance(item, cls) for item in value)):
        raise ConfigurationError(f"{option}={value!r}: give a list of {what}, or leave it out")


def exceptions(value: Any, option: str) -> Errors:
    """`value`, one exception class or several, as a tuple; raises ConfigurationError for anything else."""
    classes = (value,) if isinstance(value, type) else value
    if not isinstance(classes, Collection) or not all(_is_exception(cls) for cls in classes):
        raise ConfigurationError(f"{option}={value!r}: give exception classes")
    return tuple(classes)


def _is_exception(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, BaseException)


@dataclass(frozen=True, slots=True)
class Call:
    """One logical tool call: which tool, with what, under which id (None where the provider gives none)."""

    name: str
    arguments: Any = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model's answer says, for answers of a shape that loopspan does not know.

    `tool_calls` None means that nobody knows whether it asks for tools; an empty sequence means that it asks for none.
    `content`, `reasoning`, token ids and log probabilities are content: they leave the process only where the content
    policy lets them.
    """

    usage: Usage | None = None
    cost: Cost | None = None
    model: str | None = None
    finish_reasons: Sequence[str] = ()
    tool_calls: Sequence[Call] | None = None
    id: str | None = None
    content: Any = None
    reasoning: Any = None
    prompt_token_ids: Sequence[int] | None = None
    completion_token_ids: Sequence[int] | None = None
    logprobs: Any = None

    def __post_init__(self) -> None:
        if self.usage is not None and not isinstance(self.usage, Usage):
            raise ConfigurationError(f"Answer(usage={self.usage!r}): give a loopspan.Usage: Usage.parse makes one")
        if self.cost is not None and not isinstance(self.cost, Cost):
            raise ConfigurationError(f"Answer(cost={self.cost!r}): give a loopspan.Cost")
        if self.tool_calls:
            several(self.tool_calls, Call, "Answer(tool_calls)", "loopspan.Call")
        if isinstance(self.finish_reasons, str):
            raise ConfigurationError(f"Answer(finish_reasons={self.finish_reasons!r}): give a list of texts")


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """What `read` gets for a stream: every chunk in order, and the value that the generator returned."""

    chunks: Sequence[Any]
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """What `outcome` gets: how the loop function returned, or which exception of `control_flow=` it raised."""

    result: Any
    arguments: Mapping[str, Any]
    self: Any = None
    last_answer: Answer | None = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Retry:
    """How often an attempt may be repeated, and how long to wait in between.

    `on` lists the exceptions that are worth another attempt. `wait` is seconds, or a function of the number of the
    failed attempt (1, 2, …) that returns seconds; without it the wait doubles from half a second to a minute. `jitter`
    is the share of the wait that is random, 0 to 1. Waits are never part of an attempt's duration.
    """

    max_attempts: int = 3
    on: Errors = (Exception,)
    wait: Duration | Callable[[int], float] | None = None
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if count(self.max_attempts, "Retry(max_attempts)") is None:
            raise ConfigurationError("Retry(max_attempts=None): give an integer: nothing is repeated without an end")
        object.__setattr__(self, "on", exceptions(self.on, "Retry(on)"))
        if not self.on:
            raise ConfigurationError("Retry(on=()): give the exception classes that are worth another attempt")
        if not isinstance(self.jitter, int | float) or not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"Retry(jitter={self.jitter!r}): give a share from 0 to 1")
        if not callable(self.wait) and self.wait not in (0, dt.timedelta(0), None):
            seconds(self.wait, "Retry(wait)")

    def backoff(self, attempt: int) -> float:
        """Seconds to wait after failed attempt number `attempt`.

        Raises what a function `wait` raises, ValueError where it returns no number.
        """
        if callable(self.wait):
            base = float(self.wait(attempt))
            if not math.isfinite(base):
                raise ValueError(f"wait= returned {base}: return a finite number of seconds")
        elif self.wait is None:
            base = doubling(attempt)
        else:
            base = self.wait.total_seconds() if isinstance(self.wait, dt.timedelta) else float(self.wait)
        return max(0.0, base * (1 - self.jitter * random()))


def doubling(attempt: int) -> float:
    """The wait in seconds after failed attempt number `attempt` that doubles from half a second to a minute."""
    return min(0.5 * 2.0 ** min(attempt - 1, 7), 60.0)


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer to an approval. Raises ConfigurationError where `approved` is no bool: "no" is not a yes."""

    approved: bool
    by: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        flag(self.approved, "Decision(approved)")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ApprovalRequest:
    """What `decide` gets: which call waits, with what, until when (UTC)."""

    id: str
    run_id: str
    tool: str
    arguments: Any
    arguments_digest: str
    requested_at: dt.datetime
    expires_at: dt.datetime
    policy_version: str | None = None
    resource: Any = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Approval:
    """A call waits until a person has decided.

    `expires_in` is mandatory: expiry is never approval. `when(arguments)` says which calls need it (all without it).
    `resource(arguments)` gives facts that must not change until execution. `decide(request)` asks in this process and
    returns a bool or a `Decision`; without it the run suspends, which needs a store.
    """

    expires_in: Duration
    when: Callable[[Mapping[str, Any]], bool] | None = None
    approvers: Sequence[str] | None = None
    resource: Callable[[Mapping[str, Any]], Any] | None = None
    policy_version: str | None = None
    decide: Callable[[ApprovalRequest], Any] | None = None

    def __post_init__(self) -> None:
        if seconds(self.expires_in, "Approval(expires_in)") is None:
            raise ConfigurationError("Approval(expires_in=None): say how long a person has; expiry is never approval")
        several(self.approvers, str, "Approval(approvers)", "names")
        text(self.policy_version, "Approval(policy_version)")
        for option in ("when", "resource", "decide"):
            function(getattr(self, option), f"Approval({option})")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Intent:
    """What `reconcile` gets: the attempt whose outcome nobody knows."""

    run_id: str
    tool: str
    call_id: str
    arguments: Mapping[str, Any]
    idempotency_key: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Reconciled(Generic[T]):
    """What `reconcile` answers: `committed(result)`, `not_committed()` or `unknown()`."""

    outcome: Literal["committed", "not_committed", "unknown"]
    result: T | None = field(default=None)

    def __post_init__(self) -> None:
        if self.outcome not in ("committed", "not_committed", "unknown"):
            raise ConfigurationError(f"Reconciled({self.outcome!r}): use .committed(…), .not_committed(), .unknown()")

    @classmethod
    def committed(cls, result: T) -> Reconciled[T]:
        """The effect happened; `result` is what the call returns."""
        return cls("committed", result)

    @classmethod
    def not_committed(cls) -> Reconciled[T]:
        """The effect did not happen: another attempt is safe."""
        return cls("not_committed")

    @classmethod
    def unknown(cls) -> Reconciled[T]:
        """The remote system cannot tell."""
        return cls("unknown")
