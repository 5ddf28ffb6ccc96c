"""Plays the programs of `programs` through the public API, in threads or in tasks.

Everything is written once, as coroutines; for plain functions they are driven by hand (`finished`), since nothing in
them waits there.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from opentelemetry import trace

import loopspan
from loopspan.errors import LoopspanError
from loopspan.lifecycle import State
from loopspan.testing import CountingIds, TickingClock, capture
from loopspan.testing.capturing import Captured
from projection.boundaries import Asking, Broken, Frame, Unread, Using, finished
from projection.programs import ASYNC_FORMS, Ask, Loop, Misread, Together, Use, Wait


class Flow(Exception):
    """Leaves a loop as a return would."""


ENDS = {
    "raise": lambda: Broken("the loop's own"),
    "cancel": asyncio.CancelledError,
    "exit": lambda: SystemExit(1),
    "interrupt": KeyboardInterrupt,
    "flow": lambda: Flow("enough"),
}
PLANNED = (Broken, Unread, Flow, LoopspanError, asyncio.CancelledError, KeyboardInterrupt, SystemExit)


class Player:
    """Plays programs; `states` has (run id, sequence number, lifecycle state) as seen on the way."""

    def __init__(self, clock: TickingClock, tracer: trace.Tracer) -> None:
        self.clock = clock
        self.tracer = tracer
        self.states: list[tuple[str, int, State]] = []

    def play(self, program: Loop) -> None:
        """Play to the end, whatever the end is; the caller's current span is untouched."""
        outside = trace.get_current_span()
        with contextlib.suppress(*PLANNED):
            if program.form in ASYNC_FORMS:
                asyncio.run(self.loop(program))
            else:
                finished(self.loop(program))
        assert trace.get_current_span() is outside

    async def loop(self, loop: Loop) -> Any:
        """One run."""
        frame = Frame(loop, loop.form in ASYNC_FORMS)
        form = getattr(self, f"_{loop.form}")
        with loopspan.context(**dict(loop.facts)):
            return await form(frame, loopspan.agent_loop(loop.form, control_flow=(Flow,), **dict(loop.options)))

    async def _plain(self, frame: Frame, decorate: Any) -> Any:
        return decorate(lambda: finished(self.body(frame)))()

    async def _block(self, frame: Frame, block: Any) -> Any:
        with block as run:
            await self.body(frame)
            if not isinstance(frame.loop.ending, tuple):
                run.succeed()

    async def _generator(self, frame: Frame, decorate: Any) -> Any:
        def body() -> Iterator[int]:
            yield 1
            finished(self.body(frame))
            yield 2

        return list(decorate(body)())

    async def _closed(self, frame: Frame, decorate: Any) -> Any:
        def body() -> Iterator[int]:
            finished(self.body(frame))
            yield 1
            yield 2

        items = decorate(body)()
        next(items)
        items.close()

    async def _coroutine(self, frame: Frame, decorate: Any) -> Any:
        async def body() -> Any:
            return await self.body(frame)

        return await decorate(body)()

    async def _async_generator(self, frame: Frame, decorate: Any) -> Any:
        async def body() -> Any:
            yield 1
            await self.body(frame)

        return [item async for item in decorate(body)()]

    async def body(self, frame: Frame) -> str:
        """What the loop function does."""
        run, actions = loopspan.current_run(), frame.loop.actions
        self.touch(frame)
        for action, _ in zip(actions, run.steps() if frame.loop.explicit else actions, strict=False):
            with run.recorder.lock:
                self.states.append((run.run_id, run.recorder.seq, run.recorder.state))
            try:
                await self.act(action, frame)
            except Exception:
                if not frame.loop.forgiving:
                    raise
        return self.end(frame, run)

    def end(self, frame: Frame, run: Any) -> str:
        """How the loop function is left; an event loop does not survive every way."""
        ending = frame.loop.ending
        if isinstance(ending, tuple):
            run.stop(*ending[1:])
        elif ending != "return" and not (frame.tasks and ending in ("exit", "interrupt")):
            raise ENDS[ending]()
        return "done"

    async def act(self, action: Any, frame: Frame) -> Any:
        """One thing that happens inside of a run."""
        if isinstance(action, Loop):
            return await self.loop(action)
        if isinstance(action, Ask):
            return await Asking(self, action, frame).ask()
        if isinstance(action, Use):
            return await Using(self, action, frame).use()
        if isinstance(action, Together):
            return await self.together(action, frame)
        if isinstance(action, Wait):
            return self.wait(action)
        assert isinstance(action, Misread)
        with contextlib.suppress(loopspan.NoActiveRun):
            loopspan.current_step().parse_error(action.raw, feedback="ERROR: say it again")
        return None

    def wait(self, wait: Wait) -> None:
        """Somebody is asked."""
        with loopspan.human_wait("review") as waiting:
            if wait.approved is not None:
                waiting.decided(wait.approved, by="bob")

    async def together(self, together: Together, frame: Frame) -> None:
        """At the same time: tasks in asynchronous loops, else threads; then the first failure is raised."""
        if frame.tasks:
            ended = await asyncio.gather(*(self.act(part, frame) for part in together.parts), return_exceptions=True)
        else:
            ended = self.in_threads(together, frame)
        for outcome in ended:
            if isinstance(outcome, BaseException):
                raise outcome

    def in_threads(self, together: Together, frame: Frame) -> list[Any]:
        """What came of each part, in a thread of its own."""
        ended: list[Any] = []

        def one(part: Any) -> None:
            try:
                ended.append(finished(self.act(part, frame)))
            except BaseException as error:  # noqa: BLE001  # what it is decides who raises it again
                ended.append(error)

        threads = [threading.Thread(target=loopspan.carry(one), args=(part,)) for part in together.parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ended

    def touch(self, frame: Frame) -> None:
        """Add what users add: an attribute, an event, a span of their own."""
        if not frame.loop.touching:
            return
        span = trace.get_current_span()
        span.set_attribute("user.note", "mine")
        span.add_event("user.event", {"user.note": 1})
        with self.tracer.start_as_current_span("user.span"):
            pass


@contextlib.contextmanager
def playing(**settings: Any) -> Iterator[tuple[Player, Captured]]:
    """A player, and what is captured of what it plays."""
    clock = TickingClock()
    with capture(clock=clock, ids=CountingIds(), **settings) as captured:
        yield Player(clock, captured.tracer_provider.get_tracer("user")), captured
