"""Requests at the same time: none of them opens a step while another one belongs to the open step."""

from __future__ import annotations

import threading
from typing import Any

import loopspan
from loopspan import Retry, semconv
from loopspan.testing import Captured, TickingClock, capture
from projection.spans import of


class Waiting(TickingClock):
    """A clock that lets another thread make its request while one waits for its next attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Any = None

    def sleep(self, seconds: float) -> None:
        """Pass the time; another thread uses it."""
        thread = threading.Thread(target=loopspan.carry(self.meanwhile))
        thread.start()
        thread.join()
        super().sleep(seconds)


def test_a_request_that_waits_for_its_next_attempt_keeps_its_step_open():
    clock = Waiting()
    failures = [OSError("busy")]

    @loopspan.model_request(retry=Retry(max_attempts=2, on=(OSError,)))
    def ask() -> None:
        if failures:
            raise failures.pop()

    with capture(clock=clock) as captured, loopspan.agent_loop("agent") as run:
        clock.meanwhile = loopspan.model_request(lambda: None)
        ask()
        run.succeed()
    assert steps_of_chats(captured) == [1, 1, 1]
    assert len(of(captured.spans, "step")) == 1


def test_the_next_request_after_a_repeated_one_opens_the_next_step(loopspan_capture: Captured):
    failures = [OSError("busy"), OSError("busy"), OSError("busy")]

    @loopspan.model_request(retry=Retry(max_attempts=2, on=(OSError,)))
    def ask() -> None:
        if failures:
            raise failures.pop()

    with loopspan.agent_loop("agent") as run:
        for _ in range(3):
            try:
                ask()
            except loopspan.RetryBudgetExhausted:
                continue
        run.succeed()
    assert steps_of_chats(loopspan_capture) == [1, 1, 2, 2, 3]


def steps_of_chats(captured: Captured) -> list[Any]:
    """The steps of all requests, in order of their ends."""
    return [span.attributes[semconv.STEP_NUMBER] for span in of(captured.spans, "chat")]
