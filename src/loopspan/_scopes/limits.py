"""What a run may use up: steps, active time, tokens and cost, retries. Checked before something starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopspan import _guard
from loopspan import events as e
from loopspan.errors import BudgetExhausted, DeadlineExceeded, LimitExceeded, MaxStepsExceeded
from loopspan.usage import Usage
from loopspan.values import Retry, doubling

if TYPE_CHECKING:
    from loopspan._scopes.run import Run

_SECOND = 1_000_000_000


class Limits:
    """The limits of one run, and what is used of them.

    The deadline counts active time: waiting for a person does not use it up (lifecycle.md).
    """

    __slots__ = (
        "_raised",
        "_run",
        "_waited",
        "_waits",
        "_waits_since",
        "concurrency_peak",
        "in_flight",
        "options",
        "retries",
    )

    def __init__(self, run: Run) -> None:
        self._run = run
        self.options = run.options
        self._waited = 0
        self._waits = 0
        self._waits_since = 0
        self.retries = 0
        self.in_flight = 0
        self.concurrency_peak = 0
        self._raised = False

    def active_s(self, now: int) -> float:
        """Seconds that the run was at work until `now`."""
        return max(0, now - self._run.recorder.root.start - self.waiting(now)) / _SECOND

    def waiting(self, now: int) -> int:
        """Nanoseconds that people were waited for until `now`; waits at once count once."""
        return self._waited + (now - self._waits_since if self._waits else 0)

    def wait_begins(self, now: int) -> None:
        """From now on a person is waited for."""
        with self._run.recorder.lock:
            if not self._waits:
                self._waits_since = now
            self._waits += 1

    def wait_ends(self, now: int) -> None:
        """One wait is over."""
        with self._run.recorder.lock:
            self._waits -= 1
            if not self._waits:
                self._waited += now - self._waits_since

    def check(self) -> None:
        """Raise DeadlineExceeded when the active time is used up."""
        deadline = self.options.deadline
        if deadline is None:
            return
        active = self.active_s(self._run.recorder.anchor.now())
        if active >= deadline:
            text = f"the run has been active for {active:.3g} s of {deadline:g} s: raise deadline= or do less"
            raise self._exceeded(DeadlineExceeded, "deadline", text)

    def check_step(self, number: int) -> None:
        """Raise MaxStepsExceeded when step `number` is one too many."""
        most = self.options.max_steps
        if most is not None and number > most:
            text = f"step {number} would exceed max_steps={most}: raise it, or let the loop end"
            raise self._exceeded(MaxStepsExceeded, "max_steps", text)

    def check_budget(self) -> None:
        """Raise BudgetExhausted when this run's budget, or that of a run above it, is spent."""
        run: Run | None = self._run
        while run is not None:
            run.limits.check_own_budget()
            run = run.parent_run

    def check_own_budget(self) -> None:
        """Raise BudgetExhausted when the budget is spent, the sub-agents' share included."""
        budget = self.options.budget
        if budget is None:
            return
        total = self._run.total()
        spent = budget.exceeded(total.usage or Usage(), total.cost, total.requests)
        if spent is not None:
            text = f"run {self._run.options.name!r}: {spent} is spent, nothing more is started: raise budget="
            raise self._exceeded(BudgetExhausted, "budget", text)

    def _exceeded(self, cls: type[LimitExceeded], limit: str, text: str) -> LimitExceeded:
        """The error: an Exception the first time, the bare class when a loop that caught it goes on."""
        again, self._raised = self._raised, True
        if cls is BudgetExhausted:
            self._run.recorder.add(e.BudgetExhausted(limit=limit, detail=text), self._run.handle)
        return cls(text) if again else cls.catchable(text)

    def entered(self) -> None:
        """A tool's body is entered."""
        self.in_flight += 1
        self.concurrency_peak = max(self.concurrency_peak, self.in_flight)

    def left(self) -> None:
        """A tool's body is left."""
        self.in_flight -= 1

    def can_retry(self, retry: Retry | None, attempts: int, error: BaseException | None) -> bool:
        """Whether the error, the attempts and the run's retry budget allow another attempt."""
        if retry is None or not isinstance(error, retry.on) or attempts >= retry.max_attempts or self._run.is_closed:
            return False
        budget = self.options.retry_budget
        return budget is None or self.retries < budget

    def may_retry(self, retry: Retry | None, attempts: int, error: BaseException | None) -> bool:
        """`can_retry`, and the retry is counted."""
        allowed = self.can_retry(retry, attempts, error)
        self.retries += allowed
        return allowed

    def backoff(self, retry: Retry, attempt: int) -> float:
        """Seconds to wait; the deadline caps the wait."""
        wait: float | None = _guard.contained("the wait= function", retry.backoff, attempt)
        if wait is None:
            wait = doubling(attempt)
        if self.options.deadline is None:
            return wait
        left = self.options.deadline - self.active_s(self._run.recorder.anchor.now())
        return max(0.0, min(wait, left))
