"""`tool`: the decorator for a tool or a loop's own dispatcher; `tool_call`: the same as a block."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar, overload

from loopspan import _guard, _redact
from loopspan._decorators.foreign import ToolObject, asked, held, refitted
from loopspan._decorators.wrapping import Function, Starter, kind, outside, wrap
from loopspan._scopes.attempt import ToolAttempt
from loopspan._scopes.call import UNSAID, ToolCall, Verdict
from loopspan._scopes.calling import Body, run_body
from loopspan._scopes.commands import Flow, Outcome
from loopspan._scopes.context import Scope, active_scope, current_scope
from loopspan._scopes.options import ToolOptions
from loopspan._scopes.quiet import call_quietly, plain_tool
from loopspan.errors import ConfigurationError, NoActiveRun, ValidationRejected
from loopspan.values import Approval, Call, Retry

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")
Foreign = TypeVar("Foreign", bound=ToolObject)


class Decorator(Protocol):
    """What `tool(...)` returns: the same kind of thing comes out as goes in."""

    @overload
    def __call__(self, function: F, /) -> F: ...

    @overload
    def __call__(self, function: Foreign, /) -> Foreign: ...


class Tool:
    """A decorated tool: its options and the function itself."""

    __slots__ = ("plain", "facts", "options")

    def __init__(self, options: ToolOptions, facts: Function) -> None:
        self.options = options
        self.facts = facts
        self.plain = plain_tool(options)

    def need_run(self) -> None:
        """Raise NoActiveRun, or RunClosed, where the tool must not run outside of one; warn where it may."""
        over = current_scope()
        if over is not None and (self.options.guarded or self.options.affects):
            over.run.check()
        if self.options.guarded:
            raise NoActiveRun(f"tool {self.options.name!r} has a permission or an approval: call it inside of a run")
        outside(f"tool {self.options.name!r}")

    def start(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow | None:
        """The flow of a direct call; None outside of a run."""
        scope = active_scope()
        if scope is None:
            self.need_run()
            return None
        if self.plain and scope.run.is_quiet:
            return call_quietly(scope, self.options, self.facts.call, args, kwargs)
        return self._direct(scope, args, kwargs)

    def _direct(self, scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow:
        fits = self.facts.fits(args, kwargs)
        named = self._named(fits, args, kwargs)
        call = ToolCall(scope, named.name, self.options, named.arguments, named.call_id)
        started = scope.run.recorder.anchor.now()
        if not fits:
            call.rejected("validation_error", "the arguments do not fit the signature", started)
            return _misfit(self.facts.call, args, kwargs)
        arguments = named.arguments if isinstance(named.arguments, Mapping) else {"arguments": named.arguments}
        denied = call.permitted(arguments, started)
        if denied is not None:
            return Outcome(error=denied)
        if self.options.permission is not None:
            call.passed(started)
        return (yield from run_body(call, Body(self.facts.call, args, kwargs, arguments), wrap=False))

    def _named(self, fits: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Which logical call this is."""
        hook = self.options.call
        if hook is not None:
            named = _guard.contained("the call= hook", lambda: hook(*args, **kwargs))
            if isinstance(named, Call):
                return named
            if named is not None:
                _guard.fault(
                    "the call= hook", TypeError(f"call= returned {type(named).__name__}: return a loopspan.Call")
                )
        arguments = self.facts.arguments(args, kwargs) if fits else {"args": args, **kwargs}
        return Call(self.options.name, arguments)


def _misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    """The TypeError that Python itself raises for such a call; the body is not entered."""
    try:
        return Outcome(function(*args, **kwargs))
    except TypeError as error:
        return Outcome(error=error)


@overload
def tool(name: F, /) -> F: ...


@overload
def tool(name: Foreign, /) -> Foreign: ...


@overload
def tool(
    name: str | None = None,
    *,
    effect: str | None = None,
    retry: Retry | None = None,
    timeout: float | dt.timedelta | None = None,
    approval: Approval | None = None,
    permission: Callable[[Mapping[str, Any]], Any] | None = None,
    reconcile: Callable[..., Any] | None = None,
    key_ttl: float | dt.timedelta | None = None,
    no_effect_errors: Sequence[type[BaseException]] = (),
    failure: Callable[[Any], Any] | None = None,
    control_flow: Sequence[type[BaseException]] = (),
    call: Callable[..., Call] | None = None,
    subagent: bool = False,
) -> Decorator: ...


def tool(name: Any = None, **options: Any) -> Any:
    """Record a tool, or a loop's own dispatcher: `@tool`, `@tool("name", …)`.

    What is decorated may also be a tool that another package made of a function (anthropic's `beta_tool`, LangChain's
    `tool`, the Agents SDK's `function_tool`): a copy of the same kind comes out.

    `effect`: read_only, idempotent, keyed, reconcilable or unsafe; what is declared is treated strictly when an
    attempt's outcome is unknown. `retry`: a `Retry`. `timeout`: seconds or timedelta an attempt. `approval`: an
    `Approval`. `permission(arguments)`: True, or the reason of a refusal; anything else, an exception too, refuses.
    `reconcile(intent)` says what happened. `no_effect_errors`: exceptions that prove that nothing happened.
    `failure(result)`: the reason (low cardinality: it becomes error.type) where a result that came back is a failure.
    `control_flow`: exceptions that are no failure. `call(*args, **kwargs)`: a `Call` that says which logical call a
    dispatcher's call is.

    A direct call gets the caller's own objects and raises the tool's own exceptions. Raises ConfigurationError and
    WrongKind at decoration; at a call PermissionDenied, ApprovalDenied, ApprovalExpired, StoreRequired (body not
    entered), RetryBudgetExhausted, UnresolvedSideEffect, RunClosed, DeadlineExceeded; NoActiveRun outside of a run
    where the tool has a permission or an approval.
    """
    if callable(name) or isinstance(name, staticmethod | classmethod) or held(name):
        return _decorate(name, None, options)
    if name is not None and not isinstance(name, str):
        raise ConfigurationError(f"tool({name!r}): give the tool's name, as text, or put it on a function")
    ToolOptions.parse("tool" if name is None else name, **options)
    return lambda function: _decorate(function, name, options)


def _decorate(function: Any, name: str | None, options: dict[str, Any]) -> Any:
    if held(function):
        named, invoker = name or function.name, {"call": asked, **options}
        return refitted(function, lambda f: _decorate(f, named, options), lambda f: _decorate(f, named, invoker))
    target = getattr(function, "__func__", function) if isinstance(function, staticmethod | classmethod) else function
    parsed = ToolOptions.parse(name or getattr(target, "__name__", None) or type(target).__name__, **options)
    if parsed.retry is not None and kind(target) in ("generator", "async_generator"):
        raise ConfigurationError(f"tool {parsed.name!r}: retry= cannot repeat a generator that was partly read")
    mark: list[Tool] = []

    def starter(facts: Function) -> Starter:
        mark.append(Tool(parsed, facts))
        return mark[0].start

    return wrap(function, "tool", starter, mark)


def tool_of(function: Any) -> Tool | None:
    """The tool that a decorated function is, None for others."""
    mark = getattr(function, "__loopspan__", None)
    return mark[0] if isinstance(mark, list) and mark and isinstance(mark[0], Tool) else None


class BlockCall(ToolCall):
    """A tool call whose body is a block: `validate`, `with attempt():`, optionally `result`."""

    __slots__ = ("_checked", "_result")

    def __init__(self, scope: Scope, options: ToolOptions, arguments: Any, call_id: str | None) -> None:
        super().__init__(scope, options.name, options, arguments, call_id)
        self._result: Any = UNSAID
        self._checked = False

    def validate(self, model: type[M]) -> M:
        """The arguments as an instance of the pydantic model `model`.

        Raises ValidationRejected, with the call closed, where they do not fit.
        """
        from pydantic import TypeAdapter, ValidationError

        started = self.run.recorder.anchor.now()
        try:
            adapter = TypeAdapter(model)
            raw = self.arguments
            value = adapter.validate_json(raw) if isinstance(raw, str | bytes) else adapter.validate_python(raw)
        except ValidationError as error:
            problems = error.errors(include_input=False)
            safe = _redact.misfit(problems, getattr(model, "model_fields", ()))
            reason = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
            self.rejected("validation_error", reason, started, safe=safe)
            text = f"tool {self.name!r}: {reason}; its body was not entered"
            raise ValidationRejected(text, reason=reason, safe=safe) from error
        self.passed(started)
        return value

    def attempt(self, backoff: float | None = None) -> ToolAttempt:
        """Enter the tool's body: `with call.attempt():`.

        Raises IllegalTransition where the call was refused, is over or has an attempt in flight.
        """
        return ToolAttempt(self, backoff)

    def result(self, value: Any) -> None:
        """Say what the call's result is; `failure=` looks at it."""
        self._result = value
        if self.verdict is not None and self.verdict.outcome == "ok":
            self.verdict = self.classified(value)

    def said(self) -> Any:
        """What `result` was told."""
        return self._result

    def leave_block(self, error: BaseException | None) -> None:
        """The block is over."""
        if error is not None and (self.verdict is None or self.verdict.outcome in ("ok", "accepted")):
            from loopspan._scopes.request import ending

            self.close(ending(error), _redact.error_type(error))
            return
        verdict = self.verdict or Verdict("cancelled")
        self.finish(verdict.outcome, None if self._result is UNSAID else self._result)


class tool_call:  # noqa: N801  # used as a function: `with loopspan.tool_call(...) as call`
    """Record a tool call as a block: `with tool_call("name", arguments, call_id=…) as call:`.

    Inside, `call.validate(Model)` checks the arguments, `with call.attempt():` is the body, `call.result(value)` says
    what came of it, and `step.backfill(call, text)` afterwards that it went into the next request. `failure(result)` is
    as in `tool`. Raises NoActiveRun outside of a run, RunClosed in one that is over.
    """

    def __init__(
        self, name: str, arguments: Any, *, call_id: str | None = None, failure: Callable[[Any], Any] | None = None
    ) -> None:
        self._options = ToolOptions.parse(name, failure=failure)
        self._arguments = arguments
        self._call_id = call_id

    def __enter__(self) -> BlockCall:
        scope = active_scope()
        if scope is None:
            over = current_scope()
            if over is not None:
                over.run.check()
            raise NoActiveRun(f"with tool_call({self._options.name!r}): a block needs a run around it (agent_loop)")
        self._call = BlockCall(scope, self._options, self._arguments, self._call_id)
        self._saved = self._call.enter()
        return self._call

    def __exit__(self, cls: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._call.leave(self._saved)
        self._call.leave_block(error)
