"""The turns of a run: opened by a model request or by `run.steps()`, closed when the next one opens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from loopspan import _redact
from loopspan import events as e
from loopspan._scopes.context import Scope
from loopspan._scopes.proposals import Proposals
from loopspan.errors import ConfigurationError, IllegalTransition
from loopspan.values import Answer

if TYPE_CHECKING:
    from loopspan._scopes.call import ToolCall
    from loopspan._scopes.quiet import QuietRequest
    from loopspan._scopes.request import Request
    from loopspan._scopes.run import Run


class Step(Scope):
    """One turn of the loop: a model's answer and what the loop did about it."""

    __slots__ = (
        "_outcome", "answer", "failed_call", "failed_request", "in_flight", "number", "opened", "_proposals", "results",
        "unobserved",
    )  # fmt: skip

    def __init__(self, run: Run, number: int) -> None:
        super().__init__(run, run)
        self.number = number
        self.opened = False
        self.in_flight = 0
        self.results: list[ToolCall] = []
        self.unobserved = 0
        self.failed_request: Request | QuietRequest | None = None
        self.failed_call: ToolCall | None = None
        self.answer: Answer | None = None
        self._outcome: str | None = None
        self._proposals: Proposals | None = None

    @property
    def proposals(self) -> Proposals:
        """What the model asked for in this step."""
        if self._proposals is None:
            self._proposals = Proposals(self.number)
        return self._proposals

    def parse_error(self, raw: Any, *, feedback: str) -> str:
        """Record that this step's answer was not understood, and return `feedback` unchanged.

        `raw` is the answer as it came, `feedback` what the model is told. The step's outcome is `parse_error`; nothing
        is executed and the run goes on (seed of Terminus2). Raises RunClosed in a run that is over, IllegalTransition
        where a later step is open.
        """
        if not isinstance(feedback, str):
            raise ConfigurationError(f"parse_error(feedback={feedback!r}): give the text that the model is told")
        if not self.run.is_closed:
            self._must_be_open(e.ResponseParseError.name)
        self.not_understood(raw, feedback)
        return feedback

    def _must_be_open(self, event: str) -> None:
        current, recorder = self.run.steps_.ensure(), self.run.recorder
        if self is not current:
            message = f"step {self.number} is over, {current.number} is open: say it before the next one begins"
            recorder.add(e.TransitionRefused(refused=event, rule="past_step", message=message), recorder.root)
            raise IllegalTransition(f"{event} refused: {message}", event=event, rule="past_step")

    def not_understood(self, raw: Any, prompt: str | None) -> None:
        """Record a response_parse_error with what the last answer said."""
        recorder = self.run.recorder
        answer = self.answer or Answer()
        self._outcome = "parse_error"
        self.run.ledger.reject()
        content = {}
        if recorder.content.in_events:
            content = {
                "message": None
                if raw is None
                else _redact.clean(raw)
                if isinstance(raw, str)
                else _redact.to_json(raw),
                "prompt": None if prompt is None else _redact.clean(prompt),
                "reasoning": answer.reasoning,
                "prompt_token_ids": answer.prompt_token_ids,
                "completion_token_ids": answer.completion_token_ids,
                "logprobs": answer.logprobs,
            }
        model = answer.model or self.run.configured_model
        recorder.add(e.ResponseParseError(step=self.number, model_name=_redact.name(model), **content), self.handle)

    def backfill(self, call: ToolCall, text: str) -> str:
        """Record that the result of `call` goes into the next request, as `text`; returns `text` unchanged.

        `call` is the handle: what `with tool_call(...) as call` or `current_tool_call()` gives.
        """
        if not isinstance(getattr(call, "step", None), Step):
            raise ConfigurationError(f"backfill({call!r}): give the tool call itself, such as current_tool_call()")
        self.run.backfill.told(call)
        return text

    def start(self) -> None:
        """Open the step's span, in the run."""
        recorder = self.run.recorder
        self.opened = True
        self.handle = recorder.root
        if recorder.listening:
            self.handle = recorder.open(e.StepStarted(step=self.number), self.run.place())

    def close(self, outcome: str | None = None) -> None:
        """End the step; `outcome` says how the run was cut, None where it went on."""
        run = self.run
        self.unobserved += len(self.results) if outcome is None else 0
        if not run.recorder.listening:
            return
        tally = run.ledger.close_step()
        event = e.StepClosed(
            step=self.number,
            outcome=self._outcome or outcome or "ok",
            unobserved=self.unobserved,
            **tally.fields(),
        )
        run.recorder.end(event, self.handle)


class Steps(Iterator[Step]):
    """The steps of one run; iterating over it (`run.steps()`) opens them one by one.

    A step whose results are still on their way into the next request is kept open until that request was looked at:
    `deferred` is then the step that opens at its first boundary.
    """

    __slots__ = ("current", "deferred", "explicit", "number", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.current: Step | None = None
        self.deferred: Step | None = None
        self.explicit = False
        self.number = 0

    def __iter__(self) -> Steps:
        self.explicit = True
        return self

    def __next__(self) -> Step:
        if self.run.decision is not None and not self.run.is_closed:
            raise StopIteration
        self.run.check()
        if self.deferred is not None:
            self.ensure()
        step = self._next()
        if self.current is not None and self.current.results:
            self.deferred = step
        else:
            self._replace(step)
        return step

    def _next(self) -> Step:
        self.run.limits.check_step(self.number + 1)
        self.number += 1
        return Step(self.run, self.number)

    def _replace(self, step: Step) -> None:
        self.close()
        self.current = step
        self.run.forget_failures()
        step.start()

    def ensure(self) -> Step:
        """The open step; a call without any model request opens step 1."""
        if self.deferred is not None:
            step, self.deferred = self.deferred, None
            self._replace(step)
        if self.current is None:
            self._replace(self._next())
        assert self.current is not None
        return self.current

    def for_request(self, messages: Any) -> Step:
        """The step that a model request of the loop itself belongs to.

        It is the next one, unless others of this one are in flight or the loop numbers its steps itself.
        """
        current = self.current
        if self.deferred is None and current is not None and (self.explicit or current.in_flight):
            self.run.backfill.look(messages)
            return current
        if self.deferred is None:
            step = self._next()
        else:
            step, self.deferred = self.deferred, None
        self.run.backfill.look(messages)
        self._replace(step)
        return step

    def close(self, outcome: str | None = None) -> None:
        """Close the open step."""
        if outcome is not None and self.deferred is not None:
            self.ensure()
        step, self.current = self.current, None
        if step is not None:
            step.close(outcome)
