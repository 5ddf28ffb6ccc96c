"""A sub-agent is a run of its own in its parent's trace: named from both sides, counted once, closed first."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import loopspan
from loopspan import Answer, Budget, Toolbox, Usage
from ways import Witness


@loopspan.model_request(provider="p", model="m", read=lambda said: Answer(usage=Usage(**said)))
def ask(tokens: int) -> dict[str, int]:
    """A request that uses as many tokens as it is told."""
    return {"input_tokens": tokens, "output_tokens": 0}


@loopspan.agent_loop("helper")
def helper(tokens: int, inside: Callable[[], Any] = lambda: None) -> Any:
    """Asks twice."""
    ask(tokens)
    result = inside()
    ask(tokens)
    return result


@loopspan.tool
def delegate(tokens: int) -> Any:
    """Hands the work to a helper."""
    return helper(tokens)


toolbox = Toolbox(delegate)


def names_above(witness: Witness, name: str) -> list[str]:
    """The names from the span of this name up to the root."""
    by_id = {span.context.span_id: span for span in witness.captured.spans}
    span = next(span for span in witness.captured.spans if span.name == name)
    names = []
    while span is not None:
        names.append(span.name)
        span = by_id.get(span.parent.span_id) if span.parent else None
    return names[1:]


def test_a_sub_agent_inside_a_tool_hangs_on_its_attempt(witness: Witness):
    @loopspan.agent_loop("boss")
    def boss() -> None:
        ask(1)
        toolbox.call("delegate", {"tokens": 10}, call_id="call-7")

    boss()
    witness.ended("success", runs=2)
    parent, child = witness.captured.runs
    assert (child.agent_name, child.parent_run_id) == ("helper", parent.run_id)
    assert witness.events("run_started")[1].event.parent_call_id == "call-7"
    assert len({span.context.trace_id for span in witness.captured.spans}) == 1
    assert names_above(witness, "invoke_agent helper") == [
        "attempt delegate",
        "execute_tool delegate",
        "step",
        "invoke_agent boss",
    ]
    root = next(span for span in witness.captured.spans if span.name == "invoke_agent helper")
    assert root.attributes["loopspan.run.parent_run_id"] == parent.run_id
    assert root.attributes["loopspan.run.parent_call_id"] == "call-7"


def test_a_sub_agent_outside_of_tools_hangs_on_the_step(witness: Witness):
    @loopspan.agent_loop("boss")
    def boss() -> None:
        ask(1)
        helper(10)

    boss()
    witness.ended("success", runs=2)
    assert names_above(witness, "invoke_agent helper") == ["step", "invoke_agent boss"]
    assert witness.events("run_started")[1].event.parent_call_id is None


def test_totals_are_own_and_with_descendants(witness: Witness):
    @loopspan.agent_loop("boss")
    def boss() -> None:
        ask(1)
        helper(10, lambda: helper(100))

    boss()
    witness.ended("success", runs=3)
    usages = [(run.usage.input_tokens, run.usage_with_descendants.input_tokens) for run in witness.captured.runs]
    assert usages == [(1, 221), (20, 220), (200, 200)]
    spans = witness.captured.spans
    assert sum(span.attributes.get("gen_ai.usage.input_tokens", 0) for span in spans) == 221
    roots = {span.attributes["loopspan.run.id"]: span for span in spans if span.name.startswith("invoke_agent")}
    said = [
        (
            roots[run.run_id].attributes["loopspan.usage.input_tokens"],
            roots[run.run_id].attributes.get("loopspan.usage.descendants.input_tokens"),
        )
        for run in witness.captured.runs
    ]
    assert said == [(1, 220), (20, 200), (200, None)]


def test_the_steps_of_a_sub_agent_are_its_own(witness: Witness):
    @loopspan.agent_loop("boss")
    def boss() -> None:
        ask(1)
        helper(10)
        ask(2)

    boss()
    witness.ended("success", runs=2)
    parent, child = witness.captured.runs
    assert [step.usage.input_tokens for step in parent.steps] == [1, 2]
    assert [step.usage.input_tokens for step in child.steps] == [10, 10]


@pytest.mark.parametrize("at_once", ["threads", "tasks"])
def test_sub_agents_at_once(witness: Witness, at_once: str):
    meeting = threading.Barrier(3, timeout=10)

    async def in_tasks() -> None:
        await asyncio.gather(*(asyncio.to_thread(helper, 10, meeting.wait) for _ in range(3)))

    @loopspan.agent_loop("boss")
    def boss() -> None:
        ask(1)
        if at_once == "tasks":
            asyncio.run(in_tasks())
            return
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(loopspan.carry(lambda _: helper(10, meeting.wait)), range(3)))

    boss()
    witness.ended("success", runs=4)
    parent, *children = witness.captured.runs
    assert {child.parent_run_id for child in children} == {parent.run_id}
    assert [child.usage.input_tokens for child in children] == [20] * 3
    assert parent.usage_with_descendants.input_tokens == 61
    own: dict[str, set[str]] = {}
    for span in witness.captured.spans:
        own.setdefault(span.attributes["loopspan.run.id"], set()).add(span.name)
    assert [own[child.run_id] for child in children] == [{"chat m", "step", "invoke_agent helper"}] * 3


def test_a_sub_agent_that_fails_does_not_end_a_parent_that_goes_on(witness: Witness):
    def breaks() -> None:
        raise OSError("disk")

    @loopspan.agent_loop("boss")
    def boss() -> str:
        with pytest.raises(OSError, match="disk"):
            helper(10, breaks)
        return "went on"

    assert boss() == "went on"
    witness.ended("success", runs=2)
    assert witness.captured.runs[1].stop_reason == "loop_error"
    assert witness.captured.runs[0].usage_with_descendants.input_tokens == 10


def test_a_sub_agents_use_counts_against_the_budget_of_its_parent(witness: Witness):
    @loopspan.agent_loop("boss", budget=Budget(total_tokens=10))
    def boss() -> None:
        helper(10)

    with pytest.raises(loopspan.BudgetExhausted):
        boss()
    witness.ended("budget_exhausted", runs=2)
    parent, child = witness.captured.runs
    assert (child.stop_reason, child.usage.input_tokens) == ("budget_exhausted", 10)
    assert parent.usage_with_descendants.input_tokens == 10


# left open when the parent ends


def open_generator() -> Any:
    """A sub-agent as a generator that nobody reads to its end."""

    @loopspan.agent_loop("helper")
    def items() -> Iterator[int]:
        ask(10)
        yield from streamed()

    @loopspan.model_request(model="m")
    def streamed() -> Iterator[int]:
        yield 1
        yield 2

    reading = items()
    next(reading)
    return reading


def open_block() -> Any:
    """A sub-agent as a block that is never left."""
    block = loopspan.agent_loop("helper")

    def enter() -> None:
        block.__enter__()
        ask(10)

    contextvars.copy_context().run(enter)
    return block


@pytest.mark.parametrize("leave_open", [open_generator, open_block])
@pytest.mark.parametrize("error", [None, ValueError("broken")])
def test_a_sub_agent_that_is_open_when_its_parent_ends_is_closed_first(witness: Witness, leave_open: Any, error: Any):
    kept = []

    @loopspan.agent_loop("boss")
    def boss() -> None:
        ask(1)
        kept.append(leave_open())
        if error is not None:
            raise error

    if error is None:
        boss()
    else:
        with pytest.raises(ValueError, match="broken"):
            boss()
    witness.ended("success" if error is None else "loop_error", runs=2)
    parent, child = witness.captured.runs
    assert (child.stop_reason, child.stop_detail) == ("cancelled", "consumer_stopped")
    assert [entry.run_id for entry in witness.events("run_trace_closed")] == [child.run_id, parent.run_id]
    assert parent.usage_with_descendants.input_tokens == 11
    if hasattr(kept[0], "close"):
        assert next(kept[0]) == 2, "what goes on reading it is not disturbed"
    else:
        kept[0].__exit__(None, None, None)
    assert len(witness.events("run_trace_closed")) == 2


def test_a_sub_agent_in_a_task_that_outlives_its_parent(witness: Witness):
    goes_on = asyncio.Event()

    @loopspan.agent_loop("helper")
    async def slow() -> str:
        ask(10)
        await goes_on.wait()
        return "done"

    @loopspan.agent_loop("boss")
    async def boss() -> asyncio.Task[str]:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        return task

    async def main() -> str:
        task = (await asyncio.gather(boss()))[0]
        goes_on.set()
        return await task

    assert asyncio.run(main()) == "done"
    witness.ended("success", runs=2)
    assert witness.captured.runs[1].stop_reason == "cancelled"
