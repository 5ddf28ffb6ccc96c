"""The allowlist: which tools a model may call, and what it must have written to call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from loopspan import _guard
from loopspan._decorators.foreign import ToolObject, held
from loopspan._decorators.tool import Tool, tool, tool_of
from loopspan._scopes.call import ToolCall
from loopspan._scopes.calling import Body, run_body
from loopspan._scopes.commands import Flow, Outcome, untouched
from loopspan._scopes.context import Scope, active_scope
from loopspan._scopes.flow import drive, drive_async
from loopspan._scopes.quiet import call_quietly
from loopspan.errors import ConfigurationError, LoopspanError, UnknownTool, ValidationRejected
from loopspan.reasons import StopReason
from loopspan.toolbox.arguments import Signature
from loopspan.toolbox.schemas import schema

__all__ = ["Toolbox"]


class _Entry:
    """One tool of the allowlist."""

    __slots__ = ("function", "signature", "tool")

    def __init__(self, function: Any) -> None:
        inner = held(function)
        if inner is not None:
            function = inner if tool_of(inner) else tool(function.name)(inner)
        found = tool_of(function) or tool_of(tool(function))
        assert found is not None
        self.tool: Tool = found
        instance = getattr(function, "__self__", None) if inspect.ismethod(function) else None
        raw = found.facts.call
        self.function = raw if instance is None or not found.facts.method else raw.__get__(instance)
        self.signature = Signature(self.function, found.options.name)


class Toolbox:
    """The tools that a model may call.

    Takes decorated functions, plain ones as tools without options, and tools that other packages made of functions.
    Raises ConfigurationError for two of one name.
    """

    def __init__(self, *tools: Callable[..., Any] | ToolObject) -> None:
        self._entries: dict[str, _Entry] = {}
        for function in tools:
            if not callable(function) and held(function) is None:
                raise ConfigurationError(f"Toolbox({function!r}): give functions, decorated with loopspan.tool or not")
            entry = _Entry(function)
            name = entry.tool.options.name
            if name in self._entries:
                raise ConfigurationError(
                    f"Toolbox: two tools are called {name!r}: give one another name, tool(name=...)"
                )
            self._entries[name] = entry

    @property
    def names(self) -> list[str]:
        """The names of the tools, in the order given."""
        return list(self._entries)

    def schemas(self, dialect: str) -> list[dict[str, Any]]:
        """What a model is told of the tools: `dialect` is "openai-chat", "openai-responses" or "anthropic".

        Raises ConfigurationError for another dialect.
        """
        return [schema(dialect, name, entry.function, entry.signature) for name, entry in self._entries.items()]

    def call(self, name: str, arguments: Any, *, call_id: str | None = None, on_error: str = "raise") -> Any:
        """Check what a model wrote and call the tool.

        `arguments`: JSON text or a mapping. `on_error="return"` gives the text of a refusal or failure, for the model
        to read, instead of raising it. Raises UnknownTool, ValidationRejected, PermissionDenied, ApprovalDenied,
        ApprovalExpired (the body was not entered), ToolFailed from the tool's own exception, RetryBudgetExhausted and
        UnresolvedSideEffect.
        """
        _check_on_error(on_error)
        try:
            return drive(self._start(name, arguments, call_id))
        except LoopspanError as error:
            return _returned(error, on_error)

    async def acall(self, name: str, arguments: Any, *, call_id: str | None = None, on_error: str = "raise") -> Any:
        """`call` for coroutine functions."""
        _check_on_error(on_error)
        try:
            return await drive_async(self._start(name, arguments, call_id))
        except LoopspanError as error:
            return _returned(error, on_error)

    def _start(self, name: str, arguments: Any, call_id: str | None) -> Flow:
        entry = self._entries.get(name) if isinstance(name, str) else None
        scope = active_scope()
        if scope is None:
            return self._outside(entry, name, arguments)
        if entry is not None and entry.tool.plain and scope.run.is_quiet:
            kwargs = entry.signature.parse(arguments)
            return call_quietly(scope, entry.tool.options, entry.function, (), kwargs, wrap=True)
        return self._inside(scope, entry, name, arguments, call_id)

    def _unknown(self, name: Any) -> UnknownTool:
        allowed = ", ".join(self._entries) or "none"
        return UnknownTool(f"tool {name!r} is not in the allowlist ({allowed}); nothing was executed")

    def _outside(self, entry: _Entry | None, name: Any, arguments: Any) -> Flow:
        if entry is None:
            raise self._unknown(name)
        entry.tool.need_run()
        return (yield from untouched(entry.function, (), entry.signature.parse(arguments)))

    def _inside(self, scope: Scope, entry: _Entry | None, name: Any, arguments: Any, call_id: str | None) -> Flow:
        options = None if entry is None else entry.tool.options
        call = ToolCall(scope, name, options, arguments, call_id)
        started = scope.run.recorder.anchor.now()
        if entry is None:
            call.rejected("unknown_tool", f"not in the allowlist: {', '.join(self._entries)}", started)
            return Outcome(error=self._unknown(name))
        try:
            kwargs = entry.signature.parse(arguments)
        except ValidationRejected as error:
            call.rejected("validation_error", error.reason, started, safe=error.safe)
            return Outcome(error=error)
        denied = call.permitted(kwargs, started)
        if denied is not None:
            return Outcome(error=denied)
        call.passed(started)
        return (yield from run_body(call, Body(entry.function, (), kwargs, kwargs), wrap=True))


def _check_on_error(on_error: str) -> None:
    if on_error not in ("raise", "return"):
        raise ConfigurationError(f"on_error={on_error!r}: give 'raise', or 'return' for the text that the model reads")


def _returned(error: LoopspanError, on_error: str) -> str:
    """The text for the model; limits, and all that is no Exception, are raised all the same."""
    if on_error == "raise" or not isinstance(error, Exception):
        raise error
    cause = error.__cause__ if error.stop_reason is StopReason.TOOL_FAILED else None
    text = "" if cause is None else _guard.contained("str", str, cause, default="")
    return f"Error: {error}{f': {text}' if text else ''}"
