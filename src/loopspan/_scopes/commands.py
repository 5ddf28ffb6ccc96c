"""What a flow says and hears: commands, and outcomes as values."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, NamedTuple

from opentelemetry.context import Context

from loopspan._scopes.context import Scope, Visit
from loopspan.errors import CallTimeout


class Outcome(NamedTuple):
    """How a piece of user code ended: `error` is None, or the very exception that it raised."""

    value: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """The value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


class Invoke(NamedTuple):
    """Run `function` inside `scope`; `timeout` in seconds. `body` is False for hooks: their result is a result."""

    scope: Scope
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    timeout: float | None = None
    body: bool = True

    def call(self) -> Any:
        """Call the function, here and now."""
        return self.function(*self.args, **self.kwargs)

    def late(self) -> CallTimeout:
        """The error of a call that took too long."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return CallTimeout(f"{name} took longer than its timeout of {self.timeout:g} s")


class Sleep(NamedTuple):
    """Wait between attempts."""

    seconds: float


Command = Invoke | Sleep
Flow = Generator[Command, Outcome, Outcome]
NOTHING = Outcome()


class _Nowhere(Scope):
    """Outside of every run: nothing is entered."""

    __slots__ = ()

    def __init__(self) -> None:
        """Without a run."""

    def enter(self) -> Context:
        """Nothing."""
        return _EMPTY

    def leave(self, saved: Context) -> None:
        """Nothing."""

    def resume(self, inside: Context | None) -> Visit:
        """Nothing."""
        return _STAY

    def pause(self, visit: Visit) -> None:
        """Nothing."""


_EMPTY = Context()
_STAY = Visit(_EMPTY, _EMPTY, ContextVar[None]("loopspan-nowhere").set(None))
_NOWHERE = _Nowhere()


def untouched(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow:
    """The flow of a call that no run sees."""
    return (yield Invoke(_NOWHERE, function, args, kwargs))
