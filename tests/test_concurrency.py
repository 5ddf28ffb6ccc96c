"""Several runs, several tools and several agents at once: each span under its own parent, each total counted once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import loopspan
from loopspan import Answer, Usage
from loopspan.testing import Captured
from ways import Witness


@loopspan.model_request(provider="p", model="m", read=lambda said: Answer(usage=Usage(**said)))
def ask(tokens: int = 10) -> dict[str, int]:
    """A request that uses as many tokens as it is told."""
    return {"input_tokens": tokens, "output_tokens": 1}


@loopspan.tool
def fetch(page: int, meet: Callable[[], Any] = lambda: None) -> int:
    """A tool that meets others in its body."""
    meet()
    return page


@loopspan.tool
async def fetch_async(page: int, meet: Callable[[], Any] | None = None) -> int:
    """Likewise."""
    await (meet() if meet else asyncio.sleep(0))
    return page


def parent_names(captured: Captured, name: str) -> list[str]:
    """The names of the parents of all spans of this name."""
    names = {span.context.span_id: span.name for span in captured.spans}
    return [names.get(span.parent.span_id, "?") for span in captured.spans if span.name == name]


def own_spans(captured: Captured) -> dict[str, list[str]]:
    """The names of each run's spans, sorted."""
    found: dict[str, list[str]] = {}
    for span in captured.spans:
        if "loopspan.run.id" in span.attributes:
            found.setdefault(span.attributes["loopspan.run.id"], []).append(span.name)
    return {run_id: sorted(names) for run_id, names in found.items()}


ONE_RUN = ["attempt fetch", "chat m", "execute_tool fetch", "invoke_agent loop", "step"]


# runs at once


def test_runs_in_threads_do_not_mix(witness: Witness):
    meeting = threading.Barrier(4, timeout=10)

    @loopspan.agent_loop("loop")
    def loop(tokens: int) -> int:
        ask(tokens)
        meeting.wait()
        return fetch(tokens, meeting.wait)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(loop, range(4))) == [0, 1, 2, 3]
    witness.ended("success", runs=4)
    assert list(own_spans(witness.captured).values()) == [ONE_RUN] * 4
    assert sorted(run.usage.input_tokens for run in witness.captured.runs) == [0, 1, 2, 3]
    assert {run.parent_run_id for run in witness.captured.runs} == {None}
    assert len({span.context.trace_id for span in witness.captured.spans}) == 4


def test_runs_in_tasks_do_not_mix(witness: Witness):
    @loopspan.agent_loop("loop")
    async def loop(tokens: int) -> int:
        with witness.caller():
            await asyncio.sleep(0)
        ask(tokens)
        await asyncio.sleep(0)
        return await fetch_async(tokens)

    async def main() -> list[int]:
        return await asyncio.gather(*(loop(tokens) for tokens in range(5)))

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    witness.ended("success", runs=5)
    assert sorted(run.usage.input_tokens for run in witness.captured.runs) == [0, 1, 2, 3, 4]
    assert len({run.trace_ids[0] for run in witness.captured.runs}) == 5
    assert {len(names) for names in own_spans(witness.captured).values()} == {5}


def test_cancelling_one_run_leaves_the_others_alone(witness: Witness):
    @loopspan.agent_loop("loop")
    async def loop(forever: bool) -> None:
        ask()
        await (asyncio.Event().wait() if forever else asyncio.sleep(0))

    async def main() -> None:
        tasks = [asyncio.create_task(loop(forever=number == 1)) for number in range(3)]
        await asyncio.wait([tasks[0], tasks[2]])
        tasks[1].cancel()
        await asyncio.wait(tasks)

    asyncio.run(main())
    assert [run.stop_reason for run in witness.captured.runs] == ["success", "cancelled", "success"]
    witness.ended("success", runs=3)


def test_generators_that_take_turns_in_one_thread_do_not_mix(witness: Witness):
    @loopspan.agent_loop("loop")
    def loop(tokens: int) -> Iterator[int]:
        for _ in range(3):
            ask(tokens)
            yield fetch(tokens)

    with witness.caller():
        assert list(zip(loop(1), loop(20), loop(300), strict=True)) == [(1, 20, 300)] * 3
    witness.ended("success", runs=3)
    assert [run.usage.input_tokens for run in witness.captured.runs] == [3, 60, 900]
    assert [len(run.steps) for run in witness.captured.runs] == [3, 3, 3]


# tools at once

PAGES = range(1, 5)


def by_gather() -> None:
    """All in one event loop."""
    meeting = asyncio.Barrier(len(PAGES))

    async def main() -> list[int]:
        return await asyncio.gather(*(fetch_async(page, meeting.wait) for page in PAGES))

    assert asyncio.run(main()) == list(PAGES)


def by_task_group() -> None:
    """All in one event loop, structured."""

    async def main() -> None:
        meeting = asyncio.Barrier(len(PAGES))
        async with asyncio.TaskGroup() as group:
            for page in PAGES:
                group.create_task(fetch_async(page, meeting.wait))

    asyncio.run(main())


def by_to_thread() -> None:
    """Each in a thread that asyncio gives a copy of the Context."""
    meeting = threading.Barrier(len(PAGES), timeout=10)

    async def main() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(fetch, page, meeting.wait) for page in PAGES))

    assert asyncio.run(main()) == list(PAGES)


def by_copied_contexts() -> None:
    """Each in a thread of a pool, with a copy of the Context."""
    meeting = threading.Barrier(len(PAGES), timeout=10)
    with ThreadPoolExecutor(len(PAGES)) as pool:
        copies = [pool.submit(contextvars.copy_context().run, fetch, page, meeting.wait) for page in PAGES]
        assert [copy.result() for copy in copies] == list(PAGES)


def by_carry() -> None:
    """Each in a thread of a pool that knows nothing of the Context."""
    meeting = threading.Barrier(len(PAGES), timeout=10)
    with ThreadPoolExecutor(len(PAGES)) as pool:
        assert list(pool.map(loopspan.carry(lambda page: fetch(page, meeting.wait)), PAGES)) == list(PAGES)


@pytest.mark.parametrize("at_once", [by_gather, by_task_group, by_to_thread, by_copied_contexts, by_carry])
def test_tools_at_once_are_siblings_under_their_step(witness: Witness, at_once: Callable[[], None]):
    @loopspan.agent_loop("loop")
    def loop() -> None:
        ask()
        at_once()
        ask()

    with witness.caller():
        loop()
    witness.ended("success", runs=1)
    name = "fetch_async" if at_once in (by_gather, by_task_group) else "fetch"
    assert parent_names(witness.captured, f"execute_tool {name}") == ["step"] * len(PAGES)
    assert parent_names(witness.captured, f"attempt {name}") == [f"execute_tool {name}"] * len(PAGES)
    (run,) = witness.captured.runs
    assert [len(step.tool_calls) for step in run.steps] == [len(PAGES), 0]
    assert len({call.call_id for call in run.tool_calls}) == len(PAGES)
    closed = witness.events("run_trace_closed")[0].event
    assert (closed.tool_attempts, closed.concurrency_peak) == (len(PAGES), len(PAGES))
    assert [entry.seq for entry in witness.captured.entries] == list(range(1, len(witness.captured.entries) + 1))


def test_a_failure_among_tools_at_once_cancels_the_others(witness: Witness):
    @loopspan.tool
    async def breaks() -> None:
        await asyncio.sleep(0)
        raise OSError("disk")

    @loopspan.agent_loop("loop")
    async def loop() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fetch_async(1, asyncio.Event().wait))
            group.create_task(breaks())

    with pytest.raises(ExceptionGroup) as caught:
        witness.use(loop)
    assert isinstance(caught.value.exceptions[0], OSError)
    witness.ended("tool_failed", runs=1)
    outcomes = {call.name: call.outcome for call in witness.captured.runs[0].tool_calls}
    assert outcomes == {"fetch_async": "cancelled", "breaks": "failed"}


def test_requests_at_once_share_a_step(witness: Witness):
    meeting = threading.Barrier(3, timeout=10)

    @loopspan.model_request(model="m")
    def ask_with_others(number: int) -> int:
        meeting.wait()
        return number

    @loopspan.agent_loop("loop")
    def loop() -> None:
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(loopspan.carry(ask_with_others), range(3))) == [0, 1, 2]

    with witness.caller():
        loop()
    witness.ended("success", runs=1)
    assert parent_names(witness.captured, "chat m") == ["step"] * 3
    assert (
        len({span.attributes["loopspan.request.id"] for span in witness.captured.spans if span.name == "chat m"}) == 3
    )


# what outlives its run


@pytest.mark.parametrize("error", [None, ValueError("late")])
@pytest.mark.parametrize("what", ["tool", "retried tool", "request", "retried request", "attempt block"])
def test_what_is_in_flight_when_its_run_ends_keeps_its_own_result(witness: Witness, what: str, error: Any):
    goes_on, result = asyncio.Event(), object()

    async def body() -> object:
        await goes_on.wait()
        if error is not None:
            raise error
        return result

    async def in_block() -> object:
        with loopspan.tool_call("work", {}) as call, call.attempt():
            return await body()

    retry = loopspan.Retry(max_attempts=3)
    functions = {
        "tool": loopspan.tool(body),
        "retried tool": loopspan.tool(retry=retry)(body),
        "request": loopspan.model_request(body),
        "retried request": loopspan.model_request(retry=retry)(body),
        "attempt block": in_block,
    }

    @loopspan.agent_loop("loop")
    async def loop() -> asyncio.Task[object]:
        task = asyncio.create_task(functions[what]())
        await asyncio.sleep(0)
        return task

    async def main() -> tuple[object, BaseException | None]:
        task = (await asyncio.gather(loop()))[0]
        assert witness.captured.open_spans() == []
        goes_on.set()
        await asyncio.wait([task])
        raised = task.exception()
        return (task.result(), None) if raised is None else (None, raised)

    got, raised = asyncio.run(main())
    assert got is (result if error is None else None)
    if error is not None and "retried" in what:
        assert isinstance(raised, loopspan.RetryBudgetExhausted)
        raised = raised.__cause__
    assert raised is error
    witness.ended("success", runs=1)
