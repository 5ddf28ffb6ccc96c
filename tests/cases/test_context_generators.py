"""Cases, group context-generators: spans and contexts of functions that yield."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import NoOpTracerProvider

import loopspan
from programs import run_program
from ways import Witness

CHUNKS = [
    {"model": "m-1", "choices": [{"delta": {"content": "two "}, "finish_reason": None}]},
    {"model": "m-1", "choices": [{"delta": {"content": "words"}, "finish_reason": None}]},
    {"model": "m-1", "choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"model": "m-1", "choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 7}},
]


@loopspan.model_request(model="m")
async def ask() -> AsyncIterator[dict[str, Any]]:
    """A streamed answer in OpenAI's form."""
    for chunk in CHUNKS:
        await asyncio.sleep(0)
        yield chunk


@loopspan.agent_loop("agent")
async def decorated() -> AsyncIterator[dict[str, Any]]:
    """A loop that streams to its consumer."""
    async for chunk in ask():
        yield chunk


async def with_blocks() -> AsyncIterator[dict[str, Any]]:
    """The same with a context manager inside of a generator that nobody decorated."""
    with loopspan.agent_loop("agent") as run, loopspan.model_request(model="m"):
        for chunk in CHUNKS:
            await asyncio.sleep(0)
            yield chunk
        run.succeed()


class Unhappy(Exception):
    """What a consumer raises."""


async def consume(agent: Callable[[], AsyncIterator[Any]], stop: str) -> None:
    """Read an item, then stop in one of the ways that there are."""
    async for _ in agent():
        if stop == "break":
            break
        if stop == "return":
            return
        if stop == "raise":
            raise Unhappy
        await asyncio.Event().wait()


async def stop_in_a_task(agent: Callable[[], AsyncIterator[Any]], stop: str) -> None:
    """Stop in a task of its own; the generator is then finalised by the event loop, in the base Context."""
    task = asyncio.create_task(consume(agent, stop))
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() or not isinstance(task.exception(), RuntimeError)
    del task
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)


STOP = pytest.mark.parametrize("stop", ["break", "return", "raise", "cancel"])


@STOP
@pytest.mark.parametrize("agent", [decorated, with_blocks])
def test_A1_stopping_early_logs_nothing(witness: Witness, agent: Any, stop: str):
    async def main() -> None:
        with witness.caller():
            await stop_in_a_task(agent, stop)
            assert witness.captured.open_spans()[0].name == "caller", "the run's spans are ended while the program runs"
            assert len(witness.captured.open_spans()) == 1

    asyncio.run(main())
    witness.ended("cancelled", "consumer_stopped", runs=1)


@STOP
def test_A2_stopping_early_logs_nothing_without_an_sdk(witness: Witness, stop: str):
    async def main() -> None:
        with witness.caller():
            await stop_in_a_task(decorated, stop)

    with loopspan.configure(tracer_provider=NoOpTracerProvider()):
        asyncio.run(main())
    (closed,) = witness.events("run_trace_closed")
    assert (closed.event.stop_reason, closed.event.stop_detail) == ("cancelled", "consumer_stopped")
    assert [span.name for span in witness.captured.spans] == ["caller"]
    witness.silent()


DISABLED = """
import asyncio, gc, logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import loopspan
{setup}

runs = []

@loopspan.model_request(model="m")
async def ask():
    for word in "some words":
        await asyncio.sleep(0)
        yield word

@loopspan.agent_loop("agent")
async def agent():
    runs.append(loopspan.current_run())
    async for word in ask():
        yield word

async def consume():
    async for _ in agent():
        break

async def main():
    await asyncio.create_task(consume())
    gc.collect()
    await asyncio.sleep(0)

asyncio.run(main())
gc.collect()
try:
    runs[0].succeed()
except loopspan.RunClosed as error:
    print("closed:", error)
"""


@pytest.mark.parametrize("setup", ["loopspan.setup()", ""], ids=["set up", "nothing set up"])
def test_A2_stopping_early_logs_nothing_with_the_sdk_disabled(tmp_path: Path, setup: str):
    ended = run_program(tmp_path, DISABLED.format(setup=setup), OTEL_SDK_DISABLED="true")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    records = [line for line in ended.stdout.splitlines() if ":asyncio:" not in line]
    assert len(records) == 1, records
    assert records[0].startswith("closed:")
    assert "cancelled" in records[0]


# A3: every sort of function, every way that its span may close


def plain(act: Callable[[], Any]) -> Any:
    return act()


async def coroutine(act: Callable[[], Any]) -> Any:
    return act()


def generator(act: Callable[[], Any]) -> Iterator[Any]:
    yield 1
    act()
    yield 2


async def async_generator(act: Callable[[], Any]) -> AsyncIterator[Any]:
    yield 1
    act()
    yield 2


SORTS: dict[str, Callable[..., Any]] = {
    "function": plain,
    "coroutine function": coroutine,
    "generator function": generator,
    "asynchronous generator function": async_generator,
    "function that returns an awaitable": lambda act: coroutine(act),
    "function that returns a generator": lambda act: generator(act),
    "function that returns an asynchronous generator": lambda act: async_generator(act),
}
DECORATORS: dict[str, Callable[[Any], Any]] = {
    "agent_loop": loopspan.agent_loop("agent"),
    "model_request": loopspan.model_request(model="m"),
    "tool": loopspan.tool("tool"),
}


async def exhaust(value: Any) -> None:
    """Read whatever it is to its end."""
    if isinstance(value, Awaitable):
        await value
    elif isinstance(value, AsyncIterator):
        async for _ in value:
            pass
    elif isinstance(value, Iterator):
        list(value)


async def begin(value: Any) -> None:
    """Read one item, where there are several."""
    if isinstance(value, AsyncIterator):
        await anext(value)
    elif isinstance(value, Iterator):
        next(value)
    else:
        await exhaust(value)


async def close(value: Any) -> None:
    """Read one item, then close."""
    await begin(value)
    if isinstance(value, AsyncIterator):
        await value.aclose()
    elif isinstance(value, Iterator):
        value.close()


def breaks() -> None:
    raise Unhappy


@pytest.mark.parametrize("decorator", DECORATORS)
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("way", ["exhausted", "closed", "error", "collected"])
def test_A3_each_sort_of_function_closes_its_span(witness: Witness, decorator: str, sort: str, way: str):
    decorated = DECORATORS[decorator](SORTS[sort])

    @loopspan.agent_loop("around")
    async def around() -> None:
        if way == "error":
            with pytest.raises(Unhappy):
                await exhaust(decorated(breaks))
            return
        value = decorated(lambda: None)
        await {"exhausted": exhaust, "closed": close, "collected": begin}[way](value)
        del value
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        open_names = [span.name for span in witness.captured.open_spans()]
        assert not {"chat m", "execute_tool tool", "attempt tool", "invoke_agent agent"} & {*open_names}

    witness.use(around)
    witness.ended("success")
    names = [span.name for span in witness.captured.spans]
    wanted = {"agent_loop": "invoke_agent agent", "model_request": "chat m", "tool": "attempt tool"}[decorator]
    assert names.count(wanted) == 1
