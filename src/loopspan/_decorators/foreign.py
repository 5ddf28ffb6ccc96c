"""Tools of other packages: objects that hold a function. They are known by what they have; no package is imported."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from loopspan.values import Call

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class ToolObject(Protocol):
    """A tool of another package: an object with a name, which holds a function."""

    @property
    def name(self) -> str:
        """What the model knows it by."""


HOLDERS = ("func", "coroutine")
"""Attributes that hold the function: LangChain's tools and anthropic's; the Agents SDK's give it as `__wrapped__`."""


def held(value: Any) -> Callable[..., Any] | None:
    """The function that a tool of another package holds; None for what is called itself."""
    own_call = getattr(type(value), "__call__", None)  # noqa: B004  # anthropic's is a property
    if inspect.isroutine(value) or inspect.isfunction(own_call):
        return None
    if isinstance(value, type) or not isinstance(getattr(value, "name", None), str):
        return None
    found = (getattr(value, attribute, None) for attribute in (*HOLDERS, "__wrapped__"))
    return next((function for function in found if callable(function)), None)


def refitted(value: Any, wrap: Wrap, wrap_invoker: Wrap) -> Any:
    """A copy of a tool of another package, of the same kind, that calls what `wrap` makes of its function.

    `wrap_invoker` wraps a function of the Agents SDK's context and the arguments as JSON text (`asked` reads them).
    """
    copied = copy.copy(value)
    for attribute in HOLDERS:
        function = getattr(value, attribute, None)
        if callable(function):
            setattr(copied, attribute, wrap(function))
    if callable(getattr(copied, "_func_with_validate", None)):
        from pydantic import validate_call

        copied._func_with_validate = validate_call(copied.func)
    if callable(getattr(value, "on_invoke_tool", None)):
        copied.on_invoke_tool = _invoker(copied.on_invoke_tool, wrap_invoker)
    return copied


def asked(context: Any, arguments: str) -> Call:
    """Which call an invoker of the Agents SDK is asked for."""
    return Call(context.tool_name, arguments, context.tool_call_id)


def _invoker(invoke: Any, wrap: Wrap) -> Any:
    """The Agents SDK's way to call a tool; where it tells failures to the model, what is below of that is wrapped."""
    below = getattr(invoke, "_invoke_tool_impl", None)
    if below is None:
        return wrap(invoke)
    copied = copy.copy(invoke)
    copied._invoke_tool_impl = wrap(below)
    return copied
