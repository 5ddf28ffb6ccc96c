"""Every way out of a loop, for all four kinds of function: spans ended, one stop reason, the same exception object."""

from __future__ import annotations

import asyncio
import gc

import pytest
from ways import KINDS, PLACES, Witness, loop_of

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
FAILURE = {"loop": "loop_error", "request": "model_failed", "tool": "tool_failed", "stream": "model_failed"}


@pytest.fixture
def witness(loopspan_capture: Captured, caplog: pytest.LogCaptureFixture) -> Witness:
    return Witness(loopspan_capture, caplog)


def raises(error: BaseException):
    """An act that raises `error`."""

    def act() -> None:
        raise error

    return act


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
    reason = next(reason for word, reason in FAILURE.items() if word in place.replace("tool stream", "tool"))
    witness.ended(reason)


@KIND
@PLACE
@pytest.mark.parametrize("cls", CANCELS)
def test_a_cancel_of_any_kind_is_raised_untouched(
    witness: Witness, kind: str, place: str, cls: type[BaseException]
):
    error = cls("stop")
    with pytest.raises(cls) as caught:
        witness.use(loop_of(kind, lambda: PLACES[place](raises(error))))
    assert caught.value is error
    witness.ended("cancelled", CANCELS[cls])
