"""Cases, group lifecycle-lost: runs that are cut, and what is left of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import loopspan
from loopspan.testing import Captured
from ways import Witness
from ways_async import Suspended

Act = Callable[[], Awaitable[Any]]


@loopspan.model_request(model="m")
async def ask(act: Act) -> Any:
    """A model that takes its time."""
    return await act()


@loopspan.tool
async def work(act: Act) -> Any:
    """A tool that takes its time."""
    return await act()


@loopspan.agent_loop("agent")
async def agent(act: Act) -> Any:
    """An agent whose model is slow."""
    return await ask(act)


@loopspan.agent_loop("agent")
async def streaming(act: Act) -> AsyncIterator[Any]:
    """The same as a stream."""
    yield "first"
    yield await ask(act)


async def read_all(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


async def read_one(start: Callable[[], AsyncIterator[Any]]) -> None:
    """Break, and let the event loop finalise the generator."""
    async for _ in start():
        break
    for _ in range(5):
        await asyncio.sleep(0)


async def nothing() -> None: ...


AGENTS: dict[str, Callable[[Act], Awaitable[Any]]] = {
    "coroutine": agent,
    "stream": lambda act: read_all(streaming(act)),
}


# B1


async def cancel(run: Callable[[Act], Awaitable[Any]]) -> None:
    waiting = Suspended()
    task = asyncio.ensure_future(run(waiting.act))
    while not waiting.reached:  # noqa: ASYNC110  # it is one that does without an event loop
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def time_out(run: Callable[[Act], Awaitable[Any]]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run(Suspended().act), 0.01)


async def interrupt(run: Callable[[Act], Awaitable[Any]]) -> None:
    async def act() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    await run(act)


WAYS = {"cancel": (cancel, "task_cancelled"), "time-out": (time_out, "task_cancelled")}


@pytest.mark.parametrize("sort", AGENTS)
@pytest.mark.parametrize("way", [*WAYS, "interrupt"])
def test_B1_every_span_that_was_opened_is_exported(witness: Witness, sort: str, way: str):
    exporter = InMemorySpanExporter()
    witness.captured.tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    cut, detail = WAYS.get(way, (interrupt, "keyboard_interrupt"))
    if way == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(cut(AGENTS[sort]))
    else:
        asyncio.run(cut(AGENTS[sort]))
    exported = {span.name: span.attributes for span in exporter.get_finished_spans()}
    assert sorted(exported) == ["chat m", "invoke_agent agent", "step"]
    assert exported["invoke_agent agent"]["loopspan.run.stop_reason"] == "cancelled"
    assert exported["invoke_agent agent"]["loopspan.run.stop_detail"] == detail
    assert exported["chat m"]["loopspan.request.outcome"] == "cancelled"
    assert exported["step"]["loopspan.step.outcome"] == "cancelled"
    witness.ended("cancelled", detail, runs=1)


def test_B1_a_consumer_that_breaks_loses_no_span(witness: Witness):
    @loopspan.agent_loop("agent")
    async def loop() -> AsyncIterator[str]:
        await ask(nothing)
        with loopspan.model_request(model="m"):
            yield "item"

    asyncio.run(read_one(loop))
    witness.ended("cancelled", "consumer_stopped", runs=1)
    assert sorted(span.name for span in witness.captured.spans) == [
        "chat m",
        "chat m",
        "invoke_agent agent",
        "step",
        "step",
    ]


def test_B1_a_deadline_of_the_run_is_a_time_out_not_a_cancel(witness: Witness):
    @loopspan.agent_loop("agent", deadline=0.001)
    async def loop() -> None:
        while True:
            await ask(nothing)

    with pytest.raises(loopspan.DeadlineExceeded):
        witness.use(loop)
    witness.ended("timeout", runs=1)


# B3


@pytest.mark.parametrize("sort", AGENTS)
@pytest.mark.parametrize("catches", [True, False])
def test_B3_a_cancelled_reply_is_neither_ok_nor_an_error(witness: Witness, sort: str, catches: bool):
    waiting = Suspended()
    got: list[BaseException] = []

    async def act() -> None:
        try:
            await waiting
        except Exception:  # noqa: BLE001  # a cancel is none
            assert not catches, "a cancel is no Exception"

    async def reply() -> None:
        try:
            await AGENTS[sort](act)
        except asyncio.CancelledError as error:
            got.append(error)
            raise

    asyncio.run(cancel_when_reached(reply, waiting))
    assert got == [waiting.error]
    witness.ended("cancelled", "task_cancelled", runs=1)
    assert {span.status.status_code for span in witness.captured.spans} == {StatusCode.UNSET}
    outcomes = {span.attributes.get("loopspan.request.outcome") for span in witness.captured.spans} - {None}
    assert outcomes == {"cancelled"}


async def cancel_when_reached(start: Act, waiting: Suspended) -> None:
    """Cancel the task once it waits."""
    task = asyncio.ensure_future(start())
    while not waiting.reached:  # noqa: ASYNC110  # it is one that does without an event loop
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


# B5: somebody asks for the end


def no_error_anywhere(captured: Captured) -> None:
    """No span is red, and no metric counts an error."""
    assert [span.name for span in captured.spans if span.status.status_code is StatusCode.ERROR] == []
    assert [span.name for span in captured.spans if "error.type" in span.attributes] == []
    for name in ("gen_ai.invoke_agent.duration", "gen_ai.client.inference.duration", "gen_ai.execute_tool.duration"):
        assert [point.attributes for point in captured.metric(name).points if "error.type" in point.attributes] == []


def test_B5_a_loop_that_is_asked_to_stop_and_returns(witness: Witness):
    asked = threading.Event()

    @loopspan.agent_loop("agent")
    def loop() -> None:
        run = loopspan.current_run()
        threading.Thread(target=lambda: (run.stop("cancelled", "requested"), asked.set())).start()
        for _ in run.steps():
            assert asked.wait(10)

    loop()
    witness.ended("cancelled", "requested", runs=1)
    no_error_anywhere(witness.captured)
    closed = {"gen_ai.agent.name": "agent", "loopspan.run.stop_reason": "cancelled"}
    assert witness.captured.metric("loopspan.run.closed", closed).sum == 1


@pytest.mark.parametrize("inside", ["request", "tool", "both"])
def test_B5_a_loop_that_is_asked_to_stop_and_cut_at_once(witness: Witness, inside: str):
    """The handle says that it was asked for; the cancel of the task is only how."""
    waiting = Suspended()
    runs: list[Any] = []

    @loopspan.agent_loop("agent")
    async def loop() -> None:
        runs.append(loopspan.current_run())
        acts: dict[str, Act] = {
            "request": lambda: ask(waiting.act),
            "tool": lambda: work(waiting.act),
            "both": lambda: work(lambda: ask(waiting.act)),
        }
        await acts[inside]()

    async def main() -> None:
        task = asyncio.ensure_future(loop())
        while not waiting.reached:  # noqa: ASYNC110  # it is one that does without an event loop
            await asyncio.sleep(0)
        runs[0].stop("cancelled", "requested")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    witness.ended("cancelled", "requested", runs=1)
    no_error_anywhere(witness.captured)


def test_B5_a_generator_that_is_asked_to_stop_and_closed(witness: Witness):
    @loopspan.agent_loop("agent")
    def loop() -> Iterator[Any]:
        with loopspan.model_request(model="m"):
            yield loopspan.current_run()

    reading = loop()
    next(reading).stop("cancelled", "requested")
    reading.close()
    witness.ended("cancelled", "requested", runs=1)
    no_error_anywhere(witness.captured)


def test_B5_a_failure_after_the_request_to_stop_is_a_failure(witness: Witness):
    @loopspan.agent_loop("agent")
    def loop() -> None:
        loopspan.current_run().stop("cancelled", "requested")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        loop()
    witness.ended("loop_error", runs=1)


@pytest.mark.parametrize("cls", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_B5_no_cancel_of_any_kind_is_red(witness: Witness, cls: type[BaseException]):
    async def act() -> None:
        raise cls

    @loopspan.agent_loop("agent")
    async def loop() -> None:
        await work(lambda: ask(act))

    with pytest.raises(cls):
        witness.use(loop)
    no_error_anywhere(witness.captured)
