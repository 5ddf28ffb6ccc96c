"""A run: from the entry into the loop's body to its stop reason."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from loopspan import _clock, _config, _guard, _redact
from loopspan._runtime import Recorder, runtime
from loopspan._scopes import endings
from loopspan._scopes.ambient import Ambient, ambient, attribute_value, parent_place
from loopspan._scopes.backfill import Backfill
from loopspan._scopes.closing import closing_event, step_outcome
from loopspan._scopes.commands import Outcome
from loopspan._scopes.context import Scope, active_scope
from loopspan._scopes.endings import Ending
from loopspan._scopes.ledger import Ledger, Tally
from loopspan._scopes.limits import Limits
from loopspan._scopes.opening import started_event
from loopspan._scopes.options import LoopOptions
from loopspan._scopes.repeats import same_arguments
from loopspan._scopes.steps import Steps
from loopspan.errors import ConfigurationError, RunClosed, StoreRequired
from loopspan.reasons import Lifecycle, StopReason, SuspendReason
from loopspan.usage import Cost, Usage
from loopspan.values import Answer

if TYPE_CHECKING:
    from loopspan._scopes.quiet import QuietRequest
    from loopspan._scopes.request import Request

WAY_OUT = "configure(store=...) and agent_loop(durable=True) keep it over process borders"


class Run(Scope):
    """The handle of a run (`current_run()`, `with agent_loop(...) as run`)."""

    __slots__ = (
        "__weakref__", "_budgeted", "_children", "_last_answer", "_last_response_model", "_left", "_open",
        "tool_attempts", "arguments", "backfill", "configured_model", "decision", "instance", "ledger", "limits",
        "options", "parent_run", "prices", "recorder", "steps_", "unconfirmed", "unread",
    )  # fmt: skip

    reads = "streams"

    def __init__(self, options: LoopOptions, arguments: Mapping[str, Any], instance: Any = None) -> None:
        if options.durable:
            raise StoreRequired(f"agent_loop {options.name!r}: durable=True needs a store to keep the run in")
        outer = active_scope()
        super().__init__(self, outer)
        settings = _config.current()
        facts = ambient()
        self.options = options
        self.arguments = arguments
        self.instance = instance
        self.parent_run: Run | None = None if outer is None else outer.run
        self.prices = settings.prices
        self._budgeted: bool = options.budget is not None or (outer is not None and outer.run._budgeted)
        self.decision: Ending | None = None
        self.unread: Callable[[], Answer | None] | None = None
        self._last_answer: Answer | None = None
        self._last_response_model: str | None = None
        self.configured_model: str | None = None
        self.unconfirmed = 0
        self._left: dict[int, tuple[BaseException, str]] = {}
        self._open: dict[int, Scope] = {}
        self._children: weakref.WeakSet[Run] = weakref.WeakSet()
        self.tool_attempts = 0
        run_id = (facts.take_run_id() if facts else None) or _clock.new_id()
        self.recorder: Recorder = Recorder(run_id, settings, None if outer is None else outer.run.recorder.anchor)
        self.ledger = Ledger()
        self.limits: Limits = Limits(self)
        self.steps_ = Steps(self)
        self.backfill = Backfill(self)
        self._begin(settings, facts)

    def _begin(self, settings: _config.Settings, facts: Ambient | None) -> None:
        place, links = parent_place() if self.parent_run is None else (self._outer().place(), [])
        remote = place.span.get_span_context().is_remote
        self.recorder.begin(lambda root: started_event(self, facts, root, remote), place, links, settings)
        self.handle = self.recorder.root
        if facts is not None:
            facts.run_id = self.run_id
        if self.parent_run is not None:
            self.parent_run._children.add(self)
        runtime.open_runs.add(self)

    def _outer(self) -> Scope:
        """Where a sub-agent's run hangs: the scope that it was started in, or the step that is open there."""
        assert self.parent is not None
        step = self.parent.run.steps_.current
        return step if self.parent is self.parent.run and step is not None else self.parent

    # what users see

    @property
    def run_id(self) -> str:
        """The run's id: on every span, event and log line of it."""
        return self.recorder.run_id

    @property
    def lifecycle(self) -> Lifecycle | None:
        """running, suspended or closed."""
        return self.recorder.state.lifecycle

    @property
    def is_closed(self) -> bool:
        """Whether the run has its stop reason."""
        return self.recorder.state.lifecycle is Lifecycle.CLOSED

    @property
    def suspending(self) -> bool:
        """Whether a suspension is passing through this code, for `finally` blocks that clean up."""
        return False

    def steps(self) -> Steps:
        """Number the turns explicitly: `for step in run.steps():` opens one after the other.

        Raises MaxStepsExceeded, DeadlineExceeded and BudgetExhausted.
        """
        return iter(self.steps_)

    def succeed(self) -> None:
        """Decide that the run ends with `success` when the loop is left."""
        self.stop(StopReason.SUCCESS)

    def stop(self, reason: StopReason | str, detail: str | None = None) -> None:
        """Decide why the run ends when the loop is left.

        Raises ConfigurationError for a reason that is none of the fifteen, or a detail of success; RunClosed when the
        run is over.
        """
        if self.is_closed:
            raise self._over("stop", "decide before the loop is left")
        if reason not in list(StopReason):
            raise ConfigurationError(f"stop({reason!r}) is no stop reason: use one of {', '.join(StopReason)}")
        if reason == StopReason.SUCCESS and detail is not None:
            raise ConfigurationError(f"stop('success', {detail!r}): success has no detail")
        self.decision = Ending(StopReason(reason), None if detail is None else _redact.name(detail))

    def suspend(self, reason: SuspendReason | str) -> None:
        """Suspend the run. Raises StoreRequired: nothing keeps a waiting run beyond this process."""
        if reason not in list(SuspendReason):
            raise ConfigurationError(f"suspend({reason!r}) is no reason: use one of {', '.join(SuspendReason)}")
        raise StoreRequired(f"run {self.run_id} would have to outlive this process: {WAY_OUT}")

    def set_attribute(self, key: str, value: Any) -> None:
        """Put an attribute of your own on the run's span (text, number, bool, or a list of one of these)."""
        if not self.is_closed:
            self.handle.span.set_attribute(key, attribute_value(value))

    # what boundaries need

    def check(self) -> None:
        """Raise RunClosed or DeadlineExceeded where nothing may start any more."""
        if self.is_closed:
            raise self._over("check", "nothing starts in it, start another run")
        self.limits.check()

    def _over(self, event: str, way_out: str) -> RunClosed:
        reason = self.recorder.state.stop_reason
        return RunClosed(f"run {self.run_id} is closed ({reason}): {way_out}", event=event, rule="closed")

    def opened(self, scope: Scope) -> None:
        """A scope that must be closed before the run."""
        self._open[id(scope)] = scope

    def closed(self, scope: Scope) -> None:
        """The scope is closed."""
        self._open.pop(id(scope), None)

    def answered(self, answer: Answer) -> None:
        """A model has answered; an empty model name does not overwrite the last served one (seed of Terminus2)."""
        self._last_answer = answer
        self._last_response_model = _redact.name(answer.model) or self._last_response_model

    @property
    def is_quiet(self) -> bool:
        """Whether nobody listens and nothing is open that the lifecycle must guard."""
        recorder = self.recorder
        return not (recorder.listening or self._budgeted or recorder.state.calls)

    @property
    def wants_answers(self) -> bool:
        """Whether anybody needs an answer at once; elsewhere it is read when somebody asks."""
        return self.recorder.listening or self._budgeted

    def _read_late(self) -> None:
        unread, self.unread = self.unread, None
        answer = None if unread is None else unread()
        if answer is not None:
            self.answered(answer)

    @property
    def last_answer(self) -> Answer | None:
        """What the last answer of a model said."""
        self._read_late()
        return self._last_answer

    @property
    def last_response_model(self) -> str | None:
        """The model that served the last answer which named one."""
        self._read_late()
        return self._last_response_model

    def has_left(self, error: BaseException, reason: str) -> None:
        """`error` leaves a tool attempt or a model request: if it leaves the loop too, `reason` is why the run ends."""
        self._left[id(error)] = (error, reason)

    def reason_left(self, error: BaseException) -> str | None:
        """Why the run ends if this very error leaves the loop."""
        found = self._left.get(id(error))
        return None if found is None else found[1]

    def forget_failures(self) -> None:
        """A new step begins: what failed before it was handled."""
        self._left.clear()

    def repeated_request(self, scope: Scope, arguments: Any) -> Request | QuietRequest | None:
        """The failed request that this one repeats: equal arguments, right after it, in the same step and scope."""
        step = self.steps_.current
        failed, former = (None, None) if step is None else (step, step.failed_request)
        if failed is not None:
            failed.failed_request = None
        if former is None or former.scope is not scope or not same_arguments(former.arguments, arguments):
            return None
        return former

    def price(self, request: Request, answer: Answer | None, usage: Usage) -> tuple[Cost | None, bool]:
        """(cost, whether it is unpriced) of an answer, by the configured price function.

        It is asked for the served model, else for the requested one.
        """
        if self.prices is None:
            return None, False
        model = (answer.model if answer else None) or request.model
        cost = _guard.contained("the prices= function", self.prices, request.provider, model, usage)
        if cost is not None and not isinstance(cost, Cost):
            problem = TypeError(f"prices= returned {type(cost).__name__}: return a loopspan.Cost or None")
            _guard.fault("the prices= function", problem)
            cost = None
        return cost, cost is None

    def total(self) -> Tally:
        """The run's own use and that of its sub-agents, the open ones included."""
        total = Tally()
        total.merge(self.ledger.own)
        total.merge(self.ledger.descendants)
        for child in self._children:
            if not child.is_closed:
                total.merge(child.total())
        return total

    def count_attempt(self) -> None:
        """A tool's body is entered."""
        self.tool_attempts += 1

    # the end

    def finish(self, outcome: Outcome) -> Outcome:
        """The loop's body was left: close what is open, then the run; the caller gets `outcome`."""
        if not self.is_closed:
            self.close(endings.of(self, outcome))
        return outcome

    def close(self, ending: Ending) -> None:
        """Close the run: first what is open inside of it, then the run itself."""
        with self.recorder.lock:
            if self.is_closed:
                return
            for scope in reversed(list(self._open.values())):
                scope.abort(ending.error)
            for child in list(self._children):
                child.close(Ending(StopReason.CANCELLED, "consumer_stopped"))
            pending = self._pending_calls()
            self.steps_.close(step_outcome(ending))
            now = self.recorder.anchor.now()
            self.recorder.end(closing_event(self, self._settled(ending), pending, now), self.handle, now)
        runtime.open_runs.discard(self)
        self._left.clear()
        self._kept = None
        if self.parent_run is not None:
            self.parent_run.adopt(self, ending)

    def adopt(self, child: Run, ending: Ending) -> None:
        """A sub-agent's run is closed: its use is part of ours, and what failed in it may be what ends us."""
        self._children.discard(child)
        if ending.error is not None and ending.reason in (StopReason.TOOL_FAILED, StopReason.MODEL_FAILED):
            self.has_left(ending.error, ending.reason)
        self.ledger.descendants.merge(child.ledger.own)
        self.ledger.descendants.merge(child.ledger.descendants)

    def _settled(self, ending: Ending) -> Ending:
        """No reason but one closes a run while an effect is unknown."""
        if self.recorder.state.unknown():
            return ending._replace(reason=StopReason.UNRESOLVED_SIDE_EFFECT)
        return ending

    def _pending_calls(self) -> list[dict[str, Any]] | None:
        step = self.steps_.current
        return (step.proposals.open_calls() or None) if step is not None else None

    def abort(self, error: BaseException | None) -> None:
        """A run is closed by its parent through `close`."""

    def shut_down(self) -> None:
        """The process ends."""
        self.close(Ending(StopReason.CANCELLED, "shutdown"))

    def disown(self) -> None:
        """The run stays with the process that was forked."""
        self.recorder.disown()

    def __del__(self) -> None:
        """Abandoned: a generator that nobody reads to its end."""
        recorder = getattr(self, "recorder", None)
        if recorder is not None and recorder.state.lifecycle is Lifecycle.RUNNING:
            _guard.contained(
                "the end of an abandoned run", self.close, Ending(StopReason.CANCELLED, "consumer_stopped")
            )
