"""From accepted events to metrics. No id is ever an attribute; names from outside are bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import set_span_in_context

from loopspan import events as e
from loopspan import semconv
from loopspan.telemetry._instruments import Instruments, RequestAttributes
from loopspan.telemetry._spans import Handle

FLUSH_STEPS = 20
"""Counters are added to when a run closes, and after this many steps of a longer one."""

NAMES_LIMIT = 200
"""Different models, tools, agents or errors that get a series of their own; further ones are counted as `_OTHER`."""

_SECOND = 1_000_000_000
_NO_CONTEXT = Context()


class MetricRecorder:
    """Records the metrics of one run."""

    __slots__ = ("_agent", "_counted", "_instruments", "_steps", "_tool_calls", "_unknown", "_unlisted")

    def __init__(self, instruments: Instruments, agent: str) -> None:
        self._instruments = instruments
        self._agent = {semconv.AGENT: self._bounded(semconv.AGENT, agent)}
        self._unlisted: set[tuple[Any, ...]] = set()
        self._unknown: dict[tuple[Any, ...], str] = {}
        self._tool_calls = 0
        self._counted: dict[tuple[Any, ...], list[Any]] = {}
        self._steps = 0

    def _bounded(self, key: str, name: str) -> str:
        known = self._instruments.known.setdefault(key, set())
        if name in known:
            return name
        if len(known) >= NAMES_LIMIT:
            return semconv.OTHER
        known.add(name)
        return name

    def _error(self, handle: Handle) -> dict[str, Any]:
        """The error of a span, if any; a `failure=` hook may name as many as it likes."""
        kind = handle.own.get(semconv.ERROR_TYPE)
        return {} if kind is None else {semconv.ERROR_TYPE: self._bounded(semconv.ERROR_TYPE, kind)}

    def event(self, event: e.Event, time: int, handle: Handle) -> None:
        """Record what `event` means for metrics, inside the context of its span, so that exemplars find the trace."""
        rule = _RULES.get(type(event))
        if rule is not None:
            rule(self, event, time, handle)

    def _record(self, name: str, value: float, attributes: dict[str, Any], context: Context) -> None:
        self._instruments.record(name, value, attributes, context)

    def _count(self, name: str, value: float, attributes: dict[str, Any]) -> None:
        """Add to a counter, later: one addition a series and FLUSH_STEPS steps costs less than one an event."""
        kept = self._counted.setdefault((name, *attributes.items()), [name, 0, attributes])
        kept[1] += value

    def _flush(self, context: Context) -> None:
        counted, self._counted = self._counted, {}
        for name, value, attributes in counted.values():
            self._instruments.record(name, value, attributes, context)

    # the run

    def _started(self, event: e.RunStarted, time: int, handle: Handle) -> None:
        self._record(semconv.M_RUN_STARTED, 1, self._agent, _inside(handle))

    def _closed(self, event: e.RunTraceClosed, time: int, handle: Handle) -> None:
        for tool in self._unknown.values():
            self._count(semconv.M_UNKNOWN, 1, {**_tool(tool), semconv.RESOLUTION: "unresolved"})
        reason = {**self._agent, semconv.STOP_REASON: event.stop_reason}
        context = _inside(handle)
        self._record(semconv.M_RUN_CLOSED, 1, reason, context)
        self._record(semconv.M_RUN_ACTIVE, event.active_s, reason, context)
        self._record(semconv.M_CONCURRENCY, event.concurrency_peak, self._agent, context)
        agent = {**self._agent, **self._error(handle)}
        self._record(semconv.M_INVOKE_AGENT_DURATION, (time - handle.start) / _SECOND, agent, context)
        self._record(semconv.M_INVOKE_AGENT_INFERENCE_CALLS, event.model_calls, self._agent, context)
        self._record(semconv.M_INVOKE_AGENT_TOOL_CALLS, self._tool_calls, self._agent, context)
        self._count(semconv.M_PRODUCED, handle.own.get(semconv.EVENTS_COUNT, 0), {semconv.KIND: "event"})
        self._flush(context)

    def _step_closed(self, event: e.StepClosed, time: int, handle: Handle) -> None:
        context = _inside(handle)
        self._record(semconv.M_STEP_DURATION, (time - handle.start) / _SECOND, self._agent, context)
        for kind, tokens in (("input", event.input_tokens), ("output", event.output_tokens)):
            if tokens is not None:
                self._record(semconv.M_STEP_TOKENS, tokens, {**self._agent, semconv.TOKEN_TYPE: kind}, context)
        self._steps += 1
        if self._steps % FLUSH_STEPS == 0:
            self._flush(context)

    # requests

    def _request(self, handle: Handle) -> RequestAttributes:
        own = handle.own
        operation, provider = own.get(semconv.OPERATION, semconv.CHAT), own.get(semconv.PROVIDER)
        key = (operation, provider, own.get(semconv.REQUEST_MODEL))
        kept = self._instruments.requests.get(key)
        if kept is not None:
            return kept
        made = self._made(*key)
        if len(self._instruments.requests) < NAMES_LIMIT:
            self._instruments.requests[key] = made
        return made

    def _made(self, operation: str, provider: str | None, model: str | None) -> RequestAttributes:
        named: dict[str, Any] = {}
        if provider is not None:
            named[semconv.PROVIDER] = self._bounded(semconv.PROVIDER, provider)
        if model is not None:
            named[semconv.REQUEST_MODEL] = self._bounded(semconv.REQUEST_MODEL, model)
        whole = {semconv.OPERATION: operation, **named}
        return RequestAttributes(whole, {**whole, semconv.TOKEN_MODALITY: "unknown"}, named)

    def _answered(self, event: e.ModelResponded, time: int, handle: Handle) -> None:
        attributes = self._request(handle)
        self._duration(attributes.whole, time, handle)
        if not event.usage_known:
            self._count(semconv.M_USAGE_UNKNOWN, 1, attributes.named)

    def _failed(self, event: e.ModelFailed, time: int, handle: Handle) -> None:
        self._duration({**self._request(handle).whole, **self._error(handle)}, time, handle)

    def _duration(self, attributes: dict[str, Any], time: int, handle: Handle) -> None:
        seconds, context = (time - handle.start) / _SECOND, _inside(handle)
        self._record(semconv.M_INFERENCE_DURATION, seconds, attributes, context)
        self._record(semconv.M_141_OPERATION_DURATION, seconds, attributes, context)

    def _used(self, event: e.UsageObserved, time: int, handle: Handle) -> None:
        attributes, context = self._request(handle), _inside(handle)
        for field, name in _TOKENS:
            tokens = getattr(event, field)
            if tokens is not None:
                self._count(name, tokens, attributes.spent)
        for tokens, name, kind in (
            (event.input_tokens, semconv.M_OPERATION_INPUT, "input"),
            (event.output_tokens, semconv.M_OPERATION_OUTPUT, "output"),
        ):
            if tokens is not None:
                self._record(name, tokens, attributes.whole, context)
                former = {**attributes.whole, semconv.TOKEN_TYPE: kind}
                self._record(semconv.M_141_TOKEN_USAGE, tokens, former, context)
        self._cost(event, attributes.named)

    def _cost(self, event: e.UsageObserved, attributes: dict[str, Any]) -> None:
        if event.unpriced:
            self._count(semconv.M_COST_UNPRICED, 1, attributes)
        if event.cost is not None:
            currency = {semconv.CURRENCY: event.currency, semconv.COST_SOURCE: event.cost_source}
            self._count(semconv.M_COST, float(event.cost), {**attributes, **currency})

    # calls

    def _opened(self, event: e.ToolCallOpened, time: int, handle: Handle) -> None:
        self._tool_calls += 1
        if not event.known:
            self._unlisted.add(_key(event))

    def _call_closed(self, event: e.ToolCallClosed, time: int, handle: Handle) -> None:
        tool: dict[str, Any] = {}
        if _key(event) in self._unlisted:
            self._unlisted.discard(_key(event))
        else:
            tool = _tool(self._bounded(semconv.TOOL_NAME, event.tool))
        self._count(semconv.M_TOOL_CALLS, 1, {**tool, semconv.TOOL_OUTCOME: event.outcome})
        seconds = (time - handle.start) / _SECOND
        self._record(semconv.M_EXECUTE_TOOL_DURATION, seconds, {**tool, **self._error(handle)}, _inside(handle))

    def _attempted(self, event: e.ToolSpanClosed, time: int, handle: Handle) -> None:
        tool = _tool(self._bounded(semconv.TOOL_NAME, event.tool))
        self._count(semconv.M_TOOL_ATTEMPTS, 1, {**tool, semconv.TOOL_OUTCOME: event.outcome, **self._error(handle)})

    def _waited(self, event: Any, time: int, handle: Handle) -> None:
        seconds, context = (time - event.started) / _SECOND, _inside(handle)
        outcome = handle.own.get(semconv.APPROVAL_OUTCOME, "pending")
        tool = _tool(self._bounded(semconv.TOOL_NAME, event.tool)) if event.tool else {}
        self._record(semconv.M_APPROVAL_WAIT, seconds, {**tool, semconv.APPROVAL_OUTCOME: outcome}, context)
        waiting = {**self._agent, semconv.SUSPEND_REASON: "pending_approval"}
        self._record(semconv.M_RUN_WAITING, seconds, waiting, context)

    def _became_unknown(self, event: e.UnknownSideEffect, time: int, handle: Handle) -> None:
        self._unknown[_key(event)] = self._bounded(semconv.TOOL_NAME, event.tool)

    def _resolved(self, event: Any, time: int, handle: Handle) -> None:
        tool = self._unknown.pop(_key(event), None)
        if tool is not None:
            self._count(semconv.M_UNKNOWN, 1, {**_tool(tool), semconv.RESOLUTION: event.outcome})


_TOKENS = (
    ("input_tokens", semconv.M_USAGE + "input_tokens"),
    ("output_tokens", semconv.M_USAGE + "output_tokens"),
    ("cache_read_tokens", semconv.M_USAGE + "cache_read.input_tokens"),
    ("cache_write_tokens", semconv.M_USAGE + "cache_write.input_tokens"),
    ("reasoning_tokens", semconv.M_USAGE + "reasoning.output_tokens"),
)


def _inside(handle: Handle) -> Context:
    """The context of a span, so that exemplars find the trace, also after its end."""
    return set_span_in_context(handle.span, _NO_CONTEXT)


def _key(event: Any) -> tuple[Any, ...]:
    return (event.step, event.call_id, event.ordinal)


def _tool(name: str) -> dict[str, Any]:
    return {semconv.TOOL_NAME: name}


_RULES: dict[type[e.Event], Callable[[MetricRecorder, Any, int, Handle], None]] = {
    e.RunStarted: MetricRecorder._started,
    e.RunTraceClosed: MetricRecorder._closed,
    e.StepClosed: MetricRecorder._step_closed,
    e.ModelResponded: MetricRecorder._answered,
    e.ModelFailed: MetricRecorder._failed,
    e.UsageObserved: MetricRecorder._used,
    e.ToolCallOpened: MetricRecorder._opened,
    e.ToolCallClosed: MetricRecorder._call_closed,
    e.ToolSpanClosed: MetricRecorder._attempted,
    e.ApprovalDecisionReceived: MetricRecorder._waited,
    e.ApprovalExpired: MetricRecorder._waited,
    e.HumanWait: MetricRecorder._waited,
    e.UnknownSideEffect: MetricRecorder._became_unknown,
    e.ReconcileResolved: MetricRecorder._resolved,
    e.ManualDecisionReceived: MetricRecorder._resolved,
}
