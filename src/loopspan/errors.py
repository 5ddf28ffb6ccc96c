"""Every exception of loopspan, in one tree.

    LoopspanError (BaseException)             the root; carries `stop_reason`, None where it closes nothing
    ├─ ConfigurationError (ValueError)        contradictory or impossible options
    ├─ WrongKind (TypeError)                  a decorator on something that is not a function
    ├─ NoActiveRun                            a boundary that needs a run was crossed outside of one
    ├─ StoreRequired                          a wait would have to outlive the process, and nothing stores it
    ├─ IllegalTransition                      the lifecycle refuses the event (`.event`, `.rule`)
    │  ├─ RunClosed                           a write to a closed run
    │  └─ DecisionConflict                    a second, different decision
    ├─ RunNotClosed                           a block was left without a decision
    ├─ BoundaryRefused                        a call was stopped before its body was entered
    │  ├─ UnknownTool                         unknown_tool
    │  ├─ ValidationRejected                  validation_error
    │  ├─ PermissionDenied                    permission_denied
    │  ├─ ApprovalDenied                      approval_denied
    │  └─ ApprovalExpired                     approval_expired
    ├─ ToolFailed                             tool_failed
    ├─ ModelFailed                            model_failed
    ├─ RetryBudgetExhausted                   retry_budget_exhausted
    ├─ CallTimeout (TimeoutError)             one attempt took longer than its `timeout=`
    ├─ NoEffect                               raised by a tool: nothing happened, it is safe to say failed
    ├─ UnresolvedSideEffect                   unresolved_side_effect
    └─ LimitExceeded                          see below
       ├─ MaxStepsExceeded                    max_steps
       ├─ DeadlineExceeded                    timeout
       └─ BudgetExhausted                     budget_exhausted

All but `LimitExceeded` are `Exception` as well. A limit is raised as an `Exception` the first time, so that a loop may
clean up; a loop that catches it and goes on gets the bare class, which `except Exception` does not catch: no loop
spins on a limit (lifecycle.md, *How a run ends*).
"""

from __future__ import annotations

from typing import Any, ClassVar

from loopspan.reasons import StopReason


class LoopspanError(BaseException):
    """Root of the tree. `stop_reason` is what a run closes with when the error leaves its loop."""

    stop_reason: ClassVar[StopReason | None] = None


class ConfigurationError(LoopspanError, ValueError):
    """Options that contradict each other or cannot work."""


class WrongKind(LoopspanError, TypeError):
    """A decorator was put on something that it cannot wrap."""


class NoActiveRun(LoopspanError, RuntimeError):
    """A boundary that needs a run was crossed outside of one."""


class StoreRequired(LoopspanError, RuntimeError):
    """A wait would have to outlive this process, and no store keeps it."""


class IllegalTransition(LoopspanError, RuntimeError):
    """The lifecycle refuses an event: `event` is its name, `rule` the rule that it breaks."""

    def __init__(self, message: str, *, event: str = "", rule: str = "") -> None:
        super().__init__(message)
        self.event = event
        self.rule = rule


class RunClosed(IllegalTransition):
    """A write to a run that has its stop reason."""


class DecisionConflict(IllegalTransition):
    """A decision that differs from the one on record."""


class RunNotClosed(LoopspanError, RuntimeError):
    """A `with agent_loop(...)` block was left without `succeed`, `stop` or `suspend`: success is never assumed."""


class BoundaryRefused(LoopspanError, Exception):
    """A call that was stopped before its body was entered."""


class UnknownTool(BoundaryRefused):
    """A model asked for a tool that is not in the allowlist."""

    stop_reason = StopReason.UNKNOWN_TOOL


class ValidationRejected(BoundaryRefused):
    """Arguments that a model wrote do not fit the tool; `reason` says why, `safe` says it without what was written."""

    stop_reason = StopReason.VALIDATION_ERROR

    def __init__(self, message: str, *, reason: str = "", safe: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message
        self.safe = self.reason if safe is None else safe


class PermissionDenied(BoundaryRefused):
    """The tool's permission check said no."""

    stop_reason = StopReason.PERMISSION_DENIED


class ApprovalDenied(BoundaryRefused):
    """A person said no."""

    stop_reason = StopReason.APPROVAL_DENIED


class ApprovalExpired(BoundaryRefused):
    """Nobody decided in time: expiry is never approval."""

    stop_reason = StopReason.APPROVAL_EXPIRED


class ToolFailed(LoopspanError, RuntimeError):
    """A tool that a Toolbox called raised; `__cause__` is the original."""

    stop_reason = StopReason.TOOL_FAILED


class ModelFailed(LoopspanError, RuntimeError):
    """The model or its provider failed for good."""

    stop_reason = StopReason.MODEL_FAILED


class RetryBudgetExhausted(LoopspanError, RuntimeError):
    """The attempts of `retry=`, or the retries of the whole run, are used up; `__cause__` is the last failure."""

    stop_reason = StopReason.RETRY_BUDGET_EXHAUSTED


class CallTimeout(LoopspanError, TimeoutError):
    """One attempt took longer than its `timeout=`."""


class NoEffect(LoopspanError, Exception):
    """Raised by a tool with a declared effect: nothing has happened outside, the attempt simply failed."""


class UnresolvedSideEffect(LoopspanError, RuntimeError):
    """Nobody can say whether a side effect happened."""

    stop_reason = StopReason.UNRESOLVED_SIDE_EFFECT


class LimitExceeded(LoopspanError):
    """A limit of the run. `catchable` builds the form that is an Exception too."""

    @classmethod
    def catchable(cls, *args: Any) -> LimitExceeded:
        """The same error as an `Exception`, for the first time that it is raised in a run."""
        return _CATCHABLE[cls](*args)


class MaxStepsExceeded(LimitExceeded):
    """The loop asked for a step beyond `max_steps`."""

    stop_reason = StopReason.MAX_STEPS


class DeadlineExceeded(LimitExceeded):
    """The run was active for longer than its `deadline`."""

    stop_reason = StopReason.TIMEOUT


class BudgetExhausted(LimitExceeded):
    """The run's tokens, cost or requests are spent."""

    stop_reason = StopReason.BUDGET_EXHAUSTED


_CATCHABLE: dict[type[LimitExceeded], type[LimitExceeded]] = {
    cls: type(cls.__name__, (cls, Exception), {"__module__": __name__, "__doc__": cls.__doc__})
    for cls in (MaxStepsExceeded, DeadlineExceeded, BudgetExhausted)
}
