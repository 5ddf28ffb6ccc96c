"""Which step and which span a request belongs to: at the same time as others, repeated, inside of a tool."""

from __future__ import annotations

import contextlib
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


# --- what is repeated, and what only looks like it


def test_a_request_with_the_arguments_of_one_that_failed_inside_a_tool_is_the_loops_own(loopspan_capture: Captured):
    messages: list[Any] = []
    failures = [OSError("busy")]

    @loopspan.model_request
    def ask(messages: list[Any]) -> None:
        if failures:
            raise failures.pop()

    @loopspan.tool
    def act() -> None:
        with contextlib.suppress(OSError):
            ask(messages)

    with loopspan.agent_loop("agent") as run:
        act()
        ask(messages)
        run.succeed()
    names = {span.context.span_id: span.name for span in loopspan_capture.spans}
    parents = [names[span.parent.span_id] for span in of(loopspan_capture.spans, "chat")]
    assert parents == ["attempt act", "step"]
    assert [span.attributes[semconv.ATTEMPT_NUMBER] for span in of(loopspan_capture.spans, "chat")] == [1, 1]


def test_a_request_that_a_repeated_tool_makes_again_is_below_the_new_attempt(loopspan_capture: Captured):
    failures = [OSError("busy")]

    @loopspan.model_request
    def ask() -> None:
        if failures:
            raise failures.pop()

    @loopspan.tool(retry=Retry(max_attempts=2, on=(OSError,)))
    def act() -> None:
        ask()

    with loopspan.agent_loop("agent") as run:
        act()
        run.succeed()
    attempts = [span.context.span_id for span in of(loopspan_capture.spans, "attempt")]
    assert [span.parent.span_id for span in of(loopspan_capture.spans, "chat")] == attempts


def test_a_call_that_failed_inside_of_another_is_not_repeated_by_the_loop(loopspan_capture: Captured):
    failures = [OSError("busy")]

    @loopspan.tool
    def read() -> None:
        if failures:
            raise failures.pop()

    @loopspan.tool
    def act() -> None:
        with contextlib.suppress(OSError):
            read()

    with loopspan.agent_loop("agent") as run:
        act()
        read()
        run.succeed()
    calls = [span for span in of(loopspan_capture.spans, "execute_tool") if span.name == "execute_tool read"]
    assert [span.attributes[semconv.TOOL_ATTEMPTS] for span in calls] == [1, 1]
    assert len({span.attributes[semconv.TOOL_CALL_ID] for span in calls}) == 2
