"""A client that fails before it answers, and the ways in which loops repeat a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import loopspan
from loopspan import Answer, Usage
from loopspan.testing import Captured, TickingClock, capture


class TooMany(Exception):
    """Status 429."""


class Broken(Exception):
    """Status 500."""


def name(cls: type[Exception]) -> str:
    """As error.type has it."""
    return f"{__name__}.{cls.__name__}"


class Client:
    """Answers what it is told, each answer a second later."""

    def __init__(self, clock: TickingClock, *script: Any) -> None:
        self._clock = clock
        self._script = list(script)

    def send(self, messages: Any = None) -> Any:
        """The next answer, or the next error."""
        self._clock.advance(1)
        answer = self._script.pop(0)
        if isinstance(answer, type):
            raise answer("try again")
        return answer


OK = {
    "model": "m-1",
    "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2},
}
WAITS = {1: 3.0, 2: 7.0}
RETRY = loopspan.Retry(max_attempts=3, on=(TooMany, Broken), wait=WAITS.__getitem__)


def by_retry(client: Client, clock: TickingClock) -> Any:
    """Loopspan repeats."""
    return loopspan.model_request(model="m", retry=RETRY)(client.send)([])


def by_retry_async(client: Client, clock: TickingClock) -> Any:
    """Loopspan repeats a coroutine function."""

    async def send(messages: Any) -> Any:
        await asyncio.sleep(0)
        return client.send(messages)

    return asyncio.run(loopspan.model_request(model="m", retry=RETRY)(send)([]))


def by_own_loop(client: Client, clock: TickingClock) -> Any:
    """The loop repeats the decorated function itself."""
    send, messages = loopspan.model_request(model="m")(client.send), ["equal"]
    for attempt in (1, 2, 3):
        try:
            return send(messages)
        except (TooMany, Broken):
            clock.sleep(WAITS[attempt])
    return None


def by_block(client: Client, clock: TickingClock) -> Any:
    """The loop repeats a block itself."""
    for attempt in (1, 2, 3):
        try:
            with loopspan.model_request(model="m") as request:
                answer = client.send()
                request.answer(Answer(model="m-1", usage=Usage(input_tokens=10, output_tokens=2), tool_calls=()))
                return answer
        except (TooMany, Broken):
            clock.sleep(WAITS[attempt])
    return None


def by_client(client: Client, clock: TickingClock) -> Any:
    """The client repeats by itself, and each of its attempts is decorated as well."""
    send = loopspan.model_request(model="m")(client.send)

    @loopspan.model_request(model="m")
    def complete(messages: Any) -> Any:
        for attempt in (1, 2, 3):
            try:
                return send(messages)
            except (TooMany, Broken):
                clock.sleep(WAITS[attempt])
        return None

    return complete([])


WAYS = [by_retry, by_retry_async, by_own_loop, by_block, by_client]


def run(way: Callable[[Client, TickingClock], Any], *script: Any, **options: Any) -> tuple[Captured, Any]:
    """What is recorded of a loop of one logical request."""
    clock = TickingClock(step=0)
    with capture(clock=clock) as captured:
        loopspan.agent_loop("loop", **options)(lambda: way(Client(clock, *script), clock))()
    assert captured.open_spans() == []
    return captured, captured.runs[0]


def retries_of(captured: Captured) -> list[Any]:
    """The entries that say that something is repeated."""
    return [entry for entry in captured.entries if entry.event.name in ("model_retry", "tool_retry")]
