"""The flow of a tool call: approve, attempt, repeat, settle what is unknown, close."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from loopspan import _redact
from loopspan import events as e
from loopspan._scopes import approving, settling
from loopspan._scopes.attempt import ToolAttempt
from loopspan._scopes.call import ToolCall, Verdict
from loopspan._scopes.cancels import cancel_detail
from loopspan._scopes.commands import Command, Flow, Invoke, Outcome, Sleep
from loopspan.errors import RetryBudgetExhausted, ToolFailed, UnresolvedSideEffect
from loopspan.telemetry._spans import Handle

REFUSED = ("denied", "expired")
"""How a call is closed that a person stopped between two of its attempts."""


class Body(NamedTuple):
    """A tool's body with what it is called with; `arguments` by name, for hooks and people."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arguments: Mapping[str, Any]


def run_body(call: ToolCall, body: Body, *, wrap: bool) -> Flow:
    """Everything after validation. `wrap`: a failure is raised as ToolFailed from the original (the Toolbox's way)."""
    refused = yield from approving.ask(call, body.arguments)
    if refused is not None:
        return Outcome(error=refused)
    outcome = yield from _attempts(call, body)
    if call.outcome in REFUSED:
        return outcome
    verdict = call.verdict or Verdict("cancelled")
    call.finish(verdict.outcome, outcome.value)
    return _left(call, outcome, wrap)


def _attempts(call: ToolCall, body: Body) -> Generator[Command, Outcome, Outcome]:
    backoff: float | None = None
    while True:
        attempt = ToolAttempt(call, backoff)
        outcome = attempt.read((yield Invoke(attempt, body.function, body.args, body.kwargs, call.options.timeout)))
        verdict = attempt.judge(outcome)
        if verdict.outcome == "unknown":
            attempt.close("unknown")
            settled = yield from settling.settle(call, attempt, body.arguments, outcome)
            if settled is not None:
                return settled
            backoff = _retry_wait(call, outcome, call.handle)
        else:
            backoff = None if verdict.outcome in ("ok", "accepted") else _retry_wait(call, outcome, attempt.handle)
            attempt.close(verdict.outcome)
        if backoff is None:
            return outcome
        slept = yield Sleep(backoff)
        if slept.error is not None:
            call.verdict = Verdict("cancelled", _redact.error_type(slept.error))
            return slept
        refused = (yield from approving.again(call, body.arguments)) if verdict.outcome == "unknown" else None
        if refused is not None:
            return Outcome(error=refused)


def _retry_wait(call: ToolCall, outcome: Outcome, handle: Handle) -> float | None:
    """Seconds until the next attempt, on record as tool_retry; None where there is none."""
    retry, error, limits = call.options.retry, outcome.error, call.run.limits
    if retry is None or error is None or not limits.may_retry(retry, call.attempts, error):
        return None
    wait = limits.backoff(retry, call.attempts)
    event = e.ToolRetry(**call.where(), attempt=call.attempts, error_type=_redact.error_type(error), backoff_s=wait)
    call.run.recorder.add(event, handle)
    return wait


def _left(call: ToolCall, outcome: Outcome, wrap: bool) -> Outcome:
    """What the caller gets."""
    error, options = outcome.error, call.options
    if error is None or isinstance(error, (UnresolvedSideEffect, *options.control_flow)):
        return outcome
    if cancel_detail(error) is not None:
        return outcome
    if options.retry is not None and isinstance(error, options.retry.on):
        spent = RetryBudgetExhausted(
            f"tool {call.name!r}: {call.attempts} attempts failed, the last with {type(error).__name__}; "
            "raise Retry(max_attempts=) or retry_budget="
        )
        spent.__cause__ = error
        return Outcome(error=spent)
    call.run.has_left(error, "tool_failed")
    return Outcome(error=tool_failed(call.name, error)) if wrap else outcome


def tool_failed(name: str, error: BaseException) -> ToolFailed:
    """What the Toolbox raises for a tool's own error."""
    failed = ToolFailed(f"tool {name!r} raised {type(error).__name__}")
    failed.__cause__ = error
    return failed
