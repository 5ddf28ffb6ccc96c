"""The same boundaries as blocks: left in every way, left undecided, left open."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import context

import loopspan
from loopspan import RunNotClosed
from ways import FAILURES, PLACES, Witness, ask, raises, work

PLACE = pytest.mark.parametrize("place", PLACES)
CANCELS = {
    KeyboardInterrupt: "keyboard_interrupt",
    SystemExit: "shutdown",
    asyncio.CancelledError: "task_cancelled",
    GeneratorExit: "consumer_stopped",
}


def run_block(place: str, error: BaseException) -> None:
    """A run as a block that `error` leaves."""
    with loopspan.agent_loop("block"):
        PLACES[place](raises(error))


@PLACE
def test_an_exception_leaves_the_block_untouched(witness: Witness, place: str):
    error = ValueError("broken")
    with witness.caller(), pytest.raises(ValueError, match="broken") as caught:
        run_block(place, error)
    assert caught.value is error
    witness.ended(FAILURES[place])


@PLACE
@pytest.mark.parametrize("cls", CANCELS)
def test_a_cancel_leaves_the_block_untouched(witness: Witness, place: str, cls: type[BaseException]):
    error = cls("stop")
    with witness.caller(), pytest.raises(cls) as caught:
        run_block(place, error)
    assert caught.value is error
    witness.ended("cancelled", CANCELS[cls])


@PLACE
def test_a_block_that_decided_is_left_with_that(witness: Witness, place: str):
    with witness.caller(), loopspan.agent_loop("block") as run:
        PLACES[place](lambda: run.succeed())
    witness.ended("success")


def test_a_block_that_is_left_undecided_is_an_error(witness: Witness):
    with witness.caller(), pytest.raises(RunNotClosed, match="left undecided"), loopspan.agent_loop("block"):
        ask()
    witness.ended("loop_error", "not_closed", runs=1)


@pytest.mark.parametrize("leave", ["return", "break", "continue"])
def test_a_block_may_be_left_by_a_jump(witness: Witness, leave: str):
    def jump() -> None:
        for _ in range(1):
            with loopspan.agent_loop("block") as run:
                run.stop("max_steps")
                with loopspan.model_request(model="m"):
                    if leave == "return":
                        return
                    if leave == "break":
                        break
                    continue

    with witness.caller():
        jump()
    witness.ended("max_steps", runs=1)


def test_a_cancelled_task_leaves_its_blocks(witness: Witness):
    async def call() -> None:
        with (
            witness.caller(),
            loopspan.agent_loop("block"),
            loopspan.tool_call("work", {}) as call,
            call.attempt(),
            loopspan.model_request(model="m"),
        ):
            await asyncio.Event().wait()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call(), 0.01)

    asyncio.run(main())
    witness.ended("cancelled", "task_cancelled", runs=1)


def test_a_call_that_is_checked_and_never_attempted_is_cancelled(witness: Witness):
    with loopspan.agent_loop("block") as run:
        with loopspan.tool_call("work", {}):
            pass
        run.succeed()
    witness.ended("success")
    assert [(call.outcome, len(call.attempts)) for call in witness.captured.runs[0].tool_calls] == [("cancelled", 0)]


def blocks_in_a_generator() -> Iterator[str]:
    """Blocks in a generator that is not decorated."""
    with loopspan.agent_loop("block") as run:
        with loopspan.tool_call("work", {}) as call, call.attempt():
            yield "item"
        run.succeed()


def in_thread(act: Any) -> None:
    """Do it in another thread."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(10)


@pytest.mark.parametrize("where", ["here", "in an empty Context", "in another thread", "collected"])
def test_blocks_in_an_undecorated_generator_end_wherever_it_is_closed(witness: Witness, where: str):
    """What they leave current in between is documented; afterwards nothing is."""
    before = context.get_current()
    reading = blocks_in_a_generator()
    if where == "here":
        next(reading)
        reading.close()
    elif where == "in an empty Context":
        contextvars.copy_context().run(next, reading)
        contextvars.Context().run(reading.close)
    elif where == "in another thread":
        contextvars.copy_context().run(next, reading)
        in_thread(reading.close)
    else:
        contextvars.copy_context().run(next, reading)
        del reading
        gc.collect()
    assert context.get_current() is before
    witness.ended("cancelled", "consumer_stopped", runs=1)


def test_a_block_that_is_never_left_ends_when_it_is_collected(witness: Witness):
    def enter() -> None:
        loopspan.agent_loop("block").__enter__()
        work(ask)

    contextvars.copy_context().run(enter)
    witness.ended("cancelled", "consumer_stopped", runs=1)


def test_one_option_object_may_be_entered_again_inside_itself(witness: Witness):
    block = loopspan.agent_loop("block")
    with witness.caller(), block as outer:
        with block as inner:
            assert loopspan.current_run() is inner
            inner.stop("max_steps")
        assert loopspan.current_run() is outer
        outer.succeed()
    witness.ended("success", runs=2)


# a run that ends with something still open inside of it


@pytest.mark.parametrize("what", ["request", "attempt", "call", "sub-agent", "stream"])
def test_what_is_open_when_a_run_ends_is_ended_with_it(witness: Witness, what: str):
    left: list[Any] = []

    def leave_open() -> None:
        openers = {
            "request": lambda: loopspan.model_request(model="m"),
            "call": lambda: loopspan.tool_call("work", {}),
            "attempt": lambda: loopspan.tool_call("work", {}),
            "sub-agent": lambda: loopspan.agent_loop("child"),
        }
        if what == "stream":
            left.append(iter_once())
            next(left[0])
            return
        left.append(openers[what]())
        entered = left[0].__enter__()
        if what == "attempt":
            left.append(entered.attempt())
            left[1].__enter__()

    @loopspan.tool
    def iter_once() -> Iterator[int]:
        yield 1

    contextvars.copy_context().run(loopspan.agent_loop("loop")(leave_open))
    witness.ended("success")
    for open_still in reversed(left):
        open_still.close() if what == "stream" else open_still.__exit__(None, None, None)
    witness.ended("success")
