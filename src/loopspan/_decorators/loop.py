"""`agent_loop`: the decorator for the loop, and the block."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, overload

from loopspan._decorators.wrapping import Function, Starter, kind, wrap
from loopspan._scopes.commands import Flow, Invoke, Outcome
from loopspan._scopes.endings import Ending
from loopspan._scopes.options import LoopOptions
from loopspan._scopes.run import Run
from loopspan.errors import ConfigurationError, RunNotClosed
from loopspan.reasons import StopReason
from loopspan.usage import Budget
from loopspan.values import End

F = TypeVar("F", bound=Callable[..., Any])


class AgentLoop:
    """What `agent_loop(...)` returns: a decorator, and a context manager that gives the run."""

    def __init__(self, name: str | None, **options: Any) -> None:
        LoopOptions.parse("agent" if name is None else name, **options)
        self._name = name
        self._options = options
        self._entered: list[tuple[Run, Any]] = []

    def __call__(self, function: F) -> F:
        """Wrap the loop's function or method."""
        name = self._name or getattr(function, "__name__", None) or type(function).__name__
        options = LoopOptions.parse(name, **self._options)
        if options.durable and kind(function) in ("generator", "async_generator"):
            raise ConfigurationError(
                f"agent_loop {name!r}: a generator cannot be durable, since nobody can replay its reader"
            )
        wrapped: F = wrap(function, "agent_loop", lambda facts: _starter(options, facts))
        return wrapped

    def __enter__(self) -> Run:
        if self._name is None:
            raise ConfigurationError('with agent_loop(): give the agent\'s name: with agent_loop("name") as run')
        run = Run(LoopOptions.parse(self._name, **self._options), {})
        self._entered.append((run, run.enter()))
        return run

    def __exit__(self, cls: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        run, saved = self._entered.pop()
        run.leave(saved)
        undecided = run.decision is None and run.options.outcome is None and not run.is_closed
        if error is None and undecided:
            run.close(Ending(StopReason.LOOP_ERROR, "not_closed"))
            raise RunNotClosed(
                f"run {run.run_id} of {run.options.name!r} was left undecided, and success is never assumed: "
                "call run.succeed(), run.stop(reason) or run.suspend(reason) before the block ends"
            )
        run.finish(Outcome(error=error))


def _starter(options: LoopOptions, facts: Function) -> Starter:
    def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow:
        return _loop(options, facts, args, kwargs)

    return start


def _loop(options: LoopOptions, facts: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow:
    arguments = facts.arguments(args, kwargs) if options.outcome is not None and facts.fits(args, kwargs) else {}
    run = Run(options, arguments, facts.instance(args))
    outcome = yield Invoke(run, facts.call, args, kwargs)
    return run.finish(outcome)


@overload
def agent_loop(name: F, /) -> F: ...


@overload
def agent_loop(
    name: str | None = None,
    *,
    max_steps: int | None = None,
    deadline: float | dt.timedelta | None = None,
    budget: Budget | None = None,
    retry_budget: int | None = None,
    durable: bool = False,
    version: str | None = None,
    live: Sequence[str] = (),
    on_error: str = "close",
    outcome: Callable[[End], Any] | None = None,
    control_flow: Sequence[type[BaseException]] = (),
) -> AgentLoop: ...


def agent_loop(name: Any = None, **options: Any) -> Any:
    """Make a loop a run, as a decorator or a block.

    `@agent_loop`, `@agent_loop("name", …)`, or `with agent_loop("name", …) as run:`.

    `name`: the agent's, from the function where it is left out. `max_steps`: steps that may be opened. `deadline`:
    seconds or timedelta of active time, checked at every boundary. `budget`: a `Budget`, checked before a request
    starts. `retry_budget`: retries of the whole run. `outcome(end)` maps a return to a stop reason, or to
    (reason, detail). `control_flow`: exceptions that leave the loop as a return would. `durable`, `live`, `version`,
    `on_error="release"` are for runs that outlive their process.

    The function's result and exceptions reach its caller untouched; the stop reason follows lifecycle.md, *How a run
    ends*. Raises ConfigurationError for options that cannot work, WrongKind where it is put on something that is not a
    function; at a call StoreRequired for a durable run without a store; leaving the block undecided raises
    RunNotClosed.
    """
    if callable(name) or isinstance(name, staticmethod | classmethod):
        return AgentLoop(None, **options)(name)
    if name is not None and not isinstance(name, str):
        raise ConfigurationError(f"agent_loop({name!r}): give the agent's name, as text, or put it on a function")
    return AgentLoop(name, **options)
