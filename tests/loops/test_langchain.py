"""A LangChain agent: every request, every call under its step, and why the run ended; sync and async alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError

from loops import published
from loops.outlines import durations, outline
from loopspan.testing import Captured, TickingClock, capture

agents = published.load("langchain_agent")
ASKED = {"messages": [("user", "What do both cost?")]}
APPLE, PLUM = ("c1", "price", {"item": "apple"}), ("c1", "price", {"item": "plum"})


def invoke(agent: Any, **config: Any) -> Any:
    """Ask the agent."""
    return agent.invoke(ASKED, config)


def ainvoke(agent: Any, **config: Any) -> Any:
    """Ask the agent in an event loop."""
    return asyncio.run(agent.ainvoke(ASKED, config))


def stream(agent: Any, **config: Any) -> Any:
    """Read what the agent streams."""
    return list(agent.stream(ASKED, config, stream_mode="values"))[-1]


def astream(agent: Any, **config: Any) -> Any:
    """Read what the agent streams, in an event loop."""

    async def read() -> list[Any]:
        return [item async for item in agent.astream(ASKED, config, stream_mode="values")]

    return asyncio.run(read())[-1]


WAYS = [invoke, ainvoke, stream, astream]
each_way = pytest.mark.parametrize("ask", WAYS)


@each_way
def test_every_way_to_call_an_agent_gives_the_same_trace(loopspan_capture: Captured, ask: Callable[..., Any]):
    agent = agents.build(agents.answer("", *agents.BOTH), agents.answer("7"))
    assert ask(agent)["messages"][-1].content == "7"
    assert outline(loopspan_capture) == (
        "invoke_agent shop success\n"
        "  step 1\n"
        "    chat scripted-1 100 20 tool_calls\n"
        "    execute_tool price c1\n"
        "      attempt price\n"
        "    execute_tool price c2\n"
        "      attempt price\n"
        "    backfill price\n"
        "    backfill price\n"
        "  step 2\n"
        "    chat scripted-1 100 20 stop"
    )
    assert {span.attributes.get("gen_ai.response.model") for span in loopspan_capture.spans if "chat" in span.name} == {
        "scripted-1-served"
    }


def test_async_tools_are_under_their_step(loopspan_capture: Captured):
    calls = [(f"c{number}", "stock", {"item": "apple"}) for number in range(3)]
    ainvoke(agents.build(agents.answer("", *calls), agents.answer("15")))
    assert outline(loopspan_capture) == (
        "invoke_agent shop success\n"
        "  step 1\n"
        "    chat scripted-1 100 20 tool_calls\n"
        + "".join(f"    execute_tool stock c{number}\n      attempt stock\n" for number in range(3))
        + "    backfill stock\n" * 3
        + "  step 2\n"
        "    chat scripted-1 100 20 stop"
    )


@each_way
def test_calls_that_langchain_refuses_are_failures_that_the_model_hears_of(
    loopspan_capture: Captured, ask: Callable[..., Any]
):
    unknown, unfit = ("c1", "weigh", {}), ("c2", "price", {"fruit": "apple"})
    ask(agents.build(agents.answer("", unknown, unfit), agents.answer("none")))
    (run,) = loopspan_capture.runs
    assert [(call.name, call.outcome) for call in run.tool_calls] == [("weigh", "failed"), ("price", "failed")]
    assert {span.attributes.get("error.type") for span in loopspan_capture.spans if "execute_tool" in span.name} == {
        "tool_error"
    }
    assert run.stop_reason == "success"


@pytest.mark.parametrize("ask", [invoke, ainvoke])
def test_what_a_middleware_repeats_is_an_attempt(loopspan_capture: Captured, ask: Callable[..., Any]):
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    ask(agents.build(ConnectionError("reset"), ConnectionError("reset"), agents.answer("7"), middleware=(retry,)))
    (run,) = loopspan_capture.runs
    (request,) = run.requests
    assert [attempt.outcome for attempt in request.attempts] == ["failed", "failed", "ok"]
    assert (len(run.steps), run.stop_reason) == (1, "success")


@pytest.mark.parametrize("ask", [invoke, ainvoke])
def test_a_tool_that_a_middleware_repeats_is_one_call(loopspan_capture: Captured, ask: Callable[..., Any]):
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    ask(agents.build(agents.answer("", PLUM), agents.answer("none"), middleware=(retry,)))
    (run,) = loopspan_capture.runs
    (call,) = run.tool_calls
    assert (call.call_id, [attempt.outcome for attempt in call.attempts]) == ("c1", ["failed", "failed"])


def raising(error: type[BaseException], ask: Callable[..., Any], **config: Any) -> Callable[[Any], None]:
    """Ask an agent that raises."""

    def act(agent: Any) -> None:
        with pytest.raises(error):
            ask(agent, **config)

    return act


def no_longer_read(agent: Any) -> None:
    """The reader of a stream goes away."""
    for _ in agent.stream(ASKED, stream_mode="updates"):
        break


def endless(count: int = 9) -> list[Any]:
    """A model that asks for the same again and again."""
    return [agents.answer("", APPLE) for _ in range(count)]


ENDINGS: dict[str, tuple[Callable[[Any], Any], list[Any], str, str | None]] = {
    f"{name}, {ask.__name__}": (act(ask), script, reason, detail)
    for ask in WAYS
    for name, act, script, reason, detail in [
        ("answered", lambda ask: ask, [agents.answer("7")], "success", None),
        ("cut short", lambda ask: ask, [agents.answer("7 or", reason="length")], "model_failed", "length"),
        ("endless", lambda ask: raising(GraphRecursionError, ask, recursion_limit=4), endless(), "max_steps", None),
        ("offline", lambda ask: raising(ConnectionError, ask), [ConnectionError("no route")], "model_failed", None),
        ("tool broken", lambda ask: raising(KeyError, ask), [agents.answer("", PLUM)], "tool_failed", None),
    ]
} | {
    "no longer read": (no_longer_read, endless(), "cancelled", "consumer_stopped"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_says_why_it_ended(loopspan_capture: Captured, ending: str):
    act, script, reason, detail = ENDINGS[ending]
    act(agents.build(*script))
    (run,) = loopspan_capture.runs
    assert (run.stop_reason, run.stop_detail) == (reason, detail)
    assert loopspan_capture.open_spans() == []


def test_a_run_that_is_cancelled_takes_its_tools_along(loopspan_capture: Captured):
    async def main() -> None:
        working, goes_on = asyncio.Event(), asyncio.Event()

        @tool
        async def ponder() -> None:
            """Think for a long time."""
            working.set()
            await goes_on.wait()

        agent = agents.build(agents.answer("", ("c1", "ponder", {})), tools=(ponder,))
        task = asyncio.create_task(agent.ainvoke(ASKED))
        await working.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (run,) = loopspan_capture.runs
    assert (run.stop_reason, run.stop_detail) == ("cancelled", "task_cancelled")
    assert [(call.call_id, call.outcome) for call in run.tool_calls] == [("c1", "cancelled")]
    assert loopspan_capture.open_spans() == []


@each_way
def test_a_request_lasts_as_long_as_the_model_takes(ask: Callable[..., Any]):
    clock = TickingClock()

    def slowly() -> Any:
        clock.advance(5)
        return agents.answer("7")

    with capture(clock=clock) as captured:
        ask(agents.build(slowly))
    (duration,) = durations(captured, "chat scripted-1")
    assert 5 <= duration < 6


def test_the_program_runs(tmp_path: Path):
    assert "'stop_reason': 'max_steps'" in published.run("langchain_agent", tmp_path)
