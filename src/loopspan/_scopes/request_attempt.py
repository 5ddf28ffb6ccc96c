"""An attempt of a model request: what was asked, answered and used, on one span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopspan import _redact, semconv
from loopspan import events as e
from loopspan._scopes.commands import Outcome
from loopspan._scopes.context import Scope
from loopspan._scopes.observing import observe
from loopspan._scopes.options import instance
from loopspan._scopes.proposals import Proposal, snapshot, whole
from loopspan._scopes.reading import Reader
from loopspan.errors import ConfigurationError
from loopspan.telemetry._spans import Handle
from loopspan.usage import Cost, Usage
from loopspan.values import Answer, Call

if TYPE_CHECKING:
    pass
from loopspan._scopes.request import Request, ending

_INHERITED = ("usage", "cost", "model", "finish_reasons", "tool_calls", "id", "content", "reasoning")
"""What an attempt takes from the request inside of it."""


class RequestAttempt(Scope):
    """One attempt, as the body sees it: `answer` and `observe_totals` say what the result does not."""

    __slots__ = (
        "_answer", "_ended", "_inner", "_open", "_proposed", "_reader", "_totals", "inner_running", "number", "request",
    )  # fmt: skip

    reads = "managers"

    def __init__(self, request: Request, backoff: float | None = None) -> None:
        super().__init__(request.run, request.scope)
        self.request = request
        self._answer: Answer | None = None
        self._totals: tuple[Usage, Cost | None] | None = None
        self._inner: tuple[Answer | None, BaseException | None, int] | None = None
        self._ended: int | None = None
        self.inner_running = False
        self._proposed = 0
        self._reader = Reader(request.options, request.provider, request.run.recorder.content.in_events)
        self._start(backoff)

    def _start(self, backoff: float | None) -> None:
        request, run = self.request, self.run
        request.attempts += 1
        self.number = request.attempts
        self._open = True
        self.handle = run.recorder.root
        with run.recorder.lock:
            if run.recorder.listening:
                self.handle = self._opened(backoff)
            run.opened(self)
            if request.step is not None:
                request.step.in_flight += 1
            request.release()

    def _opened(self, backoff: float | None) -> Handle:
        request = self.request
        event = e.ModelRequested(
            **self.where(),
            operation=semconv.CHAT,
            provider=request.provider,
            model=request.model,
            backoff_s=backoff,
            side=not request.options.step,
        )
        return self.run.recorder.open(event, request.parent.place())

    def where(self) -> dict[str, Any]:
        """The fields that name this attempt in an event."""
        return {"step": self.request.step_number, "request_id": self.request.id, "attempt": self.number}

    def answer(self, answer: Answer) -> None:
        """Say what the answer said, where loopspan cannot read it."""
        if not isinstance(answer, Answer):
            raise ConfigurationError(f"request.answer({answer!r}): give a loopspan.Answer")
        self._answer = answer

    def observe_totals(self, usage: Usage, *, cost: Cost | None = None) -> None:
        """Say what the client's cumulative counters stand at; the difference to the former reading is this request's.

        `usage` holds totals since the counters began; what did not grow is None, not 0 (seed of Terminus2).
        """
        if not isinstance(usage, Usage):
            raise ConfigurationError(f"request.observe_totals({usage!r}): give a loopspan.Usage with the totals so far")
        instance(cost, Cost, "request.observe_totals(cost)")
        self._totals = (Usage.parse(usage) or usage, cost)

    def host(self) -> Scope:
        """Tools that are called while the answer comes belong to the step: what it asked for so far is proposed."""
        heard = self._reader.heard()
        if heard is not None:
            self._propose(whole(heard.tool_calls or ()))
        return self.request.parent

    def chunk(self, item: Any) -> None:
        """Read a streamed chunk."""
        self._reader.chunk(item)

    def complete(self, value: Any) -> bool:
        """Whether the stream has said why it ended."""
        return self._reader.complete(value)

    def next_inner(self, backoff: float | None) -> None:
        """A request inside this one begins: it is this attempt, or the next one where one was made inside before."""
        with self.run.recorder.lock:
            self.inner_running = True
            if self._inner is None or not self._open:
                return
            (answer, error, self._ended), self._inner = self._inner, None
            self._close()
            if error is None:
                self._responded(answer)
                self.run.ledger.reject()
            else:
                self._failed(error)
                self.request.record_retry(error, backoff or 0.0)
            self._ended = None
            self._start(backoff)

    def inner_done(self, answer: Answer | None, error: BaseException | None) -> None:
        """The request inside is over; it is on record when this attempt is, and so is the time, before any backoff."""
        self.inner_running = False
        self._inner = (answer, error, self.run.recorder.anchor.now())

    def finish(self, outcome: Outcome) -> None:
        """The attempt is over: record what was answered and used, end the span."""
        with self.run.recorder.lock:
            if not self._open:
                return
            self._close()
            try:
                self._finish(outcome)
            except Exception as fault:  # of a hook, under strict
                self._record_failure(fault)
                raise

    def _finish(self, outcome: Outcome) -> None:
        error = outcome.error
        if error is None and not self.run.wants_answers:
            self.run.unread = lambda: self._read(outcome.value)
        elif error is None:
            self._responded(self._read(outcome.value))
        elif isinstance(error, self.request.options.parse_errors):
            self._not_understood(error)
        else:
            self._failed(error, outcome.value)

    def abort(self, error: BaseException | None) -> None:
        """The run ends first."""
        self.finish(Outcome(error=error or GeneratorExit()))

    def _close(self) -> None:
        self._open = False
        self.run.closed(self)
        if self.request.options.retry is not None:
            self.request.hold()
        if self.request.step is not None:
            self.request.step.in_flight -= 1

    def _read(self, value: Any) -> Answer | None:
        """Our own reading; what it lacks is taken from the request inside, so that usage counts once."""
        own = self._answer if self._answer is not None else self._reader.read(value)
        inner = None if self._inner is None else self._inner[0]
        if own is None or inner is None:
            return own or inner
        missing = {name: getattr(inner, name) for name in _INHERITED if not getattr(own, name)}
        return replace(own, **missing)

    def _responded(self, answer: Answer | None) -> None:
        known = self._observe(answer)
        answer = answer or Answer()
        self.run.answered(answer)
        self._record_response(answer, known)
        step = self.request.step
        if step is not None:
            step.answer = answer
        if answer.tool_calls:
            self._propose(answer.tool_calls)
        elif answer.tool_calls is not None and self.run.recorder.listening:
            self.run.recorder.add(e.ModelFinal(**self.where()), self.request.parent.handle)

    def _record_response(self, answer: Answer, known: bool) -> None:
        recorder = self.run.recorder
        if not recorder.listening:
            return
        event = e.ModelResponded(
            **self.where(),
            model=_redact.name(answer.model),
            response_id=_redact.name(answer.id),
            finish_reasons=[_redact.name(reason) for reason in answer.finish_reasons] or None,
            usage_known=known,
            content=answer.content if recorder.content.in_events else None,
        )
        recorder.end(event, self.handle, self._ended)

    def _propose(self, calls: Sequence[Call]) -> None:
        run, step = self.run, self.request.step
        new, self._proposed = calls[self._proposed :], max(self._proposed, len(calls))
        for call in new:
            taken = snapshot(call.arguments) if run.recorder.listening else None
            if step is not None:
                step.proposals.items.append(Proposal(call, taken))
            if taken is not None:
                event = e.ToolCallProposed(
                    step=self.request.step_number,
                    request_id=self.request.id,
                    tool=_redact.name(call.name) or "",
                    call_id=_redact.name(call.call_id),
                    digest=taken.digest,
                    arguments=call.arguments if run.recorder.content.in_events else None,
                )
                run.recorder.add(event, self.request.parent.handle)

    def _observe(self, answer: Answer | None, *, accepted: bool = True) -> bool:
        return observe(self, answer, self._totals, accepted=accepted, time=self._ended)

    def _not_understood(self, error: BaseException) -> None:
        """Answered and billed, but not understood: not a failure of the model."""
        answer = self._reader.read_error(error) or self._answer
        known = self._observe(answer)
        answer = answer or Answer()
        self._record_response(answer, known)
        self.run.answered(answer)
        step = self.request.step
        if step is not None:
            step.answer = answer
            step.not_understood(answer.content, None)

    def _failed(self, error: BaseException, value: Any = None) -> None:
        """No answer; what the body said before it broke still counts."""
        partial = self._reader.partial(value)
        if self._answer is not None or self._totals is not None:
            self._observe(self._answer, accepted=False)
        elif partial is not None:
            self._observe(partial, accepted=False)
        self._record_failure(error)

    def _record_failure(self, error: BaseException) -> None:
        recorder = self.run.recorder
        if recorder.listening:
            event = e.ModelFailed(
                **self.where(),
                outcome=ending(error),
                error_type=_redact.error_type(error),
                message=_redact.message(error, recorder.content),
            )
            recorder.end(event, self.handle, self._ended)
