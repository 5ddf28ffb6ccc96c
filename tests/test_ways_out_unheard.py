"""The same ways out where nobody records anything: nothing is broken or left behind, the reason is the same."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

import loopspan
import ways_async
from ways import FAILURES, KINDS, PLACES, Witness, loop_of, raises

KIND = pytest.mark.parametrize("kind", KINDS)
PLACE = pytest.mark.parametrize("place", PLACES)


@pytest.fixture(autouse=True)
def unheard() -> Iterator[None]:
    """Nothing is recorded."""
    with loopspan.configure(enabled=False):
        yield


@KIND
@PLACE
def test_a_loop_that_returns(witness: Witness, kind: str, place: str):
    result = object()
    got = witness.use(loop_of(kind, lambda: PLACES[place](lambda: result)))
    assert got in ([1, 2], None, ["chunk"] * 2, ["item"] * 2) or got is result
    assert witness.captured.entries == []
    witness.silent()


@KIND
@PLACE
@pytest.mark.parametrize("cls", [ValueError, asyncio.CancelledError])
def test_an_exception_is_the_same_object(witness: Witness, kind: str, place: str, cls: type[BaseException]):
    error = cls("stop")
    runs = []

    def act() -> None:
        runs.append(loopspan.current_run())
        PLACES[place](raises(error))

    with pytest.raises(cls) as caught:
        witness.use(loop_of(kind, act))
    assert caught.value is error
    with pytest.raises(loopspan.RunClosed, match=FAILURES[place] if cls is ValueError else "cancelled"):
        runs[0].succeed()
    witness.silent()


@pytest.mark.parametrize("kind", ["coroutine", "async_generator"])
@pytest.mark.parametrize("place", ways_async.PLACES)
def test_a_time_out_of_its_own(witness: Witness, kind: str, place: str):
    runs = []

    async def act() -> None:
        runs.append(loopspan.current_run())
        async with asyncio.timeout(0.01):
            await ways_async.PLACES[place](ways_async.Suspended().act)

    with pytest.raises(TimeoutError):
        witness.use(ways_async.loop_of(kind, act))
    with pytest.raises(loopspan.RunClosed, match="loop_error"):
        runs[0].succeed()
    witness.silent()


def test_a_generator_that_is_abandoned(witness: Witness):
    runs = []

    def act() -> None:
        runs.append(loopspan.current_run())

    with witness.caller():
        reading = loop_of("generator", act)()
        next(reading)
        next(reading)
        del reading
        gc.collect()
    with pytest.raises(loopspan.RunClosed, match="cancelled"):
        runs[0].succeed()
    witness.silent()
