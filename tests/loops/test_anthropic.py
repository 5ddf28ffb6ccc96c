"""The Anthropic SDK's tool runner: every way to read it gives the same trace, with the SDK's own spans and without."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loops import published
from loops.outlines import durations, outline
from loopspan.testing import Captured, capture

servers = published.load("_servers")
runners = published.load("anthropic_tool_runner")


@pytest.fixture
def captured() -> Iterator[Captured]:
    """A capture with the machine's clock: durations are compared with the server's."""
    with capture() as captured:
        yield captured


TRACE = """\
invoke_agent tool-runner success
  step 1
    chat claude-test 101 11 tool_use
    execute_tool weather toolu_1 matched
      attempt weather
    execute_tool weather toolu_2 matched
      attempt weather
    backfill weather
    backfill weather
  step 2
    chat claude-test 102 12 end_turn"""


def until_done(runner: Any) -> None:
    """Read the runner to its end."""
    runner.until_done()


def items(runner: Any) -> None:
    """Take its answers, or its unread streams, one by one."""
    for _ in runner:
        pass


def events(runner: Any) -> None:
    """Read the events of each stream."""
    for answer in runner:
        for _ in answer:
            pass


def texts(runner: Any) -> None:
    """Read the text of each stream, which does not go through the stream's iteration."""
    for answer in runner:
        "".join(answer.text_stream)


def some_events_then_text(runner: Any) -> None:
    """Begin with the events, go on with the text."""
    for answer in runner:
        next(answer)
        "".join(answer.text_stream)


def final_messages(runner: Any) -> None:
    """Ask each stream for its message."""
    for answer in runner:
        assert answer.get_final_message() is answer.current_message_snapshot


async def until_done_async(runner: Any) -> None:
    """Read the runner to its end, in a task."""
    await runner.until_done()


async def items_async(runner: Any) -> None:
    """Take its answers, or its unread streams, one by one, in a task."""
    async for _ in runner:
        pass


async def events_async(runner: Any) -> None:
    """Read the events of each stream, in a task."""
    async for answer in runner:
        async for _ in answer:
            pass


async def texts_async(runner: Any) -> None:
    """Read the text of each stream, in a task."""
    async for answer in runner:
        [text async for text in answer.text_stream]


async def final_messages_async(runner: Any) -> None:
    """Ask each stream for its message, in a task."""
    async for answer in runner:
        assert await answer.get_final_message() is answer.current_message_snapshot


WHOLE, STREAMED, EAGER = {}, {"stream": True}, {"stream": True, "run_tools_eagerly": True}
WAYS = [
    (until_done, WHOLE),
    (items, WHOLE),
    *((read, STREAMED) for read in (until_done, items, events, texts, some_events_then_text, final_messages)),
    *((read, EAGER) for read in (until_done, events)),
    (until_done_async, WHOLE),
    (items_async, WHOLE),
    *((read, STREAMED) for read in (until_done_async, items_async, events_async, texts_async, final_messages_async)),
    *((read, EAGER) for read in (until_done_async, events_async)),
]
KINDS = {id(WHOLE): "whole", id(STREAMED): "streamed", id(EAGER): "eager"}
IDS = [f"{read.__name__}-{KINDS[id(how)]}" for read, how in WAYS]
each_way = pytest.mark.parametrize(("read", "how"), WAYS, ids=IDS)


def replies(how: dict[str, Any]) -> list[Any]:
    """The two answers of the script, in the form that is asked for."""
    return runners.script(runners.streamed if how else servers.whole)


def use(url: str, read: Callable[[Any], Any], how: dict[str, Any], **options: Any) -> None:
    """Build a client, make a runner, and read it."""
    if asyncio.iscoroutinefunction(read):
        asyncio.run(use_async(url, read, how, **options))
        return
    client, tools = runners.build(url, **options)
    with client:
        read(client.beta.messages.tool_runner(tools=tools, **runners.ASKING, **how))


async def use_async(url: str, read: Callable[[Any], Any], how: dict[str, Any], **options: Any) -> None:
    """The same in a task."""
    client, tools = runners.build_async(url, **options)
    async with client:
        await read(client.beta.messages.tool_runner(tools=tools, **runners.ASKING, **how))


@each_way
def test_every_way_to_read_the_runner_gives_the_same_trace(
    captured: Captured, read: Callable[[Any], Any], how: dict[str, Any]
):
    with servers.Server(replies(how)) as server:
        use(server.url, read, how)
    gc.collect()
    assert outline(captured) == TRACE
    assert captured.open_spans() == []
    lasted = durations(captured, "chat claude-test")
    assert [ours >= served.seconds for ours, served in zip(lasted, server.served, strict=True)] == [True, True]


SDK_TRACE = """\
invoke_agent tool-runner success
  anthropic.messages.tool_runner
    anthropic.custom_tool_use weather
    anthropic.custom_tool_use weather
  step 1
    chat claude-test 101 11 tool_use
      anthropic.messages.create
    execute_tool weather toolu_1
      attempt weather
    execute_tool weather toolu_2
      attempt weather
    backfill weather
    backfill weather
  step 2
    chat claude-test 102 12 end_turn
      anthropic.messages.create"""


@each_way
def test_with_the_sdks_own_spans_ours_are_the_same_and_the_call_ids_are_known(
    captured: Captured, read: Callable[[Any], Any], how: dict[str, Any]
):
    with servers.Server(replies(how)) as server:
        use(server.url, read, how, open_telemetry={"tracer_provider": captured.tracer_provider})
    gc.collect()
    assert outline(captured) == SDK_TRACE


def test_beside_the_sdks_own_spans_nothing_counts_twice_in_ours(captured: Captured):
    with servers.Server(replies(WHOLE)) as server:
        use(server.url, until_done, WHOLE, open_telemetry={"tracer_provider": captured.tracer_provider})
    (run,) = captured.runs
    assert (run.usage.input_tokens, run.usage.output_tokens) == (203, 23)
    metric = captured.metric
    assert metric("gen_ai.client.inference.usage.input_tokens").sum == 203
    assert metric("gen_ai.client.inference.duration").count == 2
    assert metric("gen_ai.execute_tool.duration").count == 2
    assert metric("loopspan.tool.calls").sum == 2
    reported = Counter(span.attributes.get("gen_ai.operation.name") for span in captured.spans)
    assert reported["execute_tool"] == 2, "the SDK's span is around the tool: it reports the operation, ours does not"
    assert (reported["invoke_agent"], reported["chat"]) == (2, 4), "the SDK's are inside of ours"
    ours = [span for span in captured.spans if span.instrumentation_scope.name == "loopspan"]
    assert sum(span.attributes.get("gen_ai.usage.input_tokens", 0) for span in ours) == 203
    everything = sum(span.attributes.get("gen_ai.usage.input_tokens", 0) for span in captured.spans)
    assert everything == 2 * 203, "a sum over all scopes counts each request twice"


def test_a_tool_made_of_a_decorated_function_is_the_same_tool(captured: Captured):
    import anthropic

    import loopspan

    plain, ours = anthropic.beta_tool(runners.weather), anthropic.beta_tool(loopspan.tool(runners.weather))
    assert ours.to_dict() == plain.to_dict()
    with loopspan.agent_loop("direct") as run:
        assert ours.call({"city": "Paris"}) == plain.call({"city": "Paris"})
        run.succeed()
    (call,) = captured.runs[0].tool_calls
    assert (call.name, call.outcome) == ("weather", "ok")


def test_the_example_runs_as_a_program(tmp_path: Path):
    assert "'stop_reason': 'max_steps'" in published.run("anthropic_tool_runner", tmp_path)
