"""SDK streams: handed out as a proxy that looks like the stream, and ends the scope when that is over.

A stream is over when it is exhausted, breaks, is closed, or is collected. Stream managers (`with client.stream(…) as
s`) are proxied too, and the stream that they give. The stream's own methods (`until_done()`, `get_final_message()`)
read through the proxy; so do its parts (an SDK's `text_stream`), whose answer is found in the snapshot that the SDK
keeps.
"""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import AsyncGeneratorType, FunctionType, GeneratorType, MethodType, TracebackType
from typing import Any

from loopspan import _guard
from loopspan._scopes.context import Scope

SNAPSHOTS = ("current_message_snapshot", "current_completion_snapshot")
"""Where SDKs keep the answer so far."""

CLOSERS = ("close", "aclose")

_OVER: Any = object()

Finish = Callable[[Any, BaseException | None], None]
"""Ends the scope with (value, error); called once."""


def is_stream(value: Any) -> bool:
    """Whether `value` is read piece by piece: an iterator that is no file."""
    cls = type(value)
    return (hasattr(cls, "__next__") or hasattr(cls, "__anext__")) and not isinstance(value, io.IOBase)


def is_manager(value: Any) -> bool:
    """Whether `value` gives a stream when it is entered."""
    cls = type(value)
    return (hasattr(cls, "__enter__") or hasattr(cls, "__aenter__")) and not isinstance(value, io.IOBase)


class _Visit:
    """One stay in the stream's own code, inside of the scope; an error that leaves it ends the scope."""

    __slots__ = ("_proxy", "_saved")

    def __init__(self, proxy: _Proxy) -> None:
        self._proxy = proxy

    def __enter__(self) -> None:
        proxy = self._proxy
        self._saved = proxy._self_scope.enter() if proxy._self_is_open() else None
        proxy._self_visits += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        proxy = self._proxy
        proxy._self_visits -= 1
        try:
            if isinstance(error, StopIteration | StopAsyncIteration):
                proxy._self_exhausted()
            elif error is not None:
                proxy._self_end(error)
        finally:
            if self._saved is not None:
                proxy._self_scope.leave(self._saved)


class _Proxy:
    """Stands for `inner` in all but its type's name. What is the proxy's own begins with `_self_`."""

    def __init__(self, inner: Any, scope: Scope, finish: Finish) -> None:
        self._self_inner = inner
        self._self_scope = scope
        self._self_finish: Finish | None = finish
        self._self_stream: _Proxy | None = None
        self._self_visits = 0
        self._self_closed = False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._self_inner, name)
        if name in CLOSERS and callable(value):
            return self._self_closer(value)
        if is_stream(self._self_inner) and not name.startswith("_"):
            return _seen(self, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_self_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._self_inner, name, value)

    @property  # type: ignore[misc]  # isinstance() asks for it
    def __class__(self) -> Any:
        return type(self._self_inner)

    def __repr__(self) -> str:
        return repr(self._self_inner)

    def _self_is_open(self) -> bool:
        """Whether the scope is; afterwards the stream is as it would be without us."""
        waits = self._self_finish if self._self_stream is None else self._self_stream._self_finish
        return waits is not None and not self._self_scope.run.is_closed

    # the end

    def _self_end(self, error: BaseException | None = None) -> None:
        finish, self._self_finish = self._self_finish, None
        if finish is not None:
            finish(self._self_snapshot(), error)

    def _self_snapshot(self) -> Any:
        for name in SNAPSHOTS:
            if hasattr(type(self._self_inner), name):
                with contextlib.suppress(Exception):  # before the first event there is none
                    return getattr(self._self_inner, name)
        return None

    def _self_exhausted(self) -> None:
        if self._self_closed:
            self._self_stop()
        else:
            self._self_end()

    def _self_stop(self) -> None:
        """Nobody reads on: an answer that is there in full is one; any other was not waited for."""
        if self._self_finish is not None:
            answered = self._self_scope.complete(self._self_snapshot())
            self._self_end(None if answered else GeneratorExit())

    def _self_closer(self, close: Callable[..., Any]) -> Callable[..., Any]:
        """The stream's own way to close it, which ends the scope too, at once or when it is no longer being read."""

        def closer(*args: Any, **kwargs: Any) -> Any:
            self._self_closed = True
            with _Visit(self):
                result = close(*args, **kwargs)
            if inspect.isawaitable(result):
                return self._self_closing(result)
            self._self_was_closed()
            return result

        return closer

    async def _self_closing(self, closing: Awaitable[Any]) -> Any:
        with _Visit(self):
            result = await closing
        self._self_was_closed()
        return result

    def _self_was_closed(self) -> None:
        if not self._self_visits:
            self._self_stop()

    def _self_part_read(self) -> None:
        """A part of the stream is exhausted, which may be all of it."""
        if self._self_finish is not None and self._self_scope.complete(self._self_snapshot()):
            self._self_end()

    # what a manager gives

    def _self_given(self, entered: Any) -> Any:
        """The stream that a manager gives; it ends the scope, or the manager does."""
        if entered is self._self_inner:
            return self
        if not is_stream(entered):
            return entered
        finish, self._self_finish = self._self_finish, None
        self._self_stream = proxied(entered, self._self_scope, finish or (lambda value, error: None))
        return self._self_stream

    def _self_left(self, error: BaseException | None) -> None:
        """The `with` block is over. An error of the stream's own has ended it already, any other is the reader's."""
        stream = self._self_stream or self
        if is_stream(stream._self_inner):
            stream._self_stop()
        else:
            stream._self_end(error)

    def __del__(self) -> None:
        if self.__dict__.get("_self_finish") is not None:
            _guard.contained("the end of a stream", self._self_stop)


def _seen(proxy: _Proxy, value: Any) -> Any:
    """What a public name of the stream stands for, so that it reads inside of the scope."""
    if isinstance(value, MethodType) and value.__self__ is proxy._self_inner:
        return MethodType(value.__func__, proxy) if isinstance(value.__func__, FunctionType) else value
    if isinstance(value, GeneratorType):
        return _part(proxy, value)
    return _part_async(proxy, value) if isinstance(value, AsyncGeneratorType) else value


def _part(proxy: _Proxy, part: Iterator[Any]) -> Iterator[Any]:
    while True:
        with _Visit(proxy):
            item = next(part, _OVER)
        if item is _OVER:
            return proxy._self_part_read()
        yield item


async def _part_async(proxy: _Proxy, part: AsyncIterator[Any]) -> AsyncIterator[Any]:
    while True:
        with _Visit(proxy):
            item = await anext(part, _OVER)
        if item is _OVER:
            proxy._self_part_read()
            return
        yield item


class _Plain(_Proxy):
    """Stands for a stream or manager of a synchronous client."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        with _Visit(self):
            item = next(self._self_inner)
        self._self_scope.chunk(item)
        return item

    def __enter__(self) -> Any:
        with _Visit(self):
            entered = self._self_inner.__enter__()
        return self._self_given(entered)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        try:
            with _Visit(self):
                return self._self_inner.__exit__(kind, error, traceback)
        finally:
            self._self_left(error)


class _Asynchronous(_Proxy):
    """Stands for a stream or manager of an asynchronous client."""

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        with _Visit(self):
            item = await anext(self._self_inner)
        self._self_scope.chunk(item)
        return item

    async def __aenter__(self) -> Any:
        with _Visit(self):
            entered = await self._self_inner.__aenter__()
        return self._self_given(entered)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        try:
            with _Visit(self):
                return await self._self_inner.__aexit__(kind, error, traceback)
        finally:
            self._self_left(error)


class _Both(_Plain, _Asynchronous):
    """Stands for what can be read either way."""


def proxied(inner: Any, scope: Scope, finish: Finish) -> Any:
    """A proxy that can be read in the ways in which `inner` can, so that asking it whether it is asynchronous works."""
    cls = type(inner)
    plain = hasattr(cls, "__next__") or hasattr(cls, "__enter__")
    asynchronous = hasattr(cls, "__anext__") or hasattr(cls, "__aenter__")
    chosen = _Both if plain and asynchronous else _Asynchronous if asynchronous else _Plain
    return chosen(inner, scope, finish)
