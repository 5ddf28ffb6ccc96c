"""What a run says of itself when it closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopspan import _redact
from loopspan import events as e
from loopspan._scopes.endings import Ending
from loopspan._scopes.ledger import Tally, cost_field, usage_fields
from loopspan.reasons import StopReason

if TYPE_CHECKING:
    from loopspan._scopes.run import Run


def step_outcome(ending: Ending) -> str:
    if ending.error is None and ending.reason is not StopReason.CANCELLED:
        return "ok"
    if ending.reason is StopReason.UNRESOLVED_SIDE_EFFECT:
        return "unknown"
    return "cancelled" if ending.reason is StopReason.CANCELLED else "error"


def totals(tally: Tally) -> dict[str, Any] | None:
    """A tally as a nested field of an event; None where nothing was used."""
    if tally.usage is None and not tally.cost.amounts and not tally.requests:
        return None
    out: dict[str, Any] = {"requests": tally.requests, "unpriced": tally.cost.unpriced, "cost": cost_field(tally.cost)}
    if tally.usage is not None:
        out.update(usage_fields(tally.usage), usage_incomplete=tally.usage.incomplete)
    return out


def closing_event(run: Run, ending: Ending, pending: list[dict[str, Any]] | None, now: int) -> e.RunTraceClosed:
    """The event that closes `run` at `now`."""
    limits, error = run.limits, ending.error
    return e.RunTraceClosed(
        stop_reason=ending.reason.value,
        stop_detail=ending.detail,
        error_type=None if error is None else _redact.error_type(error),
        message=None if error is None else _redact.message(error, run.recorder.content),
        actor="not_durable" if ending.reason is StopReason.UNRESOLVED_SIDE_EFFECT else None,
        steps=run.steps_.number,
        model_calls=run.ledger.own.requests,
        tool_attempts=run.tool_attempts,
        descendants=totals(run.ledger.descendants),
        delivered=run.ledger.delivered(),
        active_s=limits.active_s(now),
        waiting_s=limits.waiting(now) / 1_000_000_000,
        concurrency_peak=limits.concurrency_peak,
        pending_calls=pending,
        unconfirmed=run.unconfirmed,
        last_response_model=run.last_response_model,
        **run.ledger.own.fields(),
    )
