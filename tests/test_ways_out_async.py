"""The ways out of asynchronous loops: cancels, time-outs, consumers in other tasks, loops that are gone."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import loopspan
from ways import Witness
from ways_async import FAILURES, PLACES, Suspended, ask_streamed, loop_of, work_streamed

KIND = pytest.mark.parametrize("kind", ["coroutine", "async_generator"])
PLACE = pytest.mark.parametrize("place", PLACES)
ONE_PLACE = pytest.mark.parametrize("place", [place for place in PLACES if place != "several at once"])


async def nothing() -> None:
    """Do nothing."""


async def reach(waiting: Suspended) -> None:
    """Let the others run until somebody waits."""
    while not waiting.reached:  # noqa: ASYNC110  # it is one that does without an event loop
        await asyncio.sleep(0)


@KIND
@PLACE
def test_a_cancelled_task(witness: Witness, kind: str, place: str):
    waiting = Suspended()
    got: list[BaseException] = []

    async def call() -> None:
        try:
            await witness.use_async(loop_of(kind, lambda: PLACES[place](waiting.act)))
        except asyncio.CancelledError as error:
            got.append(error)
            raise

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(call())
        await reach(waiting)
        task.cancel("enough")
        await asyncio.wait([task])
        return task

    assert asyncio.run(main()).cancelled()
    assert place == "several at once" or got == [waiting.error]
    assert got[0].args == ("enough",)
    witness.ended("cancelled", "task_cancelled")


@KIND
@PLACE
def test_a_time_out_around_it(witness: Witness, kind: str, place: str):
    waiting = Suspended()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(witness.use_async(loop_of(kind, lambda: PLACES[place](waiting.act))), 0.01)

    asyncio.run(main())
    assert isinstance(waiting.error, asyncio.CancelledError)
    witness.ended("cancelled", "task_cancelled")


@KIND
@PLACE
def test_a_time_out_of_its_own_is_an_error_of_the_loop(witness: Witness, kind: str, place: str):
    async def act() -> None:
        async with asyncio.timeout(0.01):
            await PLACES[place](Suspended().act)

    with pytest.raises(TimeoutError):
        witness.use(loop_of(kind, act))
    witness.ended("loop_error")


@KIND
@PLACE
def test_a_cancel_that_the_loop_survives(witness: Witness, kind: str, place: str):
    async def act() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await PLACES[place](Suspended().act)

    witness.use(loop_of(kind, act))
    witness.ended("success")


@KIND
@ONE_PLACE
@pytest.mark.parametrize("cls", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_after_some_waiting(witness: Witness, kind: str, place: str, cls: type[BaseException]):
    error = cls("stop")

    async def act() -> None:
        await asyncio.sleep(0)
        raise error

    with pytest.raises(cls) as caught:
        witness.use(loop_of(kind, lambda: PLACES[place](act)))
    assert caught.value is error
    cancels = {KeyboardInterrupt: ("cancelled", "keyboard_interrupt"), SystemExit: ("cancelled", "shutdown")}
    witness.ended(*cancels.get(cls, (FAILURES[place],)))


@ONE_PLACE
def test_a_coroutine_that_is_dropped_half_way(witness: Witness, place: str):
    waiting = Suspended()
    with witness.caller():
        coroutine = loop_of("coroutine", lambda: PLACES[place](waiting.act))()
        contextvars.copy_context().run(coroutine.send, None)
        del coroutine
        gc.collect()
    assert isinstance(waiting.error, GeneratorExit)
    witness.ended("cancelled", "consumer_stopped")


# asynchronous generators: what the consumer does


@loopspan.agent_loop(name="loop")
async def loop(what: str) -> AsyncIterator[str]:
    """Yields once before anything is open, then with it; waits in between."""
    yield "first"
    await asyncio.sleep(0)
    if what == "request":
        async for item in ask_streamed(nothing):
            yield item
    elif what == "tool":
        async for item in work_streamed(nothing):
            yield item
    elif what == "sub-agent":
        async for item in loopspan.agent_loop("child")(ask_streamed)(nothing):
            yield item
    elif what == "request block":
        with loopspan.model_request(model="m"):
            yield "item"
    elif what == "tool block":
        with loopspan.tool_call("work", {}) as call, call.attempt():
            yield "item"
    yield "more"


OPEN = {
    "nothing": "loop_error",
    "request": "loop_error",  # the loop breaks, the stream that it was reading is abandoned
    "tool": "loop_error",
    "sub-agent": "loop_error",
    "request block": "model_failed",
    "tool block": "tool_failed",
}
WITH_OPEN = pytest.mark.parametrize("what", OPEN)


async def in_another_task(close: Callable[[], Awaitable[Any]]) -> None:
    async def body() -> None:
        await close()

    await asyncio.create_task(body())


async def in_an_empty_context(close: Callable[[], Awaitable[Any]]) -> None:
    async def body() -> None:
        await close()

    await asyncio.create_task(body(), context=contextvars.Context())


async def here(close: Callable[[], Awaitable[Any]]) -> None:
    await close()


@WITH_OPEN
@pytest.mark.parametrize("closer", [here, in_another_task, in_an_empty_context])
def test_a_generator_that_is_closed_early(witness: Witness, what: str, closer: Any):
    async def main() -> None:
        with witness.caller():
            reading = loop(what)
            await anext(reading)
            await anext(reading)
            await closer(reading.aclose)

    asyncio.run(main())
    witness.ended("cancelled", "consumer_stopped")


@WITH_OPEN
@pytest.mark.parametrize("ending", ["break", "raise", "return"])
def test_a_consumer_that_stops_in_a_task_of_its_own(witness: Witness, what: str, ending: str):
    async def consume() -> None:
        with witness.caller():
            async for item in loop(what):
                if item != "first" and ending == "break":
                    break
                if item != "first" and ending == "raise":
                    raise KeyError(item)
                if item != "first":
                    return

    async def main() -> None:
        await asyncio.gather(asyncio.create_task(consume()), return_exceptions=True)
        gc.collect()
        for _ in range(5):
            await asyncio.sleep(0)
        assert witness.captured.open_spans() == [], "while the event loop goes on"

    asyncio.run(main())
    witness.ended("cancelled", "consumer_stopped")


@WITH_OPEN
@pytest.mark.parametrize("cls", [ValueError, asyncio.CancelledError])
def test_an_exception_is_thrown_into_a_generator(witness: Witness, what: str, cls: type[BaseException]):
    error = cls("thrown")

    async def main() -> None:
        with witness.caller():
            reading = loop(what)
            await anext(reading)
            await anext(reading)
            with pytest.raises(cls) as caught:
                await reading.athrow(error)
            assert caught.value is error

    asyncio.run(main())
    witness.ended(*(("cancelled", "task_cancelled") if cls is asyncio.CancelledError else (OPEN[what],)))


@WITH_OPEN
def test_a_consumer_never_sees_the_spans_of_a_generator(witness: Witness, what: str):
    async def main() -> None:
        reading = loop(what)
        for _ in range(2):
            with witness.caller():
                await anext(reading)
        with witness.caller():
            assert "first" not in [item async for item in reading]

    asyncio.run(main())
    witness.ended("success")


@WITH_OPEN
def test_each_item_may_be_read_in_another_task(witness: Witness, what: str):
    async def main() -> None:
        reading = loop(what)

        async def read() -> str:
            with witness.caller():
                return await anext(reading, "over")

        while await asyncio.create_task(read()) != "over":
            pass

    asyncio.run(main())
    witness.ended("success")


@WITH_OPEN
@pytest.mark.parametrize("orderly", [True, False])
def test_the_event_loop_is_closed_with_the_generator_open(witness: Witness, what: str, orderly: bool):
    left: list[AsyncIterator[str]] = []

    async def begin() -> None:
        with witness.caller():
            left.append(loop(what))
            await anext(left[0])
            await anext(left[0])

    events = asyncio.new_event_loop()
    events.run_until_complete(begin())
    if orderly:
        events.run_until_complete(events.shutdown_asyncgens())
    events.close()
    left.clear()
    witness.ended("cancelled", "consumer_stopped")


@WITH_OPEN
def test_a_generator_is_driven_and_dropped_without_an_event_loop(witness: Witness, what: str):
    def step(reading: Any) -> str:
        waiting = reading.asend(None)
        while True:
            try:
                waiting.send(None)
            except StopIteration as stop:
                return stop.value

    with witness.caller():
        reading = loop(what)
        step(reading)
        step(reading)
        del reading
        gc.collect()
    witness.ended("cancelled", "consumer_stopped")


def test_a_generator_is_dropped_while_it_waits_for_an_item(witness: Witness):
    waiting = Suspended()
    with witness.caller():
        item = loop_of("async_generator", lambda: PLACES["tool block"](waiting.act))()
        with pytest.raises(StopIteration):
            item.asend(None).send(None)
        asking = item.asend(None)
        contextvars.copy_context().run(asking.send, None)
        del asking, item
        gc.collect()
    witness.ended("cancelled", "consumer_stopped")


def test_what_is_sent_and_thrown_passes_through_a_generator(witness: Witness):
    error = KeyError("thrown")
    got: list[Any] = []

    @loopspan.agent_loop("loop")
    async def talk() -> Any:
        got.append((yield "a"))
        try:
            yield "b"
        except KeyError as thrown:
            got.append(thrown)
        yield "c"

    async def main() -> None:
        with witness.caller():
            reading = talk()
            assert [await anext(reading), await reading.asend(1), await reading.athrow(error)] == ["a", "b", "c"]
            assert await anext(reading, None) is None

    asyncio.run(main())
    assert got == [1, error]
    witness.ended("success", runs=1)
