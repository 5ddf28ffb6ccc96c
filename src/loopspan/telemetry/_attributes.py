"""What each event puts on its span: the table from the RunLog to attributes, and from outcomes to span status.

`OPENS` start a span, `ENDS` end it, `INSTANT` are a whole span in one event (from its `started` field to its time),
`MARKS` add attributes to the span that they are on. An event in none of them is a span event and nothing else.

Status is derived from the outcome, never the other way round (lifecycle.md): what is in `FAILED` is ERROR, all else
is left UNSET: success, a suspension, a cancel, a person's no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from opentelemetry.trace import SpanKind

from loopspan import _redact, semconv
from loopspan import events as e

Attributes = dict[str, Any]

CONTENT = (semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES, semconv.TOOL_ARGUMENTS, semconv.TOOL_RESULT)
"""Span attributes that are content."""

FAILED = frozenset({"failed", "timeout", "unknown", "rejected", "error"})
"""Outcomes of spans whose status is ERROR."""

NOT_FAILED_RUNS = frozenset({"success", "cancelled"})
"""Stop reasons that leave the run's status UNSET."""


class Opening(NamedTuple):
    """How an event starts a span."""

    name: Callable[[Any], str]
    attributes: Callable[[Any], Attributes]
    kind: SpanKind = SpanKind.INTERNAL


def span_name(word: str, subject: str | None) -> str:
    """A low-cardinality span name: one word, and a name where one is known."""
    return f"{word} {subject}" if subject else word


def given(**values: Any) -> Attributes:
    """Attributes by their constant's name in semconv, without those that are None."""
    return {getattr(semconv, key): value for key, value in values.items() if value is not None}


def identity(run_id: str, event: e.RunStarted) -> Attributes:
    """What every span of a run carries from its start: ambient attributes, run id, agent, conversation."""
    own: Attributes = {
        key: tuple(value) if isinstance(value, list) else value for key, value in (event.attributes or {}).items()
    }
    own[semconv.RUN_ID] = run_id
    own[semconv.AGENT] = event.agent
    if event.conversation_id is not None:
        own[semconv.CONVERSATION] = event.conversation_id
    return own


def _with_tool(word: str) -> Callable[[Any], str]:
    return lambda event: f"{word} {event.tool}"


def _run_started(event: e.RunStarted) -> Attributes:
    return given(
        OPERATION=semconv.INVOKE_AGENT,
        LIFECYCLE="running",
        PARENT_RUN_ID=event.parent_run_id,
        PARENT_CALL_ID=event.parent_call_id,
        SUBJECT=event.subject,
        GOAL=event.goal,
    )


def _model_requested(event: e.ModelRequested) -> Attributes:
    own = {
        semconv.OPERATION: event.operation,
        semconv.REQUEST_ID: event.request_id,
        semconv.ATTEMPT_NUMBER: event.attempt,
    }
    if event.provider is not None:
        own[semconv.PROVIDER] = event.provider
    if event.model is not None:
        own[semconv.REQUEST_MODEL] = event.model
    if event.backoff_s is not None:
        own[semconv.BACKOFF] = event.backoff_s
    if event.messages is not None:
        own[semconv.INPUT_MESSAGES] = _redact.to_json(event.messages)
    return own


def _call_opened(event: e.ToolCallOpened) -> Attributes:
    own = {
        semconv.TOOL_NAME: event.tool,
        semconv.TOOL_TYPE: semconv.FUNCTION,
        semconv.TOOL_CALL_ID: event.call_id,
        semconv.TOOL_ID_SOURCE: event.id_source,
        semconv.TOOL_ORDINAL: event.ordinal,
    }
    if not event.owned:
        own[semconv.OPERATION] = semconv.EXECUTE_TOOL
    if event.effect is not None:
        own[semconv.TOOL_EFFECT] = event.effect
    if event.digest is not None:
        own[semconv.ARGUMENTS_DIGEST] = event.digest
        own[semconv.ARGUMENTS_SIZE] = event.size
    if event.arguments is not None:
        said = event.arguments
        own[semconv.TOOL_ARGUMENTS] = _redact.clean(said) if isinstance(said, str) else _redact.to_json(said)
    return own


def _tool_started(event: e.ToolStarted) -> Attributes:
    own: Attributes = {semconv.TOOL_NAME: event.tool, semconv.ATTEMPT_NUMBER: event.attempt}
    if event.backoff_s is not None:
        own[semconv.BACKOFF] = event.backoff_s
    if event.key_digest is not None:
        own[semconv.KEY_DIGEST] = event.key_digest
    return own


def _approval_requested(event: e.ApprovalRequested) -> Attributes:
    return given(
        TOOL_NAME=event.tool,
        APPROVAL_ID=event.approval_id,
        APPROVAL_OUTCOME="pending",
        APPROVAL_EXPIRES=event.expires_at,
    )


OPENS: Mapping[type[e.Event], Opening] = {
    e.RunStarted: Opening(lambda event: span_name(semconv.INVOKE_AGENT, event.agent), _run_started),
    e.StepStarted: Opening(lambda event: semconv.STEP, lambda event: {}),
    e.ModelRequested: Opening(lambda event: span_name(semconv.CHAT, event.model), _model_requested, SpanKind.CLIENT),
    e.ToolCallOpened: Opening(
        lambda event: span_name(semconv.EXECUTE_TOOL, event.tool if event.known else None), _call_opened
    ),
    e.ToolStarted: Opening(_with_tool(semconv.ATTEMPT), _tool_started),
    e.ApprovalRequested: Opening(_with_tool(semconv.APPROVAL), _approval_requested),
    e.ReconcileRequested: Opening(_with_tool(semconv.RECONCILE), lambda event: {semconv.TOOL_NAME: event.tool}),
}


def _totals(event: Any) -> Attributes:
    own: Attributes = {key: value for key, value in zip(_TOTALS, _used(event), strict=True) if value is not None}
    if event.usage_incomplete:
        own[semconv.TOTAL_INCOMPLETE] = True
    for amount in event.cost or ():
        own[f"{semconv.TOTAL_COST}{amount['source']}.{amount['currency'].lower()}"] = float(amount["amount"])
    if event.unpriced:
        own[semconv.COST_UNPRICED] = event.unpriced
        own[semconv.COST_INCOMPLETE] = True
    return own


_USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_TOTALS = tuple(semconv.TOTAL_USAGE + name for name in _USAGE_FIELDS)
_USAGE = (
    semconv.USAGE_INPUT,
    semconv.USAGE_OUTPUT,
    semconv.USAGE_CACHE_READ,
    semconv.USAGE_CACHE_WRITE,
    semconv.USAGE_REASONING,
)
_used = attrgetter(*_USAGE_FIELDS)


def _run_closed(event: e.RunTraceClosed) -> Attributes:
    failed = event.stop_reason not in NOT_FAILED_RUNS
    own = given(
        LIFECYCLE="closed",
        STOP_REASON=event.stop_reason,
        STOP_DETAIL=event.stop_detail,
        ERROR_TYPE=(event.error_type or event.stop_reason) if failed else None,
        STEPS=event.steps,
        ACTIVE=event.active_s,
        WAITING=event.waiting_s,
        PERIODS=event.periods,
        CONCURRENCY_PEAK=event.concurrency_peak,
        EVENTS_DROPPED=event.events_dropped or None,
    )
    own.update(_totals(event))
    own.update(_nested(semconv.TOTAL_USAGE_DESCENDANTS, event.descendants))
    own.update(_nested(semconv.TOTAL_USAGE_DELIVERED, event.delivered))
    return own


def _nested(prefix: str, totals: Any) -> Attributes:
    return {prefix + name: totals[name] for name in _USAGE_FIELDS if totals and totals.get(name) is not None}


def _step_closed(event: e.StepClosed) -> Attributes:
    own: Attributes = {semconv.STEP_OUTCOME: event.outcome}
    if event.unobserved:
        own[semconv.BACKFILL_UNOBSERVED] = event.unobserved
    own.update(_totals(event))
    return own


def _model_responded(event: e.ModelResponded) -> Attributes:
    own: Attributes = {semconv.REQUEST_OUTCOME: "ok"}
    if event.model is not None:
        own[semconv.RESPONSE_MODEL] = event.model
    if event.response_id is not None:
        own[semconv.RESPONSE_ID] = event.response_id
    if event.finish_reasons:
        own[semconv.FINISH_REASONS] = tuple(event.finish_reasons)
    if event.content is not None:
        own[semconv.OUTPUT_MESSAGES] = _redact.to_json(event.content)
    return own


def _model_failed(event: e.ModelFailed) -> Attributes:
    return {semconv.REQUEST_OUTCOME: event.outcome, **_error(event)}


def _call_closed(event: e.ToolCallClosed) -> Attributes:
    own: Attributes = {semconv.TOOL_OUTCOME: event.outcome, semconv.TOOL_ATTEMPTS: event.attempts}
    own.update(_error(event))
    return own


ENDS: Mapping[type[e.Event], Callable[[Any], Attributes]] = {
    e.RunTraceClosed: _run_closed,
    e.StepClosed: _step_closed,
    e.ModelResponded: _model_responded,
    e.ModelFailed: _model_failed,
    e.ToolSpanClosed: lambda event: {semconv.ATTEMPT_OUTCOME: event.outcome},
    e.ToolCallClosed: _call_closed,
    e.ApprovalSpanClosed: lambda event: {semconv.APPROVAL_OUTCOME: event.outcome},
    e.ReconcileSpanClosed: lambda event: {
        semconv.RECONCILE_OUTCOME: event.outcome,
        semconv.RECONCILE_TRIES: event.tries,
    },
}


def failed(event: Any) -> bool:
    """Whether the span that `event` ends has failed."""
    if type(event) is e.RunTraceClosed:
        return event.stop_reason not in NOT_FAILED_RUNS
    return getattr(event, "outcome", None) in FAILED


def _passed(event: e.ValidationPassed) -> Attributes:
    return {
        semconv.TOOL_NAME: event.tool,
        semconv.VALIDATION_OUTCOME: "passed",
        semconv.VALIDATION_STAGE: event.stage,
    }


def _rejected(event: Any) -> Attributes:
    return given(
        TOOL_NAME=event.tool,
        VALIDATION_OUTCOME="rejected",
        VALIDATION_STAGE=event.stage,
        VALIDATION_REASON=event.reason,
        ERROR_TYPE=getattr(event, "rejection", event.name),
    )


def _backfill(event: Any) -> str:
    return span_name(semconv.BACKFILL, event.tool if event.known else None)


def _backfilled(outcome: str) -> Callable[[Any], Attributes]:
    return lambda event: {semconv.TOOL_NAME: event.tool, semconv.BACKFILL_OUTCOME: outcome}


def _decided(event: e.ApprovalDecisionReceived) -> Attributes:
    return given(
        TOOL_NAME=event.tool,
        APPROVAL_ID=event.approval_id,
        APPROVAL_OUTCOME="approved" if event.approved else "denied",
        APPROVAL_DECIDED_BY=event.decided_by,
    )


def _expired(event: e.ApprovalExpired) -> Attributes:
    return given(TOOL_NAME=event.tool, APPROVAL_ID=event.approval_id, APPROVAL_OUTCOME="expired")


_WAITED = {None: "pending", True: "approved", False: "denied"}


def _human_wait(event: e.HumanWait) -> Attributes:
    return given(TOOL_NAME=event.tool, APPROVAL_OUTCOME=_WAITED[event.approved], APPROVAL_DECIDED_BY=event.decided_by)


def _manual(event: e.ManualDecisionReceived) -> Attributes:
    return given(TOOL_NAME=event.tool, RECONCILE_OUTCOME=event.outcome, RECONCILE_ACTOR=event.actor)


INSTANT: Mapping[type[e.Event], Opening] = {
    e.ValidationPassed: Opening(_with_tool(semconv.VALIDATE), _passed),
    e.ValidationRejected: Opening(
        lambda event: span_name(semconv.VALIDATE, None if event.rejection == "unknown_tool" else event.tool), _rejected
    ),
    e.PermissionDenied: Opening(_with_tool(semconv.VALIDATE), _rejected),
    e.ToolResultBackfilled: Opening(_backfill, _backfilled("backfilled")),
    e.BackfillMissing: Opening(_backfill, _backfilled("missing")),
    e.ApprovalDecisionReceived: Opening(_with_tool(semconv.APPROVAL_WAIT), _decided),
    e.ApprovalExpired: Opening(_with_tool(semconv.APPROVAL_WAIT), _expired),
    e.HumanWait: Opening(lambda event: span_name(semconv.APPROVAL_WAIT, event.tool), _human_wait),
    e.ManualDecisionReceived: Opening(_with_tool(semconv.MANUAL_INTERVENTION), _manual),
}


def _usage(event: e.UsageObserved) -> Attributes:
    return {key: value for key, value in zip(_USAGE, _used(event), strict=True) if value is not None}


def _error(event: Any) -> Attributes:
    """The class of the error of a failure: whoever counts error.type counts no cancel and no person's no."""
    if event.error_type is None or getattr(event, "outcome", "unknown") not in FAILED:
        return {}
    return {semconv.ERROR_TYPE: event.error_type}


MARKS: Mapping[type[e.Event], Callable[[Any], Attributes]] = {
    e.UsageObserved: _usage,
    e.ToolFailed: _error,
    e.UnknownSideEffect: _error,
    e.ToolResult: lambda event: {} if event.content is None else {semconv.TOOL_RESULT: _redact.to_json(event.content)},
    e.RunSuspended: lambda event: {semconv.LIFECYCLE: "suspended"},
}
