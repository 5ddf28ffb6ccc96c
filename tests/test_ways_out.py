"""Every way out of a loop, for all four kinds of function: spans ended, one stop reason, the same exception object."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ways import FAILURES, KINDS, PLACES, Witness, ask, ask_streamed, loop_of, raises, work_streamed

import loopspan
from loopspan.testing import Captured

KIND = pytest.mark.parametrize("kind", KINDS)
PLACE = pytest.mark.parametrize("place", PLACES)

CANCELS = {
    KeyboardInterrupt: "keyboard_interrupt",
    SystemExit: "shutdown",
    asyncio.CancelledError: "task_cancelled",
    GeneratorExit: "consumer_stopped",
}


@pytest.fixture
def witness(loopspan_capture: Captured, caplog: pytest.LogCaptureFixture) -> Witness:
    return Witness(loopspan_capture, caplog)


# returning, raising


@KIND
def test_a_loop_that_returns_is_a_success(witness: Witness, kind: str):
    result = object()
    got = witness.use(loop_of(kind, lambda: result))
    assert got == [1, 2] or got is result
    witness.ended("success", runs=1)


@KIND
@PLACE
def test_an_exception_reaches_the_caller_as_the_same_object(witness: Witness, kind: str, place: str):
    error = ValueError("broken")
    with pytest.raises(ValueError, match="broken") as caught:
        witness.use(loop_of(kind, lambda: PLACES[place](raises(error))))
    assert caught.value is error
    assert (error.__cause__, error.__context__) == (None, None)
    witness.ended(FAILURES[place])


@KIND
@PLACE
@pytest.mark.parametrize("cls", CANCELS)
def test_a_cancel_of_any_kind_is_raised_untouched(witness: Witness, kind: str, place: str, cls: type[BaseException]):
    error = cls("stop")
    with pytest.raises(cls) as caught:
        witness.use(loop_of(kind, lambda: PLACES[place](raises(error))))
    assert caught.value is error
    witness.ended("cancelled", CANCELS[cls])


@KIND
@PLACE
def test_an_exception_that_the_loop_catches_ends_nothing(witness: Witness, kind: str, place: str):
    def act() -> str:
        with pytest.raises(ValueError):
            PLACES[place](raises(ValueError()))
        return "went on"

    assert witness.use(loop_of(kind, act)) in ("went on", [1, 2])
    witness.ended("success")


@KIND
@pytest.mark.parametrize("group", [ExceptionGroup, BaseExceptionGroup])
def test_a_group_with_the_failure_of_a_tool_is_the_same_object(witness: Witness, kind: str, group: Any):
    def act() -> None:
        try:
            PLACES["tool"](raises(OSError("disk")))
        except OSError as error:
            made.append(group("several", [error]))
            raise made[0] from None

    made: list[BaseException] = []
    with pytest.raises(group) as caught:
        witness.use(loop_of(kind, act))
    assert caught.value is made[0]
    witness.ended("tool_failed")


# generators: what the consumer does


def held(place: str) -> Iterator[str]:
    """A loop's body that yields while something is in flight."""
    if place == "loop":
        yield "item"
    elif place == "request":
        yield from ask_streamed(lambda: None)
    elif place == "tool":
        yield from work_streamed(lambda: None)
    elif place == "sub-agent":
        yield from loopspan.agent_loop("child")(lambda: ask_streamed(lambda: None))()
    elif place == "request block":
        with loopspan.model_request(model="m"):
            yield "item"
    elif place == "tool block":
        with loopspan.tool_call("work", {}) as call, call.attempt():
            yield "item"
    else:
        with loopspan.agent_loop("child") as run:
            yield "item"
            run.succeed()


HELD = pytest.mark.parametrize(
    "place", ["loop", "request", "tool", "sub-agent", "request block", "tool block", "sub-agent block"]
)


@loopspan.agent_loop(name="loop")
def generator(place: str) -> Iterator[str]:
    ask()
    yield "first"
    yield from held(place)
    yield "last"


@loopspan.agent_loop(name="loop")
async def async_generator(place: str) -> Any:
    ask()
    yield "first"
    for item in held(place):
        await asyncio.sleep(0)
        yield item
    yield "last"


def in_thread(act: Callable[[], Any]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(10)


CLOSERS: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "here": lambda close: close(),
    "in a copy of the Context": lambda close: contextvars.copy_context().run(close),
    "in an empty Context": lambda close: contextvars.Context().run(close),
    "in another thread": in_thread,
}


@HELD
@pytest.mark.parametrize("closer", CLOSERS)
def test_a_generator_that_is_closed_early(witness: Witness, place: str, closer: str):
    with witness.caller():
        reading = generator(place)
        assert [next(reading), next(reading)][0] == "first"
        CLOSERS[closer](reading.close)
    witness.ended("cancelled", "consumer_stopped")


@HELD
def test_a_generator_that_is_abandoned(witness: Witness, place: str):
    with witness.caller():
        for item in generator(place):
            if item != "first":
                break
        gc.collect()
    witness.ended("cancelled", "consumer_stopped")


@HELD
def test_the_consumer_of_a_generator_never_sees_its_span(witness: Witness, place: str):
    reading = generator(place)
    for _ in range(3):
        with witness.caller():
            next(reading)
    reading.close()
    witness.ended("cancelled", "consumer_stopped")


@HELD
def test_an_exception_thrown_into_a_generator_is_the_same_object(witness: Witness, place: str):
    error = ValueError("thrown")
    with witness.caller():
        reading = generator(place)
        next(reading)
        next(reading)
        with pytest.raises(ValueError, match="thrown") as caught:
            reading.throw(error)
    assert caught.value is error
    witness.ended(FAILURES[place] if place != "sub-agent" else "model_failed")


def test_what_is_sent_and_returned_passes_through_a_generator(witness: Witness):
    @loopspan.agent_loop("loop")
    def talk() -> Any:
        got = [(yield "a"), (yield "b")]
        try:
            yield "c"
        except KeyError as error:
            got.append(error)
        return got

    def reader() -> Any:
        return (yield from talk())

    error = KeyError("thrown")
    reading = reader()
    with witness.caller():
        assert [next(reading), reading.send(1), reading.send(2)] == ["a", "b", "c"]
        with pytest.raises(StopIteration) as stopped:
            reading.throw(error)
    assert stopped.value.value == [1, 2, error]
    witness.ended("success", runs=1)


@KIND
def test_a_loop_that_is_never_entered_is_no_run(witness: Witness, kind: str):
    if kind == "plain":
        pytest.skip("a call of a plain function enters it")
    with witness.caller():
        made = loop_of(kind, lambda: None)()
        if inspect.iscoroutine(made):
            with pytest.warns(RuntimeWarning, match="never awaited"):
                del made
                gc.collect()
        del kind
    gc.collect()
    assert witness.events("run_started") == []
    assert [span.name for span in witness.captured.spans] == ["caller"]


@pytest.mark.parametrize("place", PLACES)
def test_a_coroutine_that_is_dropped_half_way(witness: Witness, place: str):
    @loopspan.agent_loop("loop")
    async def loop() -> None:
        ask()
        await Forever()

    with witness.caller():
        coroutine = loop()
        coroutine.send(None)
        del coroutine
        gc.collect()
    witness.ended("cancelled", "consumer_stopped")
