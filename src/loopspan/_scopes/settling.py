"""An effect that is unknown, in a run that is not durable: ask the remote side at once, or give up by name."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from loopspan import _guard
from loopspan import events as e
from loopspan._scopes.attempt import ToolAttempt
from loopspan._scopes.call import ToolCall, Verdict
from loopspan._scopes.cancels import cancel_detail
from loopspan._scopes.commands import Command, Invoke, Outcome, Sleep
from loopspan.errors import UnresolvedSideEffect
from loopspan.telemetry._spans import Handle
from loopspan.values import Effect, Intent, Reconciled

TRIES = 3
"""How often the remote side is asked."""

PAUSE = 0.1
"""Seconds before it is asked again."""


def settle(
    call: ToolCall, attempt: ToolAttempt, arguments: Mapping[str, Any], outcome: Outcome
) -> Generator[Command, Outcome, Outcome | None]:
    """Find out what happened. Returns the call's outcome, or None where another attempt is safe."""
    error = outcome.error
    if cancel_detail(error) is not None:
        return outcome
    if _same_key(call, error):
        _resolved(call, attempt, "same_key", call.handle)
        return None
    truth: Reconciled[Any] | None = None
    if call.options.reconcile is not None:
        truth, cut = yield from _ask(call, attempt, arguments)
        if cut is not None:
            return Outcome(error=cut)
    if truth is None:
        return Outcome(error=_unresolved(call, error))
    if truth.outcome == "committed":
        call.verdict = Verdict("ok")
        if call.run.recorder.listening:
            call.run.recorder.add(e.ToolResultReused(**call.where()), call.handle)
        return Outcome(truth.result)
    call.verdict = Verdict("failed", call.verdict.error_type if call.verdict else None)
    return None


def _same_key(call: ToolCall, error: BaseException | None) -> bool:
    """A keyed effect may be sent again with the same key, while the remote side remembers it and the budget lasts."""
    keyed = call.options.effect is Effect.KEYED
    return keyed and call.run.limits.can_retry(call.options.retry, call.attempts, error)


def _resolved(call: ToolCall, attempt: ToolAttempt, outcome: str, handle: Handle) -> None:
    event = e.ReconcileResolved(**call.where(), attempt=attempt.number, outcome=outcome)
    call.run.recorder.add(event, handle)


def _ask(
    call: ToolCall, attempt: ToolAttempt, arguments: Mapping[str, Any]
) -> Generator[Command, Outcome, tuple[Reconciled[Any] | None, BaseException | None]]:
    """(the remote side's answer, None where it cannot tell in as many tries as are allowed; what cut the asking)."""
    recorder, where = call.run.recorder, {**call.where(), "attempt": attempt.number}
    span = recorder.open(e.ReconcileRequested(**where), call.place())
    asked = Outcome()
    tries = 0
    faults: list[Exception] = []
    while tries < TRIES and asked.value is None and cancel_detail(asked.error) is None:
        if tries:
            asked = yield Sleep(PAUSE)
        if asked.error is None or cancel_detail(asked.error) is None:
            tries += 1
            asked = yield Invoke(call, _asker(call), (_intent(call, attempt, arguments),), {}, body=False)
            asked = _told(asked, faults)
    truth: Reconciled[Any] | None = asked.value
    if truth is None:
        recorder.add(e.ReconcileUnresolved(**where, tries=tries), span)
    else:
        _resolved(call, attempt, truth.outcome, span)
    known = "unknown" if truth is None else truth.outcome
    recorder.end(e.ReconcileSpanClosed(**where, outcome=known, tries=tries), span)
    for fault in faults:
        _guard.fault("the reconcile= hook", fault)
    return truth, asked.error


def _asker(call: ToolCall) -> Callable[[Intent], Any]:
    assert call.options.reconcile is not None
    return call.options.reconcile


def _intent(call: ToolCall, attempt: ToolAttempt, arguments: Mapping[str, Any]) -> Intent:
    return Intent(
        run_id=call.run.run_id,
        tool=call.name,
        call_id=call.call_id,
        arguments=arguments,
        idempotency_key=call.idempotency_key,
        attempt=attempt.number,
    )


def _told(answer: Outcome, faults: list[Exception]) -> Outcome:
    """An answer that settles it, or a cancel; `faults` gets what the hook should not have done."""
    if cancel_detail(answer.error) is not None:
        return answer
    value, error = answer.value, answer.error
    if isinstance(error, Exception):
        faults.append(error)
    elif not isinstance(value, Reconciled):
        faults.append(TypeError(f"reconcile= returned {type(value).__name__}: return a loopspan.Reconciled"))
    elif value.outcome in ("committed", "not_committed"):
        return answer
    return Outcome()


def _unresolved(call: ToolCall, error: BaseException | None) -> UnresolvedSideEffect:
    unresolved = UnresolvedSideEffect(
        f"tool {call.name!r}: nobody knows whether the effect of call {call.call_id!r} happened; "
        "give reconcile=, or keep the run in a store so that a person can say"
    )
    unresolved.__cause__ = error
    return unresolved
