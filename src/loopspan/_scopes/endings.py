"""How a run ends: from the way that its loop function was left to a stop reason (lifecycle.md, *How a run ends*)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from loopspan import _guard, _redact
from loopspan._scopes.cancels import cancel_detail
from loopspan._scopes.commands import Outcome
from loopspan.errors import LoopspanError, UnresolvedSideEffect
from loopspan.reasons import StopReason
from loopspan.values import End, Streamed

if TYPE_CHECKING:
    from loopspan._scopes.run import Run

REFUSALS = {
    "refusal": "refusal",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "safety": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
}
"""Finish reasons of all providers, in lower case, after which a returning loop has not succeeded, as stop details."""


class Ending(NamedTuple):
    """Why a run closes."""

    reason: StopReason
    detail: str | None = None
    error: BaseException | None = None


def of(run: Run, outcome: Outcome) -> Ending:
    """The ending of a loop function that was left with `outcome`."""
    error = outcome.error
    if error is None or isinstance(error, run.options.control_flow):
        return _returned(run, outcome)
    return _raised(run, error)


def _returned(run: Run, outcome: Outcome) -> Ending:
    if run.decision is not None:
        return run.decision
    if run.options.outcome is not None:
        return _mapped(run, outcome)
    answer = run.last_answer
    for reason in answer.finish_reasons if answer else ():
        detail = REFUSALS.get(str(reason).lower())
        if detail is not None:
            return Ending(StopReason.MODEL_FAILED, detail)
    return Ending(StopReason.SUCCESS)


UNMAPPED = Ending(StopReason.LOOP_ERROR, "outcome_unmapped")


def _mapped(run: Run, outcome: Outcome) -> Ending:
    """What the user's `outcome` says; what it cannot say is loop_error, never success."""
    try:
        return _said(run, outcome)
    except Exception as error:  # under strict: the run is over all the same
        run.close(UNMAPPED._replace(error=error))
        raise


def _said(run: Run, outcome: Outcome) -> Ending:
    hook: Any = run.options.outcome
    value = outcome.value
    result = value.value if isinstance(value, Streamed) else value
    end = End(result, run.arguments, run.instance, run.last_answer, outcome.error)
    said = _guard.contained("the outcome= hook", hook, end, default=UNMAPPED)
    if isinstance(said, Ending):
        return said
    try:
        reason, detail = said if isinstance(said, tuple) else (said, None)
        ending = Ending(StopReason(reason), None if detail is None else _redact.name(detail))
    except (ValueError, TypeError):
        ending = UNMAPPED
    if ending is UNMAPPED or (ending.reason is StopReason.SUCCESS and ending.detail is not None):
        names = ", ".join(StopReason)
        problem = ValueError(
            f"outcome= returned {_redact.to_json(said)[:100]}: return one of {names}, or (reason, detail); "
            "success has no detail"
        )
        _guard.fault("the outcome= hook", problem)
        return UNMAPPED
    return ending


def _raised(run: Run, error: BaseException) -> Ending:
    if isinstance(error, UnresolvedSideEffect):
        return Ending(StopReason.UNRESOLVED_SIDE_EFFECT, None, error)
    detail = cancel_detail(error)
    if detail is not None:
        if run.decision is not None and run.decision.reason is StopReason.CANCELLED:
            detail = run.decision.detail or detail  # somebody asked for it, and this is how it was done
        return Ending(StopReason.CANCELLED, detail, error)
    for leaf in _leaves(error):
        reason = getattr(leaf, "stop_reason", None) if isinstance(leaf, LoopspanError) else None
        reason = reason or run.reason_left(leaf)
        if reason is not None:
            return Ending(StopReason(reason), None, error)
    return Ending(StopReason.LOOP_ERROR, None, error)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and what its groups hold."""
    seen: set[int] = set()
    queue: list[BaseException] = [error]
    while queue:
        one = queue.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if one.__cause__ is not None:
            queue.append(one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            queue.extend(one.exceptions)
