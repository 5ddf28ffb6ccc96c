"""Time and ids: the only place that asks the machine for either."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Protocol


class Clock(Protocol):
    """What loopspan needs of a clock; all integers are nanoseconds."""

    def wall(self) -> int:
        """Now, since the Unix epoch."""
        ...

    def monotonic(self) -> int:
        """A reading that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait in this thread."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Wait in this task."""
        ...


class SystemClock:
    """The machine's clocks."""

    wall = staticmethod(time.time_ns)
    monotonic = staticmethod(time.perf_counter_ns)
    sleep = staticmethod(time.sleep)

    @staticmethod
    async def asleep(seconds: float) -> None:
        """Wait in this task."""
        import asyncio

        await asyncio.sleep(seconds)


class Ids(Protocol):
    """Where run, request and approval ids come from."""

    def new(self) -> str:
        """A new id, unique over processes and machines."""
        ...


class RandomIds:
    """Random ids of 128 bits."""

    def new(self) -> str:
        """32 hexadecimal digits."""
        return os.urandom(16).hex()


class Anchor:
    """One reading of the wall clock; all later times are monotonic from there.

    A step of the wall clock therefore never gives a negative duration, and children lie within their parent
    (telemetry.md, *Times*).
    """

    __slots__ = ("_monotonic", "_offset", "clock")

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or _current[0]
        self._monotonic = self.clock.monotonic
        self._offset = self.clock.wall() - self._monotonic()

    def now(self) -> int:
        """Nanoseconds since the Unix epoch, never going back."""
        return self._offset + self._monotonic()


_current: tuple[Clock, Ids] = (SystemClock(), RandomIds())


def clock() -> Clock:
    """The clock in force."""
    return _current[0]


def new_id() -> str:
    """A new id from the source in force."""
    return _current[1].new()


@contextlib.contextmanager
def installed(clock: Clock | None, ids: Ids | None) -> Iterator[None]:
    """Use another clock or another source of ids inside the block (None keeps the present one)."""
    global _current
    former = _current
    _current = (clock or former[0], ids or former[1])
    try:
        yield
    finally:
        _current = former
