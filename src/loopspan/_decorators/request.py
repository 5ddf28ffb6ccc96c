"""`model_request`: the decorator for what calls the model, and the block."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, overload

from loopspan import _guard
from loopspan._decorators.wrapping import Function, Starter, kind, outside, wrap
from loopspan._scopes.commands import Flow, Outcome
from loopspan._scopes.context import Scope, active_scope
from loopspan._scopes.nesting import outer_attempt, run_inner
from loopspan._scopes.options import RequestOptions
from loopspan._scopes.quiet import QuietRequest, plain_request, request_quietly
from loopspan._scopes.repeats import shape
from loopspan._scopes.request import Request
from loopspan._scopes.request_attempt import RequestAttempt
from loopspan._scopes.requesting import run_request
from loopspan.errors import ConfigurationError
from loopspan.usage import Cost, Usage, peek
from loopspan.values import Answer, Retry

F = TypeVar("F", bound=Callable[..., Any])

MESSAGES = ("messages", "input", "contents", "history", "conversation")
"""Parameters that hold the messages of a request, in the order in which they are looked for."""


class Unrecorded:
    """What a `with model_request(...)` block gets outside of a run: nothing is recorded."""

    def answer(self, answer: Answer) -> None:
        """Nothing."""

    def observe_totals(self, usage: Usage, *, cost: Cost | None = None) -> None:
        """Nothing."""


class ModelRequest:
    """What `model_request(...)` returns: a decorator, and a context manager for one request."""

    def __init__(self, **options: Any) -> None:
        self._options = RequestOptions.parse(**options)
        self._entered: list[tuple[RequestAttempt, Any] | None] = []

    def __call__(self, function: F) -> F:
        """Wrap the function that calls the model."""
        options = self._options
        if options.retry is not None and kind(function) in ("generator", "async_generator"):
            raise ConfigurationError(
                "model_request(retry=) cannot repeat a stream that was partly read: retry around it"
            )
        wrapped: F = wrap(function, "model_request", lambda facts: _starter(options, facts))
        return wrapped

    def __enter__(self) -> RequestAttempt | Unrecorded:
        options = self._options
        if options.retry is not None or options.timeout is not None:
            raise ConfigurationError(
                "with model_request(retry=, timeout=): a block cannot be repeated or cut; decorate"
            )
        scope = active_scope()
        if scope is None:
            outside("model_request")
            self._entered.append(None)
            return Unrecorded()
        provider, model = (value if isinstance(value, str) else None for value in (options.provider, options.model))
        attempt = RequestAttempt(Request.open(scope, options, provider, model, None, ()))
        self._entered.append((attempt, attempt.enter()))
        return attempt

    def __exit__(self, cls: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        entered = self._entered.pop()
        if entered is None:
            return
        attempt, saved = entered
        attempt.leave(saved)
        outcome = Outcome(error=error)
        attempt.finish(outcome)
        attempt.request.conclude(outcome)


def _starter(options: RequestOptions, facts: Function) -> Starter:
    plain = plain_request(options)

    def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow | None:
        scope = active_scope()
        if scope is None:
            outside(getattr(facts.call, "__qualname__", "a model request"))
            return None
        if isinstance(scope, QuietRequest):
            return None
        if plain and scope.run.is_quiet:
            return request_quietly(scope, options, facts.call, args, kwargs)
        outer = outer_attempt(scope)
        if outer is not None:
            return run_inner(outer, options, facts.call, args, kwargs)
        return _request(scope, options, facts, args, kwargs)

    return start


def _request(
    scope: Scope, options: RequestOptions, facts: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Flow:
    provider = _said("provider", options.provider, args, kwargs)
    model = _said("model", options.model, args, kwargs) or facts.argument("model", args, kwargs)
    request = Request.open(scope, options, provider, model, _messages(facts, args, kwargs), shape(args, kwargs))
    return (yield from run_request(request, facts.call, args, kwargs))


def _said(option: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A name given as text, or by a function of the call's arguments."""
    if value is None or isinstance(value, str):
        return value
    said = _guard.contained(f"the {option}= function", lambda: value(*args, **kwargs))
    if said is None or isinstance(said, str):
        return said
    problem = TypeError(f"{option}= returned {type(said).__name__}: return text or None")
    return _guard.fault(f"the {option}= function", problem)


def _messages(facts: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for name in MESSAGES:
        found = facts.argument(name, args, kwargs)
        if isinstance(found, list | tuple):
            return found
    given = next((value for value in args if isinstance(value, list) and value and not isinstance(value[0], str)), None)
    return _held(args[facts.method :], kwargs) if given is None else given


def _held(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The messages of a request that is one object, or one dict."""
    held = (peek(value, MESSAGES[0]) for value in (*args, *kwargs.values()))
    return next((messages for messages in held if isinstance(messages, list)), None)


@overload
def model_request(function: F, /) -> F: ...


@overload
def model_request(
    *,
    provider: str | Callable[..., str | None] | None = None,
    model: str | Callable[..., str | None] | None = None,
    retry: Retry | None = None,
    timeout: float | dt.timedelta | None = None,
    read: Callable[[Any], Answer | None] | None = None,
    parse_errors: Sequence[type[BaseException]] = (),
    read_error: Callable[[Any], Answer | None] | None = None,
    step: bool = True,
) -> ModelRequest: ...


def model_request(function: Any = None, /, **options: Any) -> Any:
    """Record what calls the model, as a decorator or a block.

    `@model_request(provider=…, model=…)`, or `with model_request(…) as request:`.

    `provider`, `model`: text, a function of the call's arguments, or left out (the bound `model` argument, the answer).
    `retry`: a `Retry`; `timeout`: seconds or timedelta an attempt. `read(answer)` reads answers of a shape that
    loopspan does not know and returns an `Answer`. `parse_errors`: exceptions that mean "answered and billed, not
    understood"; `read_error(exception)` reads those. `step=False`: a side request (a title, a compaction) that opens no
    step.

    Result and exceptions are untouched. Raises ConfigurationError and WrongKind at decoration; at a call
    MaxStepsExceeded, DeadlineExceeded, BudgetExhausted, RunClosed before the model is asked, and RetryBudgetExhausted
    from the last failure when the attempts are used up. Outside of a run the function is called as it is.
    """
    if function is not None:
        return ModelRequest(**options)(function)
    return ModelRequest(**options)
