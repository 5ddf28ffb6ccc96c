"""An attempt of a tool call: one entry into the tool's body."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from loopspan import _redact
from loopspan import events as e
from loopspan._scopes.cancels import cancel_detail
from loopspan._scopes.commands import Outcome
from loopspan._scopes.context import Scope, current_scope
from loopspan._scopes.request import ending
from loopspan.errors import NoActiveRun, NoEffect
from loopspan.telemetry._spans import Handle
from loopspan.values import Streamed

if TYPE_CHECKING:
    pass
from loopspan._scopes.call import ToolCall, Verdict


class ToolAttempt(Scope):
    """One entry into a tool's body."""

    __slots__ = ("_chunks", "_judgement", "_open", "_saved", "call", "number")

    def __init__(self, call: ToolCall, backoff: float | None = None) -> None:
        super().__init__(call.run, call)
        self.call = call
        self._judgement: Verdict | None = None
        self._chunks: list[Any] | None = None
        self._open = True
        run = call.run
        with run.recorder.lock:
            run.check()
            self.number = call.attempts + 1
            self.handle = call.handle
            if call.quiet:
                call.may_start()
            else:
                self.handle = self._opened(backoff)
            call.attempts = self.number
            call._inside = True
            run.count_attempt()
            run.limits.entered()
            run.opened(self)

    def _opened(self, backoff: float | None) -> Handle:
        call = self.call
        event = e.ToolStarted(
            **call.where(), attempt=self.number, digest=call.digest, backoff_s=backoff, key_digest=call.key_digest
        )
        return call.run.recorder.open(event, call.place())

    def chunk(self, item: Any) -> None:
        """Keep what a generator has yielded, where somebody wants to see it."""
        if self.call.options.failure is not None or self.run.recorder.content.in_events:
            self._chunks = self._chunks or []
            self._chunks.append(item)

    def read(self, outcome: Outcome) -> Outcome:
        """`outcome`, for a generator with what was kept."""
        if not isinstance(outcome.value, Streamed):
            return outcome
        return Outcome(Streamed(tuple(self._chunks or ()), outcome.value.value), outcome.error)

    def judge(self, outcome: Outcome) -> Verdict:
        """Record what the attempt came to, once; not yet its end."""
        call, recorder = self.call, self.call.run.recorder
        with recorder.lock:
            if not self._open or self._judgement is not None:
                return self._judgement or call.verdict or Verdict("cancelled")
            verdict = self._judgement = call.verdict = self._verdict(outcome)
            if not call.quiet:
                recorder.add(self._judged(verdict, outcome.error), self.handle)
        return verdict

    def _judged(self, verdict: Verdict, error: BaseException | None) -> e.Event:
        where = {**self.call.where(), "attempt": self.number}
        if verdict.outcome in ("ok", "accepted"):
            return e.ToolSucceeded(**where, outcome=verdict.outcome, reference=self.call._reference)
        message = None if error is None else _redact.message(error, self.run.recorder.content)
        if verdict.outcome == "unknown":
            return e.UnknownSideEffect(**where, error_type=verdict.error_type, message=message)
        return e.ToolFailed(**where, outcome=verdict.outcome, error_type=verdict.error_type, message=message)

    def _verdict(self, outcome: Outcome) -> Verdict:
        options, error = self.call.options, outcome.error
        if error is None or isinstance(error, options.control_flow):
            return self.call.classified(outcome.value) if error is None else Verdict("ok")
        kind = _redact.error_type(error)
        harmless = isinstance(error, (NoEffect, *options.no_effect_errors))
        if options.outlives_failure and not harmless:
            return Verdict("unknown", kind)
        return Verdict(ending(error), kind)

    def close(self, outcome: str) -> None:
        """End the attempt's span."""
        call = self.call
        with call.run.recorder.lock:
            if not self._open:
                return
            self._open = call._inside = False
            call.run.closed(self)
            call.run.limits.left()
            if not call.quiet:
                event = e.ToolSpanClosed(**call.where(), attempt=self.number, outcome=outcome)
                call.run.recorder.end(event, self.handle)

    def abort(self, error: BaseException | None) -> None:
        """The run ends while the body is running."""
        self.close(self.judge(Outcome(error=error or GeneratorExit())).outcome)

    def __enter__(self) -> Self:
        self._saved = self.enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.leave(self._saved)
        self.close(self.judge(Outcome(self.call.said(), error)).outcome)
        if error is not None and cancel_detail(error) is None:
            self.run.has_left(error, "tool_failed")


def current_tool_call() -> ToolCall:
    """The tool call that this code is the body of.

    Raises NoActiveRun outside of a tool's body.
    """
    scope = current_scope()
    while scope is not None:
        if isinstance(scope, ToolAttempt):
            return scope.call
        if isinstance(scope, ToolCall):
            return scope
        scope = scope.parent
    raise NoActiveRun("no tool call is active here: call this from the body of a tool, inside of a run")
