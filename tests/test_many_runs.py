"""Twenty runs at once, in threads and in tasks: no span of one in another, none without its parent."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import loopspan
from loopspan import Answer, Budget, Usage
from loopspan.testing import Captured, capture

RUNS = 20
TOOLS = 3

request = loopspan.model_request(
    provider="p", model="m", read=lambda tokens: Answer(usage=Usage(input_tokens=tokens, output_tokens=1))
)


@request
def ask(tokens: int) -> int:
    """A request that uses as many tokens as it is told."""
    return tokens


@request
async def ask_async(tokens: int) -> int:
    """Likewise, after the others had their turn."""
    await asyncio.sleep(0)
    return tokens


@loopspan.tool
def work(number: int) -> int:
    """A tool."""
    return number


@loopspan.tool
async def work_async(number: int) -> int:
    """A tool that lets others have their turn."""
    await asyncio.sleep(0)
    return number


@loopspan.agent_loop("child")
def child(tokens: int) -> int:
    """A sub-agent."""
    return ask(tokens)


@loopspan.agent_loop("child")
async def child_async(tokens: int) -> int:
    """A sub-agent."""
    return await ask_async(tokens)


@loopspan.tool("delegate")
def delegate(tokens: int) -> int:
    """A tool with a run of its own in it."""
    return child(tokens)


@loopspan.tool("delegate")
async def delegate_async(tokens: int) -> int:
    """A tool with a run of its own in it."""
    return await child_async(tokens)


def in_threads(meeting: threading.Barrier) -> Iterator[threading.Thread]:
    """Half of the runs, each in a thread, with a pool for its tools."""

    @loopspan.agent_loop("threads", budget=Budget(total_tokens=10**RUNS))
    def loop(tokens: int) -> None:
        with ThreadPoolExecutor(TOOLS) as pool:
            for _ in range(2):
                ask(tokens)
                meeting.wait()
                list(pool.map(loopspan.carry(work), range(TOOLS)))
        delegate(tokens)

    for number in range(RUNS // 2):
        yield threading.Thread(target=loop, args=(10**number,))


def in_tasks(meeting: threading.Barrier) -> threading.Thread:
    """The other half, in one event loop, with the tools as tasks."""

    @loopspan.agent_loop("tasks")
    async def loop(tokens: int, gate: asyncio.Barrier) -> None:
        for _ in range(2):
            await ask_async(tokens)
            await gate.wait()
            await asyncio.gather(*(work_async(number) for number in range(TOOLS)))
        await delegate_async(tokens)

    async def main() -> None:
        gate = asyncio.Barrier(RUNS // 2 + 1)
        tasks = [asyncio.create_task(loop(10**number, gate)) for number in range(RUNS // 2)]
        for _ in range(2):
            await asyncio.to_thread(meeting.wait)
            await gate.wait()
        await asyncio.gather(*tasks)

    return threading.Thread(target=lambda: asyncio.run(main()))


def all_at_once() -> Captured:
    """Twenty runs that meet twice, in the middle of their steps."""
    with capture() as captured:
        meeting = threading.Barrier(RUNS // 2 + 1, timeout=30)
        threads = [*in_threads(meeting), in_tasks(meeting)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return captured


PARENTS = {"step": "invoke_agent", "chat": "step", "execute_tool": "step", "attempt": "execute_tool"}


def check(captured: Captured) -> None:
    """Each span hangs where it belongs, in its own run; each run has what it did, and nothing else."""
    spans = {span.context.span_id: span for span in captured.spans}
    assert captured.open_spans() == []
    shapes: dict[str, Counter[str]] = {}
    for span in spans.values():
        shapes.setdefault(run_of(span), Counter())[span.name] += 1
        parent = spans.get(span.parent.span_id) if span.parent else None
        kind = span.name.split(" ")[0]
        if kind != "invoke_agent":
            assert parent is not None, f"{span.name} is an orphan"
            assert (run_of(parent), parent.name.split(" ")[0]) == (run_of(span), PARENTS[kind])
        elif span.name == "invoke_agent child":
            assert (parent.name, run_of(parent)) == ("attempt delegate", span.attributes["loopspan.run.parent_run_id"])
        else:
            assert span.parent is None
        assert parent is None or parent.context.trace_id == span.context.trace_id
    assert Counter(map(frozenset, (shape.items() for shape in shapes.values()))) == SHAPES


def run_of(span: Any) -> str:
    """The id of a span's run."""
    return str(span.attributes["loopspan.run.id"])


def shape(agent: str, tool: str) -> frozenset[tuple[str, int]]:
    """What a run of the loop leaves."""
    tools = {f"execute_tool {tool}": 2 * TOOLS, f"attempt {tool}": 2 * TOOLS}
    return frozenset(
        {
            f"invoke_agent {agent}": 1,
            "step": 2,
            "chat m": 2,
            "execute_tool delegate": 1,
            "attempt delegate": 1,
            **tools,
        }.items()
    )


CHILD = frozenset({"invoke_agent child": 1, "step": 1, "chat m": 1}.items())
SHAPES = Counter({shape("threads", "work"): RUNS // 2, shape("tasks", "work_async"): RUNS // 2, CHILD: RUNS})


@pytest.mark.parametrize("_", range(3))
def test_runs_at_once_do_not_mix(_: int):
    captured = all_at_once()
    check(captured)
    runs = captured.runs
    parents = [run for run in runs if run.parent_run_id is None]
    assert {run.stop_reason for run in runs} == {"success"}
    assert len({run.trace_ids[0] for run in parents}) == len(parents) == RUNS
    used = sorted(2 * 10**number for number in range(RUNS // 2) for _ in ("threads", "tasks"))
    assert sorted(run.usage.input_tokens for run in parents) == used
    assert sorted(run.usage_with_descendants.input_tokens for run in parents) == [3 * tokens // 2 for tokens in used]
    for run in runs:
        assert [entry.seq for entry in run.log] == list(range(1, len(run.log) + 1))
