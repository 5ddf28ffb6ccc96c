"""The ways out of a loop, for all four kinds of function: spans ended, one stop reason, the same exception object."""

from __future__ import annotations

import asyncio
import gc
import inspect
from contextlib import nullcontext
from typing import Any

import pytest

import loopspan
from ways import FAILURES, KINDS, PLACES, Witness, loop_of, raises

KIND = pytest.mark.parametrize("kind", KINDS)
PLACE = pytest.mark.parametrize("place", PLACES)

CANCELS = {
    KeyboardInterrupt: "keyboard_interrupt",
    SystemExit: "shutdown",
    asyncio.CancelledError: "task_cancelled",
    GeneratorExit: "consumer_stopped",
}


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
        with pytest.raises(ValueError):  # noqa: PT011  # it is the one that was raised
            PLACES[place](raises(ValueError()))
        return "went on"

    assert witness.use(loop_of(kind, act)) in ("went on", [1, 2])
    witness.ended("success")


@KIND
@pytest.mark.parametrize("group", [ExceptionGroup, BaseExceptionGroup])
def test_a_group_with_the_failure_of_a_tool_is_the_same_object(witness: Witness, kind: str, group: Any):
    made: list[BaseException] = []

    def act() -> None:
        try:
            PLACES["tool"](raises(OSError("disk")))
        except OSError as error:
            made.append(group("several", [error]))
            raise made[0] from None

    with pytest.raises(group) as caught:
        witness.use(loop_of(kind, act))
    assert caught.value is made[0]
    witness.ended("tool_failed")


@KIND
def test_an_exception_raised_from_the_failure_of_a_tool_is_the_same_object(witness: Witness, kind: str):
    def act() -> None:
        try:
            PLACES["tool"](raises(OSError("disk")))
        except OSError as failure:
            raise made from failure

    made = RuntimeError("gave up")
    with pytest.raises(RuntimeError) as caught:
        witness.use(loop_of(kind, act))
    assert caught.value is made
    witness.ended("tool_failed")


@KIND
@PLACE
@pytest.mark.parametrize("listed", [(ValueError,), (KeyboardInterrupt,)])
def test_an_exception_for_control_flow_ends_a_loop_as_a_return(witness: Witness, kind: str, place: str, listed: Any):
    error = listed[0]("submitted")
    with pytest.raises(listed) as caught:
        witness.use(loop_of(kind, lambda: PLACES[place](raises(error)), control_flow=listed))
    assert caught.value is error
    witness.ended("success")


@KIND
@pytest.mark.parametrize("reason", ["max_steps", "cancelled", "tool_failed", "unknown_tool"])
def test_a_loop_says_itself_why_it_returns(witness: Witness, kind: str, reason: str):
    witness.use(loop_of(kind, lambda: loopspan.current_run().stop(reason, "by itself")))
    witness.ended(reason, "by itself")


@KIND
def test_an_exception_says_more_than_what_the_loop_decided_before(witness: Witness, kind: str):
    def act() -> None:
        loopspan.current_run().succeed()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        witness.use(loop_of(kind, act))
    witness.ended("loop_error")


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_loop_that_is_never_entered_is_no_run(witness: Witness, kind: str):
    with witness.caller():
        made = loop_of(kind, lambda: None)()
        with pytest.warns(RuntimeWarning, match="never awaited") if inspect.iscoroutine(made) else nullcontext():
            del made
            gc.collect()
    assert witness.captured.entries == []
    assert [span.name for span in witness.captured.spans] == ["caller"]
    witness.silent()
