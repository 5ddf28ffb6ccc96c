"""Cases, group context-generators, continued: what is on a stream's span, and that an error stays there."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import loopspan
from loopspan.testing import TickingClock, capture
from ways import Witness

CHUNKS = [
    {"model": "m-1", "choices": [{"delta": {"content": "two "}, "finish_reason": None}]},
    {"model": "m-1", "choices": [{"delta": {"content": "words"}, "finish_reason": None}]},
    {"model": "m-1", "choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"model": "m-1", "choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 7}},
]
DECORATORS: dict[str, Callable[[Any], Any]] = {
    "agent_loop": loopspan.agent_loop("agent"),
    "model_request": loopspan.model_request(model="m"),
    "tool": loopspan.tool("tool"),
}


class Unhappy(Exception):
    """What breaks."""


# A4: a stream's span lasts as long as the stream


class Stream:
    """A stream as an SDK's client returns it."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def close(self) -> None:
        """Close it."""


def streamed(clock: TickingClock) -> Iterator[dict[str, Any]]:
    """Chunks, one second apart; the producer writes on the span until the end."""
    for number, chunk in enumerate(CHUNKS):
        clock.advance(1)
        trace.get_current_span().set_attribute(f"chunk.{number}", True)
        yield chunk
    trace.get_current_span().set_attribute("at.the.end", True)


async def streamed_async(clock: TickingClock) -> AsyncIterator[dict[str, Any]]:
    """Likewise."""
    for chunk in streamed(clock):
        await asyncio.sleep(0)
        yield chunk


STREAMS: dict[str, Callable[[TickingClock], Any]] = {
    "generator function": streamed,
    "asynchronous generator function": streamed_async,
    "function that returns a generator": lambda clock: streamed(clock),
    "function that returns an asynchronous generator": lambda clock: streamed_async(clock),
    "function that returns an SDK's stream": lambda clock: Stream(streamed(clock)),
}


async def read(value: Any, items: int | None = None) -> None:
    """Read so many items, or all."""
    number = 0
    if isinstance(value, AsyncIterator):
        async for _ in value:
            number += 1
            if number == items:
                return
        return
    for _ in value:
        number += 1
        if number == items:
            return


@pytest.mark.parametrize("sort", STREAMS)
@pytest.mark.parametrize("items", [None, 2], ids=["exhausted", "abandoned"])
def test_A4_a_streams_span_ends_with_the_stream(sort: str, items: int | None):
    clock = TickingClock()
    with capture(clock=clock) as captured:
        wrapped = loopspan.model_request(model="m")(STREAMS[sort])

        @loopspan.agent_loop("agent")
        async def agent() -> None:
            stream = wrapped(clock)
            assert "chat m" not in [span.name for span in captured.spans], "the wrapper's return is not the end"
            await read(stream, items)
            del stream
            gc.collect()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        asyncio.run(agent())
    chat = next(span for span in captured.spans if span.name == "chat m")
    said = chat.attributes
    assert chat.end_time - chat.start_time >= (len(CHUNKS) if items is None else items) * 1_000_000_000
    assert chat.status.status_code is StatusCode.UNSET
    if items is None:
        assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (50, 7)
        assert (said["loopspan.request.outcome"], said["gen_ai.response.finish_reasons"]) == ("ok", ("stop",))
        assert [key for key in said if key.startswith("chunk.")] == [f"chunk.{n}" for n in range(len(CHUNKS))]
        assert said["at.the.end"] is True
    else:
        assert said["loopspan.request.outcome"] == "cancelled"
        assert "gen_ai.usage.input_tokens" not in said, "unknown, not 0"
    assert captured.open_spans() == []


# A6: an error is never downgraded


def set_ok() -> None:
    """What an instrumentation does at the end of its own part."""
    trace.get_current_span().set_status(StatusCode.OK)


def breaking(when: str) -> None:
    """Set OK before or after the error."""
    try:
        if when == "before":
            set_ok()
        raise Unhappy
    finally:
        if when == "after":
            set_ok()


def breaking_stream(when: str) -> Iterator[str]:
    """Yield, then break."""
    yield "item"
    breaking(when)


BROKEN = {"agent_loop": "invoke_agent agent", "model_request": "chat m", "tool": "attempt tool"}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("body", [breaking, breaking_stream], ids=["whole", "streamed"])
@pytest.mark.parametrize("decorator", DECORATORS)
def test_A6_an_error_is_never_downgraded(witness: Witness, decorator: str, body: Any, when: str):
    decorated = DECORATORS[decorator](body)

    @loopspan.agent_loop("around")
    def around() -> None:
        with pytest.raises(Unhappy):
            list(decorated(when) or ())

    witness.use(around)
    witness.ended("success")
    span = next(span for span in witness.captured.spans if span.name == BROKEN[decorator])
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"].endswith("Unhappy")


def test_A6_a_status_that_the_user_sets_on_a_success_stays(witness: Witness):
    @loopspan.tool("tool")
    def fine() -> None:
        set_ok()

    witness.use(loopspan.agent_loop("around")(fine))
    witness.ended("success")
    span = next(span for span in witness.captured.spans if span.name == "attempt tool")
    assert span.status.status_code is StatusCode.OK
