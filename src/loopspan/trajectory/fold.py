"""From the entries of a run to its steps, requests and calls: one function for each kind of event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loopspan import events as e
from loopspan._journal import Entry
from loopspan.events.base import InCall, InRequest
from loopspan.trajectory.parts import AttemptView, CallView, RequestView, StepView
from loopspan.trajectory.reading import understood
from loopspan.trajectory.totals import Observed

CallKey = tuple[int | None, str, int]


class Folded:
    """A run by its parts. `loose` are the entries that belong to none, or that are not understood."""

    def __init__(self, *, gaps: bool) -> None:
        self.steps: dict[int, StepView] = {}
        self.requests: dict[str, RequestView] = {}
        self.calls: dict[CallKey, CallView] = {}
        self.loose: list[Entry] = []
        self._proposals: dict[int | None, list[e.ToolCallProposed]] = {}
        self._gaps = gaps

    def step(self, number: int) -> StepView:
        """The step with this number."""
        step = self.steps.get(number)
        if step is None:
            step = self.steps[number] = StepView(number=number, observed=Observed([], gaps=self._gaps))
        return step

    def request(self, event: InRequest) -> RequestView:
        """The logical request that an event belongs to."""
        request = self.requests.get(event.request_id)
        if request is None:
            request = RequestView(request_id=event.request_id, step=event.step)
            self.requests[event.request_id] = request
            if event.step is not None:
                self.step(event.step).requests.append(request)
        return request

    def call(self, event: InCall) -> CallView:
        """The logical call that an event belongs to."""
        key = (event.step, event.call_id, event.ordinal)
        call = self.calls.get(key)
        if call is None:
            call = CallView(step=event.step, call_id=event.call_id, ordinal=event.ordinal, name=event.tool)
            self.calls[key] = call
            if event.step is not None:
                self.step(event.step).tool_calls.append(call)
        return call

    def take(self, entry: Entry) -> None:
        """One entry more."""
        event = understood(entry)
        if isinstance(event, InCall):
            call = self.call(event)
            call.log.append(entry)
            if (change := _CALLS.get(type(event))) is not None:
                change(call, entry.time, event)
        elif isinstance(event, InRequest):
            request = self.request(event)
            request.log.append(entry)
            if (changed := _REQUESTS.get(type(event))) is not None:
                changed(request, entry.time, event)
        elif isinstance(event, e.ToolCallProposed):
            self._proposals.setdefault(event.step, []).append(event)
        elif isinstance(event, _STEP_EVENTS) and event.step is not None:
            step = self.step(event.step)
            step.log.append(entry)
            _STEPS[type(event)](step, entry.time, event)
        else:
            self.loose.append(entry)

    def settle(self) -> None:
        """All entries are in: put the calls in order, and give the steps what their requests used."""
        for step in self.steps.values():
            asked = self._proposals.get(step.number, [])
            step.tool_calls.sort(key=lambda call: _place(call, asked))
            observed = [request.observed for request in step.requests]
            events = [event for one in observed for event in one.events]
            silent = any(one.silent for one in observed)
            step.observed = step.observed._replace(events=events, silent=silent)


def fold(entries: Iterable[Entry], *, gaps: bool) -> Folded:
    """The parts of a run; `gaps` says that entries are missing."""
    folded = Folded(gaps=gaps)
    for entry in entries:
        folded.take(entry)
    for request in folded.requests.values():
        _end_request(request)
    folded.settle()
    return folded


def _place(call: CallView, asked: list[e.ToolCallProposed]) -> int:
    """Where the model asked for a call, by its id, else by name and arguments; those it did not ask for come last."""
    for place, proposal in enumerate(asked):
        if proposal.call_id == call.call_id:
            return place
    for place, proposal in enumerate(asked):
        if proposal.call_id is None and (proposal.tool, proposal.digest) == (call.name, call.digest):
            return place
    return len(asked)


def _attempt(part: CallView | RequestView, number: int) -> AttemptView:
    for attempt in part.attempts:
        if attempt.number == number:
            return attempt
    attempt = AttemptView(number)
    part.attempts.append(attempt)
    return attempt


# steps


def _step_started(step: StepView, time: int, event: e.StepStarted) -> None:
    step.started = time if step.started is None else step.started
    step.outcome = step.ended = None


def _step_closed(step: StepView, time: int, event: e.StepClosed) -> None:
    step.outcome, step.ended = event.outcome, time
    step.unobserved += event.unobserved
    step.message = event.message if step.message is None else step.message
    step.observed = step.observed._replace(closing=event)


def _parse_error(step: StepView, time: int, event: e.ResponseParseError) -> None:
    step.message, step.observation = event.message, event.prompt


_STEP_EVENTS = (e.StepStarted, e.StepClosed, e.ResponseParseError)
_STEPS: dict[type[e.Event], Callable[[StepView, int, Any], None]] = {
    e.StepStarted: _step_started,
    e.StepClosed: _step_closed,
    e.ResponseParseError: _parse_error,
}


# requests


def _requested(request: RequestView, time: int, event: e.ModelRequested) -> None:
    request.started = time if request.started is None else request.started
    request.provider, request.operation, request.side = event.provider, event.operation, event.side
    request.model = event.model or request.model
    attempt = _attempt(request, event.attempt)
    attempt.started, attempt.backoff_s = time, event.backoff_s


def _used(request: RequestView, time: int, event: e.UsageObserved) -> None:
    request.observed = request.observed._replace(events=[*request.observed.events, event])


def _responded(request: RequestView, time: int, event: e.ModelResponded) -> None:
    _ended(request, time, event.attempt, "ok")
    request.response_model = event.model
    request.model = request.model or event.model
    request.finish_reasons = list(event.finish_reasons or ())
    request.first_chunk_s = event.first_chunk_s
    if not event.usage_known:
        request.observed = request.observed._replace(silent=True)


def _failed(request: RequestView, time: int, event: e.ModelFailed) -> None:
    attempt = _ended(request, time, event.attempt, event.outcome)
    attempt.error_type, attempt.message = event.error_type, event.message


def _ended(request: RequestView, time: int, number: int, outcome: str) -> AttemptView:
    attempt = _attempt(request, number)
    attempt.outcome, attempt.ended = outcome, time
    request.ended = time
    return attempt


def _end_request(request: RequestView) -> None:
    """An attempt without an end was billed, perhaps: nobody knows for how much."""
    if any(attempt.outcome is None for attempt in request.attempts):
        request.ended = None
        request.observed = request.observed._replace(silent=True)


_REQUESTS: dict[type[e.Event], Callable[[RequestView, int, Any], None]] = {
    e.ModelRequested: _requested,
    e.UsageObserved: _used,
    e.ModelResponded: _responded,
    e.ModelFailed: _failed,
}


# calls


def _opened(call: CallView, time: int, event: e.ToolCallOpened) -> None:
    call.started = time if call.started is None else call.started
    call.outcome = call.error_type = call.ended = None
    call.effect, call.id_source, call.known, call.digest = event.effect, event.id_source, event.known, event.digest


def _entered(call: CallView, time: int, event: e.ToolStarted) -> None:
    attempt = _attempt(call, event.attempt)
    attempt.started, attempt.backoff_s = time, event.backoff_s


def _succeeded(call: CallView, time: int, event: e.ToolSucceeded) -> None:
    _attempt(call, event.attempt).outcome = event.outcome


def _tool_failed(call: CallView, time: int, event: e.ToolFailed) -> None:
    attempt = _attempt(call, event.attempt)
    attempt.outcome, attempt.error_type, attempt.message = event.outcome, event.error_type, event.message


def _unknown(call: CallView, time: int, event: e.UnknownSideEffect) -> None:
    attempt = _attempt(call, event.attempt)
    attempt.outcome, attempt.error_type, attempt.message = "unknown", event.error_type, event.message


def _left(call: CallView, time: int, event: e.ToolSpanClosed) -> None:
    attempt = _attempt(call, event.attempt)
    attempt.outcome, attempt.ended = event.outcome, time


def _closed(call: CallView, time: int, event: e.ToolCallClosed) -> None:
    call.outcome, call.error_type, call.ended = event.outcome, event.error_type, time


_CALLS: dict[type[e.Event], Callable[[CallView, int, Any], None]] = {
    e.ToolCallOpened: _opened,
    e.ToolStarted: _entered,
    e.ToolSucceeded: _succeeded,
    e.ToolFailed: _tool_failed,
    e.UnknownSideEffect: _unknown,
    e.ToolSpanClosed: _left,
    e.ToolCallClosed: _closed,
}
