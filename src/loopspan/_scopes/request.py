"""A model request: one logical request, one attempt span for every time that it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopspan import _clock, _redact
from loopspan import events as e
from loopspan._scopes.cancels import cancel_detail
from loopspan._scopes.commands import Outcome
from loopspan._scopes.context import Scope
from loopspan._scopes.options import RequestOptions
from loopspan.errors import CallTimeout, RetryBudgetExhausted

if TYPE_CHECKING:
    from loopspan._scopes.steps import Step


def ending(error: BaseException) -> str:
    """The outcome of something that `error` ended."""
    if isinstance(error, CallTimeout):
        return "timeout"
    return "failed" if cancel_detail(error) is None else "cancelled"


class Request:
    """One logical model request of a run."""

    __slots__ = (
        "_held", "arguments", "attempts", "id", "model", "options", "parent", "provider", "run", "scope", "step",
    )  # fmt: skip

    def __init__(
        self, scope: Scope, options: RequestOptions, provider: str | None, model: str | None, arguments: Any
    ) -> None:
        self.run = scope.run
        self.scope = scope
        self.options = options
        self.provider = _redact.name(provider)
        self.model = _redact.name(model)
        self.arguments = arguments
        self.attempts = 0
        self._held = False
        self.parent: Scope = scope.run
        self.step: Step | None = None
        self.id = ""

    @classmethod
    def open(
        cls,
        scope: Scope,
        options: RequestOptions,
        provider: str | None,
        model: str | None,
        messages: Any,
        arguments: Any,
    ) -> Request:
        """Check the limits, find the step of a request that is made in `scope`, and give it an id.

        Raises DeadlineExceeded, BudgetExhausted, MaxStepsExceeded.
        """
        run = scope.run
        with run.recorder.lock:
            run.check()
            run.limits.check_budget()
            again = run.repeated_request(scope, arguments)
            if isinstance(again, cls):
                again.options, again.provider, again.model = options, _redact.name(provider), _redact.name(model)
                again.hold()
                return again
            request = cls(scope, options, provider, model, arguments)
            if again is None:
                request._place(messages)
            else:
                request.step, request.parent = run.steps_.current, run.steps_.current or run
            request.id = _clock.new_id() if run.recorder.listening else ""
            run.ledger.request()
            run.configured_model = request.model or run.configured_model
            request.hold()
            return request

    def _place(self, messages: Any) -> None:
        """The loop's own requests open the next step; one inside a tool's body is a child of that attempt."""
        run, scope = self.run, self.scope
        if scope is not run and scope is not run.steps_.current:
            self.step, self.parent = run.steps_.current, scope
        elif self.options.step:
            self.step = self.parent = run.steps_.for_request(messages)
        else:
            self.step = run.steps_.current
            self.parent = self.step or run

    def hold(self) -> None:
        """No other thread's request may open the next step before this one's next attempt."""
        if self.step is not None and not self._held:
            self._held = True
            self.step.in_flight += 1

    def release(self) -> None:
        """The attempt has begun, or there is none to come."""
        with self.run.recorder.lock:
            if self.step is not None and self._held:
                self._held = False
                self.step.in_flight -= 1

    def wait_before_retry(self, outcome: Outcome) -> float | None:
        """Seconds until the next attempt, None where there is none."""
        retry, error, run = self.options.retry, outcome.error, self.run
        if retry is None or error is None or isinstance(error, self.options.parse_errors):
            return None
        if not run.limits.may_retry(retry, self.attempts, error):
            return None
        wait = run.limits.backoff(retry, self.attempts)
        self.record_retry(error, wait)
        return wait

    def record_retry(self, error: BaseException, wait: float) -> None:
        """The failed attempt is repeated after `wait` seconds."""
        event = e.ModelRetry(
            step=self.step_number,
            request_id=self.id,
            attempt=self.attempts,
            error_type=_redact.error_type(error),
            backoff_s=wait,
        )
        self.run.recorder.add(event, self.parent.handle)

    @property
    def step_number(self) -> int | None:
        """The number of the request's step, None outside of every step."""
        return None if self.step is None else self.step.number

    def conclude(self, outcome: Outcome) -> Outcome:
        """What the caller gets after the last attempt."""
        self.release()
        error, retry = outcome.error, self.options.retry
        if error is None:
            return outcome
        if isinstance(error, self.options.parse_errors):
            self.run.has_left(error, "model_failed")
            return outcome
        if retry is not None and isinstance(error, retry.on):
            spent = RetryBudgetExhausted(
                f"model request {self.model or ''}: {self.attempts} attempts failed, the last with "
                f"{type(error).__name__}; raise Retry(max_attempts=) or retry_budget="
            )
            spent.__cause__ = error
            return Outcome(error=spent)
        if cancel_detail(error) is not None:
            return outcome
        self.run.has_left(error, "model_failed")
        if self.step is not None and isinstance(error, Exception):
            self.step.failed_request = self
        return outcome
