"""A run as plain values: the seed's summary, and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from loopspan import _redact
from loopspan import events as e
from loopspan._journal import Entry, Unknown
from loopspan.lifecycle import Lifecycle, StopReason
from loopspan.trajectory import reading, totals
from loopspan.trajectory.facts import RunFacts
from loopspan.trajectory.parts import AttemptView, CallView, RequestView, StepView
from loopspan.usage import CostTotals, Usage

VERSION = 1
"""Of the JSON form; a change of a field's meaning gives another one."""


def status(run: RunFacts) -> str:
    """The seed's word for where a run stands."""
    if run.lifecycle is Lifecycle.CLOSED:
        return "completed" if run.stop_reason == StopReason.SUCCESS else "failed"
    if run.lifecycle is Lifecycle.SUSPENDED:
        return "waiting"
    return "resumed" if run.resumed else "running"


def summary(run: RunFacts) -> dict[str, Any]:
    """The seed's dictionary, of plain text and numbers."""
    made: dict[str, Any] = {
        "trace_id": run.run_id,
        "status": status(run),
        "lifecycle": str(run.lifecycle),
        "stop_reason": _text(run.stop_reason),
        "suspend_reason": _text(run.suspend_reason),
        "events": run.names,
        "cost_metric": {
            "model_calls": _count(run, "model_calls", len(run.requests)),
            "tool_attempts": _count(run, "tool_attempts", run.names.count(e.ToolStarted.name)),
            "estimated_tokens": _estimated(run),
        },
    }
    unconfirmed = sum(call.outcome == "accepted" for call in run.tool_calls)
    if unconfirmed:
        made["unconfirmed"] = unconfirmed
    return made


def _count(run: RunFacts, field: str, counted: int) -> int:
    """What was counted; where entries are missing, what the run itself stated if that is more."""
    stated = reading.value(run.closing, field) if run.gaps else None
    return max(counted, int(stated or 0))


def _estimated(run: RunFacts) -> int | None:
    stated: int | None = reading.value(run.closing, "estimated_tokens")
    return totals.simulated_tokens(run.observed.events) if stated is None else int(stated)


def _text(value: str | None) -> str | None:
    return None if value is None else str(value)


def to_json(run: RunFacts) -> str:
    """The whole run as strict JSON text."""
    return _redact.to_json(_run(run))


def log_to_json(runs: Iterable[RunFacts], foreign: int, problems: list[str]) -> str:
    """Several runs as strict JSON text."""
    made = {"version": VERSION, "runs": [_run(run) for run in runs], "foreign": foreign, "problems": problems}
    return _redact.to_json(made)


def _run(run: RunFacts) -> dict[str, Any]:
    return {
        "version": VERSION,
        "run_id": run.run_id,
        "agent_name": run.agent_name,
        "parent_run_id": run.parent_run_id,
        "lifecycle": str(run.lifecycle),
        "status": status(run),
        "stop_reason": _text(run.stop_reason),
        "stop_detail": run.stop_detail,
        "suspend_reason": _text(run.suspend_reason),
        "trace_ids": run.trace_ids,
        "started": run.started,
        "ended": run.ended,
        "usage": _usage(run.usage),
        "usage_with_descendants": _usage(run.usage_with_descendants),
        "cost": _cost(run.cost),
        "requests": [_request(request) for request in run.requests if request.step is None],
        "steps": [_step(step) for step in run.steps],
        "root_pending": run.root_pending,
        "gaps": [list(gap) for gap in run.gaps],
        "problems": run.problems,
        "log": [_entry(entry) for entry in run.log],
    }


def _step(step: StepView) -> dict[str, Any]:
    return {
        "number": step.number,
        "outcome": step.outcome,
        "started": step.started,
        "ended": step.ended,
        "message": step.message,
        "observation": step.observation,
        "usage": _usage(step.usage),
        "cost": _cost(step.cost),
        "requests": [_request(request) for request in step.requests],
        "tool_calls": [_call(call) for call in step.tool_calls],
    }


def _request(request: RequestView) -> dict[str, Any]:
    return {
        "request_id": request.request_id,
        "step": request.step,
        "operation": request.operation,
        "provider": request.provider,
        "model": request.model,
        "response_model": request.response_model,
        "side": request.side,
        "finish_reasons": request.finish_reasons,
        "started": request.started,
        "ended": request.ended,
        "usage": _usage(request.usage),
        "cost": _cost(request.cost),
        "attempts": [_attempt(attempt) for attempt in request.attempts],
    }


def _call(call: CallView) -> dict[str, Any]:
    return {
        "name": call.name,
        "call_id": call.call_id,
        "ordinal": call.ordinal,
        "step": call.step,
        "outcome": call.outcome,
        "error_type": call.error_type,
        "effect": call.effect,
        "id_source": call.id_source,
        "known": call.known,
        "entries": call.entries,
        "started": call.started,
        "ended": call.ended,
        "attempts": [_attempt(attempt) for attempt in call.attempts],
    }


def _attempt(attempt: AttemptView) -> dict[str, Any]:
    return asdict(attempt)


def _usage(usage: Usage) -> dict[str, Any]:
    return asdict(usage)


def _cost(cost: CostTotals) -> dict[str, Any]:
    amounts = [
        {"currency": currency, "source": source, "amount": str(amount)}
        for (currency, source), amount in cost.amounts.items()
    ]
    return {"amounts": amounts, "unpriced": cost.unpriced, "incomplete": cost.incomplete}


def _entry(entry: Entry) -> dict[str, Any]:
    made = {
        "seq": entry.seq,
        "name": entry.name,
        "version": entry.event.version,
        "time": entry.time,
        "trace_id": f"{entry.trace_id:032x}",
        "span_id": f"{entry.span_id:016x}",
        "parent_span_id": None if entry.parent_id is None else f"{entry.parent_id:016x}",
        "fields": _fields(entry.event),
    }
    if isinstance(entry.event, Unknown):
        made["unknown"] = entry.event.problem or True
    return made


def _fields(event: e.Event) -> dict[str, Any]:
    if isinstance(event, Unknown):
        return event.attributes
    return {name: value for name in event.field_names if (value := getattr(event, name)) is not None}
