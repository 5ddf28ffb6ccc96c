"""SDK streams: handed out as a proxy that looks like the stream, and ends the scope when that is over.

A stream is over when it is exhausted, breaks, is closed, or is collected. Stream managers (`with client.stream(…) as s`)
are proxied too, and the stream that they give. What is read past the proxy's iteration (an SDK's `text_stream`, say) is
found in the snapshot that the SDK keeps.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from loopspan import _guard
from loopspan._scopes.context import Scope

SNAPSHOTS = ("current_message_snapshot", "current_completion_snapshot")
"""Where SDKs keep the answer so far."""

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


class _Proxy:
    """Stands for `inner` in all but its type's name."""

    def __init__(self, inner: Any, scope: Scope, finish: Finish) -> None:
        self._self_inner = inner
        self._self_scope = scope
        self._self_finish: Finish | None = finish

    def __getattr__(self, name: str) -> Any:
        return getattr(self._self_inner, name)

    @property  # type: ignore[misc]  # isinstance() asks for it
    def __class__(self) -> Any:
        return type(self._self_inner)

    def __repr__(self) -> str:
        return repr(self._self_inner)

    def _self_end(self, error: BaseException | None = None) -> None:
        finish, self._self_finish = self._self_finish, None
        if finish is not None:
            finish(self._self_snapshot(), error)

    def _self_snapshot(self) -> Any:
        for name in SNAPSHOTS:
            if hasattr(type(self._self_inner), name):
                return _guard.contained("a stream's snapshot", getattr, self._self_inner, name)
        return None

    def close(self) -> Any:
        """Close the stream; what was not read is not read."""
        try:
            return self._self_inner.close()
        finally:
            self._self_end(GeneratorExit())

    def _self_given(self, stream: Any) -> Any:
        """The stream that a manager gives; it ends the scope, or the manager does."""
        if not is_stream(stream):
            return stream
        given = proxied(stream, self._self_scope, lambda value, error: self._self_pass(value, error))
        self._self_stream = given
        return given

    def _self_pass(self, value: Any, error: BaseException | None) -> None:
        finish, self._self_finish = self._self_finish, None
        if finish is not None:
            finish(value, error)

    def _self_left(self, error: BaseException | None) -> None:
        stream = self.__dict__.get("_self_stream")
        (stream or self)._self_end(error)

    def __del__(self) -> None:
        if self.__dict__.get("_self_finish") is not None:
            _guard.contained("the end of a stream", self._self_end, GeneratorExit())


class _Plain(_Proxy):
    """Stands for a stream or manager of a synchronous client."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        saved = self._self_scope.enter()
        try:
            item = next(self._self_inner)
        except StopIteration:
            self._self_end()
            raise
        except BaseException as error:
            self._self_end(error)
            raise
        finally:
            self._self_scope.leave(saved)
        self._self_scope.chunk(item)
        return item

    def __enter__(self) -> Any:
        entered = self._self_inner.__enter__()
        return self if entered is self._self_inner else self._self_given(entered)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        try:
            return self._self_inner.__exit__(kind, error, traceback)
        finally:
            self._self_left(error)


class _Asynchronous(_Proxy):
    """Stands for a stream or manager of an asynchronous client."""

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        saved = self._self_scope.enter()
        try:
            item = await anext(self._self_inner)
        except StopAsyncIteration:
            self._self_end()
            raise
        except BaseException as error:
            self._self_end(error)
            raise
        finally:
            self._self_scope.leave(saved)
        self._self_scope.chunk(item)
        return item

    async def aclose(self) -> Any:
        """Close the stream; what was not read is not read."""
        try:
            return await self._self_inner.aclose()
        finally:
            self._self_end(GeneratorExit())

    async def __aenter__(self) -> Any:
        entered = await self._self_inner.__aenter__()
        return self if entered is self._self_inner else self._self_given(entered)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        try:
            return await self._self_inner.__aexit__(kind, error, traceback)
        finally:
            self._self_left(error)


class _Both(_Plain, _Asynchronous):
    """Stands for what can be read either way."""


def proxied(inner: Any, scope: Scope, finish: Finish) -> Any:
    """A proxy that is read in the ways in which `inner` is: who asks whether it is asynchronous is told the truth."""
    cls = type(inner)
    plain = hasattr(cls, "__next__") or hasattr(cls, "__enter__")
    asynchronous = hasattr(cls, "__anext__") or hasattr(cls, "__aenter__")
    chosen = _Both if plain and asynchronous else _Asynchronous if asynchronous else _Plain
    return chosen(inner, scope, finish)
