"""Time and ids that are the same every time."""

from __future__ import annotations

import itertools
import threading

from opentelemetry.sdk.trace.id_generator import IdGenerator


class TickingClock:
    """A clock that moves by `step` seconds at every reading and by what is slept, and never waits."""

    def __init__(self, start: float = 1_700_000_000.0, step: float = 0.001) -> None:
        self._now = int(start * 1_000_000_000)
        self._step = int(step * 1_000_000_000)
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._now += int(seconds * 1_000_000_000)

    def wall(self) -> int:
        """Nanoseconds since the epoch."""
        with self._lock:
            self._now += self._step
            return self._now

    monotonic = wall

    def sleep(self, seconds: float) -> None:
        """Pass the time without waiting."""
        self.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        """Likewise."""
        self.advance(seconds)


class CountingIds(IdGenerator):
    """Ids that count: for runs and requests (`new`), and as the SDK's generator for traces and spans."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._traces = itertools.count(1)
        self._spans = itertools.count(1)

    def new(self) -> str:
        """The next id, as 32 hexadecimal digits."""
        return f"{next(self._ids):032x}"

    def generate_trace_id(self) -> int:
        """The next trace id."""
        return next(self._traces)

    def generate_span_id(self) -> int:
        """The next span id."""
        return next(self._spans)
