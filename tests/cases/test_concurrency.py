"""Cases, group concurrency: tools, agents and runs at once, each span under its own parent."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import loopspan
from loops import published
from loopspan.testing import Captured
from ways import Witness


@loopspan.model_request(model="m")
def ask(*calls: str) -> dict[str, Any]:
    """An answer that asks for tools, in OpenAI's form."""
    asked = [{"id": call, "type": "function", "function": {"name": "work", "arguments": "{}"}} for call in calls]
    return {"choices": [{"message": {"content": None, "tool_calls": asked}, "finish_reason": "tool_calls"}]}


@loopspan.tool
async def work(act: Any = None) -> None:
    """A tool that lets others have their turn."""
    await (act() if act else asyncio.sleep(0))


def paths(captured: Captured, name: str) -> list[tuple[str, ...]]:
    """The names of a span and of all that is above it, for each span of this name."""
    spans = {span.context.span_id: span for span in captured.spans}

    def above(span: Any) -> Iterator[str]:
        yield span.name
        if span.parent is not None:
            yield from above(spans[span.parent.span_id])

    return [tuple(above(span)) for span in captured.spans if span.name == name]


# G1


@pytest.mark.parametrize("timeout", [30, None])
def test_G1_tools_in_the_code_of_a_code_agent_are_under_its_step(loopspan_capture: Captured, timeout: int | None):
    agents = published.load("smolagents_agents")
    code = agents.code("first = price('apple')\nsecond = price('pear')\nfinal_answer(first + second)")
    agent = agents.coding(code, executor_kwargs={"timeout_seconds": timeout})
    threads: set[int] = set()
    forward = agent.tools["price"].forward
    agent.tools["price"].forward = lambda item: threads.add(threading.get_ident()) or forward(item)
    assert agent.run("Both?") == 7
    elsewhere = threading.get_ident() not in threads
    assert elsewhere is (timeout is not None), "with a timeout, the code runs in a thread of a pool"
    below = ("attempt python_interpreter", "execute_tool python_interpreter", "step", "invoke_agent CodeAgent")
    assert paths(loopspan_capture, "execute_tool price") == [("execute_tool price", *below)] * 2
    assert paths(loopspan_capture, "execute_tool final_answer") == [("execute_tool final_answer", *below)]
    assert len([span for span in loopspan_capture.spans if span.parent is None]) == 1


# G2


def test_G2_tools_by_gather_are_all_there_and_under_their_step_every_time(witness: Witness):
    calls, runs = ("c1", "c2", "c3"), 40

    @loopspan.agent_loop("loop")
    async def loop() -> None:
        ask(*calls)
        await asyncio.gather(*(work() for _ in calls))
        ask()

    for _ in range(runs):
        witness.use(loop)
    witness.ended("success", runs=runs)
    expected = ("execute_tool work", "step", "invoke_agent loop", "caller")
    assert paths(witness.captured, "execute_tool work") == [expected] * len(calls) * runs
    for run in witness.captured.runs:
        assert sorted(call.call_id for call in run.tool_calls) == list(calls)
        assert [len(step.tool_calls) for step in run.steps] == [len(calls), 0]


# G3


def at_once_as_tasks() -> None:
    """The second tool starts while the first one's body is waiting."""

    async def main() -> None:
        started, goes_on = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            started.set()
            await goes_on.wait()

        task = asyncio.create_task(work(first))
        await started.wait()
        await work()
        goes_on.set()
        await task

    asyncio.run(main())


def at_once_as_generators() -> None:
    """The second tool starts between two items of the first one."""

    @loopspan.tool("work")
    def items() -> Iterator[int]:
        yield from range(3)

    first, second = items(), items()
    assert list(zip(first, second, strict=True)) == [(0, 0), (1, 1), (2, 2)]


def at_once_as_blocks() -> None:
    """The second call is opened while the first one's span is the current one."""
    with contextlib.ExitStack() as stack:
        calls = [stack.enter_context(loopspan.tool_call("work", {})) for _ in range(2)]
        for call in calls:
            with call.attempt():
                pass


def at_once_in_a_pool() -> None:
    """The second tool starts in a thread that got its context while the first one's span was current."""
    with ThreadPoolExecutor(1) as pool, loopspan.tool_call("work", {}) as call:
        later = pool.submit(loopspan.carry(lambda: asyncio.run(work())))
        with call.attempt():
            later.result()


@pytest.mark.parametrize("at_once", [at_once_as_tasks, at_once_as_generators, at_once_as_blocks, at_once_in_a_pool])
def test_G3_a_tool_that_starts_while_another_one_is_current_is_its_sibling(witness: Witness, at_once: Any):
    @loopspan.agent_loop("loop")
    def loop() -> None:
        ask("c1", "c2")
        at_once()

    witness.use(loop)
    witness.ended("success", runs=1)
    expected = ("execute_tool work", "step", "invoke_agent loop", "caller")
    assert paths(witness.captured, "execute_tool work") == [expected] * 2
    assert sorted(call.call_id for call in witness.captured.runs[0].tool_calls) == ["c1", "c2"]


# G4


@pytest.mark.parametrize("at_once", [False, True])
def test_G4_the_calls_of_a_sub_agent_are_its_own(witness: Witness, at_once: bool):
    ids = ("c1", "c2", "c3", "c4")

    @loopspan.agent_loop("child")
    async def child() -> None:
        ask(*ids)
        if at_once:
            await asyncio.gather(*(work() for _ in ids))
        else:
            for _ in ids:
                await work()

    @loopspan.tool
    async def delegate() -> None:
        await child()

    @loopspan.agent_loop("parent")
    async def parent() -> None:
        ask("c0")
        await asyncio.gather(delegate(), work())

    witness.use(parent)
    witness.ended("success", runs=2)
    above = ("attempt delegate", "execute_tool delegate", "step", "invoke_agent parent", "caller")
    found = paths(witness.captured, "execute_tool work")
    assert sorted(found) == sorted(
        [("execute_tool work", "step", "invoke_agent child", *above)] * 4
        + [("execute_tool work", "step", "invoke_agent parent", "caller")]
    )
    boss, helper = witness.captured.runs
    (delegated,) = boss.tool_calls_named("delegate")
    assert sorted(call.call_id for call in helper.tool_calls) == list(ids)
    assert (helper.parent_run_id, len(boss.tool_calls)) == (boss.run_id, 2)
    roots = [span for span in witness.captured.spans if span.name == "invoke_agent child"]
    assert [span.attributes["loopspan.run.parent_call_id"] for span in roots] == [delegated.call_id]
