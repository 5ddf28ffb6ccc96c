"""One way to wrap a function, whatever kind it is: decided once, at decoration; identity in type and in `inspect`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from loopspan import _guard
from loopspan._runtime import runtime
from loopspan._scopes.commands import Flow, untouched
from loopspan._scopes.flow import Begun, begin_flow, drive, drive_async, relaying, start_generator
from loopspan.errors import WrongKind

Starter = Callable[[tuple[Any, ...], dict[str, Any]], Flow | None]
"""Starts the flow of one call; None where no run sees it."""


class Function:
    """What is known of a wrapped function from its signature."""

    __slots__ = (
        "_index",
        "_names",
        "_required",
        "_simple",
        "_told",
        "_wrapped",
        "bound",
        "call",
        "method",
        "signature",
    )

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        self.bound = getattr(call, "__self__", None) if inspect.ismethod(call) else None
        self.signature = _signature(call)
        parameters = list(self.signature.parameters.values()) if self.signature else []
        self._names = [parameter.name for parameter in parameters]
        self._index = {name: position for position, name in enumerate(self._names)}
        plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD,)
        self._told = hasattr(getattr(call, "__func__", call), "__signature__")  # by hand: it need not be true
        self._wrapped = _signature(getattr(call, "__wrapped__", None)) if self._told else None
        self._simple = self.signature is not None and not self._told and all(p.kind in plain for p in parameters)
        self._required = frozenset(p.name for p in parameters if p.default is p.empty)
        self.method = bool(self._names) and self._names[0] in ("self", "cls") and "." in _qualname(call)

    def instance(self, args: tuple[Any, ...]) -> Any:
        """The object that the method belongs to."""
        return self.bound if self.bound is not None else args[0] if self.method and args else None

    def argument(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """One argument by its name, None where it is not given."""
        if name in kwargs:
            return kwargs[name]
        position = self._index.get(name)
        return args[position] if position is not None and position < len(args) else None

    def fits(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the function can be called like this; nothing is called."""
        if self._simple and len(args) <= len(self._names) and kwargs.keys() <= self._index.keys():
            given = self._names[: len(args)]
            if self._required <= {*given, *kwargs} and not kwargs.keys() & set(given):
                return True
        return self.signature is None or self._told or self._bound(args, kwargs) is not None

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by the names of the signature; where somebody told a false one, by those of what is wrapped."""
        for signature in (self.signature, self._wrapped):
            try:
                return None if signature is None else dict(signature.bind(*args, **kwargs).arguments)
            except TypeError:
                continue
        return None

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, without `self`: the caller's own objects."""
        if self._simple:
            named = {**dict(zip(self._names, args, strict=False)), **kwargs}
        else:
            bound = self._bound(args, kwargs)
            named = {"args": args, **kwargs} if bound is None else bound
        if self.method:
            named.pop(self._names[0], None)
        return named


def _signature(call: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(call)
    except (TypeError, ValueError):
        return None


def _qualname(call: Any) -> str:
    return str(getattr(call, "__qualname__", "")).rpartition("<locals>.")[2]


def wrap(function: Any, decorator: str, starter: Callable[[Function], Starter], mark: Any = None) -> Any:
    """`function` with `starter`'s flow around each call.

    Raises WrongKind where it is not a function or method.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(wrap(function.__func__, decorator, starter, mark))
    if isinstance(function, type) or not callable(function):
        raise WrongKind(
            f"{decorator}({_described(function)}): decorate a function or method; for a class decorate its method, "
            "for a block of code use `with`"
        )
    facts = Function(function)
    wrapped = _wrapper(function, starter(facts))
    if mark is not None:
        wrapped.__loopspan__ = mark
    return wrapped


def _described(value: Any) -> str:
    return f"class {value.__name__}" if isinstance(value, type) else repr(value)[:80]


def kind(function: Any) -> str:
    """coroutine, generator, async_generator or plain."""
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    if not (inspect.isfunction(target) or inspect.ismethod(target) or inspect.isbuiltin(target)):
        target = getattr(target, "__call__", target)  # noqa: B004  # an object's own call is what runs
    if inspect.isasyncgenfunction(target):
        return "async_generator"
    if inspect.isgeneratorfunction(target):
        return "generator"
    return "coroutine" if inspect.iscoroutinefunction(target) else "plain"


def _wrapper(function: Any, start: Starter) -> Any:
    makers: dict[str, Callable[[Any, Starter], Any]] = {
        "plain": _plain,
        "coroutine": _coroutine,
        "generator": _generator,
        "async_generator": _async_generator,
    }
    return makers[kind(function)](function, start)


def _plain(function: Any, start: Starter) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        flow = start(args, kwargs)
        return function(*args, **kwargs) if flow is None else drive(flow)

    return wrapper


def _coroutine(function: Any, start: Starter) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        flow = start(args, kwargs)
        return await (function(*args, **kwargs) if flow is None else drive_async(flow))

    return wrapper


def _generator(function: Any, start: Starter) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (yield from start_generator(start(args, kwargs) or untouched(function, args, kwargs)))

    return wrapper


def _async_generator(function: Any, start: Starter) -> Any:
    async def begin(*args: Any, **kwargs: Any) -> Begun:
        return await begin_flow(start(args, kwargs) or untouched(function, args, kwargs))

    return functools.wraps(function)(relaying(begin))


_warned = False


def outside(what: str) -> None:
    """Warn once where a boundary is crossed outside of a run while one is open elsewhere in this process."""
    global _warned
    if not _warned and runtime.open_runs:
        _warned = True
        _guard.log.warning(
            "loopspan: %s was called outside of a run while one is open elsewhere in this process; it is not recorded. "
            "Does a thread pool lose the context? Wrap what it runs with loopspan.carry",
            what,
        )
