"""Loops of others, hooks that fail, unexpected places: the loop goes on, and the record says what it knows."""

from __future__ import annotations

import gc
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, DEFAULT_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

import loopspan
from loops import published
from loops.outlines import outline
from loopspan import Call
from loopspan.testing import Captured, capture

servers = published.load("_servers")
loops = published.load("openai_responses")
runners = published.load("anthropic_tool_runner")
agents = published.load("mini_swe_interactive")
ANSWER = "3, 4, and who knows."


def broken(*_: Any, **__: Any) -> Any:
    """A hook that raises."""
    raise ZeroDivisionError("a hook of mine")


HOOKS: dict[str, Callable[..., Any]] = {
    "raises": broken,
    "nothing": lambda *_, **__: None,
    "a number": lambda *_, **__: 7,
    "itself": lambda *args, **__: args,
}
"""What a hook may do instead of what it should."""


def use(url: str, **hooks: Any) -> str:
    """The OpenAI loop, wrapped with these hooks in place of those of the example."""
    client = loops.OpenAI(api_key="none", base_url=url, max_retries=0)
    agent = loops.Agent(client, ThreadPoolExecutor(2), loops.price)
    submit, hooks = agent.pool.submit, {"call": named, **hooks}
    for_request = {name: hooks[name] for name in ("provider", "model", "read") if name in hooks}
    for_tool = {name: hooks[name] for name in ("call", "failure") if name in hooks}
    for_loop = {name: hooks[name] for name in ("outcome",) if name in hooks}
    client.responses.create = loopspan.model_request(**for_request)(client.responses.create)
    agent.call = loopspan.tool(**for_tool)(agent.call)
    agent.pool.submit = lambda work, *args: submit(loopspan.carry(work), *args)
    agent.run = loopspan.agent_loop("responses", **for_loop)(agent.run)
    return loops.use(agent)


def named(item: Any) -> Call:
    """Which call an item asks for."""
    return Call(item.name, item.arguments, item.call_id)


SILENT = {(hook, "nothing") for hook in ("provider", "model", "read", "call", "failure")} | {
    ("failure", "a number"),
    ("failure", "itself"),
}
"""What is no fault: a hook may have nothing to say, and whatever is true is a failure."""


@pytest.fixture(autouse=True)
def _none_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are counted for the process, and logged once in it."""
    monkeypatch.setattr("loopspan._guard.faults", Counter())


def faults(captured: Captured, place: str) -> float:
    """How many were contained there."""
    return captured.metric("loopspan.telemetry.faults", {"loopspan.telemetry.kind": place}).sum


@pytest.mark.parametrize("does", HOOKS)
@pytest.mark.parametrize("hook", ["provider", "model", "read", "call", "failure", "outcome"])
def test_a_hook_that_fails_does_not_disturb_the_loop(hook: str, does: str):
    with servers.Server(loops.script()) as server, capture(strict=False) as captured:
        assert use(server.url, **{hook: HOOKS[does]}) == ANSWER
        contained = faults(captured, f"the {hook}= {'function' if hook in ('provider', 'model') else 'hook'}")
    (run,) = captured.runs
    assert (run.stop_reason, run.stop_detail) == (
        ("loop_error", "outcome_unmapped") if hook == "outcome" else ("success", None)
    )
    assert (len(run.steps), len(run.tool_calls), len(run.requests)) == (2, 3, 2)
    assert captured.open_spans() == []
    assert contained == (0 if (hook, does) in SILENT else {"call": 3, "failure": 3, "outcome": 1}.get(hook, 2))


def test_a_fault_of_a_hook_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture):
    with (
        caplog.at_level(logging.WARNING, "loopspan"),
        servers.Server(loops.script()) as server,
        capture(strict=False) as captured,
    ):
        use(server.url, failure=broken)
        assert faults(captured, "the failure= hook") == 3
    assert [record.getMessage() for record in caplog.records if record.name == "loopspan"] == [
        "loopspan: the failure= hook raised ZeroDivisionError; later ones are only counted"
    ]


def test_a_hook_that_fails_is_raised_where_that_was_asked_for():
    with (
        servers.Server(loops.script()) as server,
        capture(strict=True),
        pytest.raises(ZeroDivisionError, match="a hook of mine"),
    ):
        use(server.url, failure=broken)


@pytest.mark.parametrize(("name", "recorded"), [("weigh", "weigh"), ("x" * 10_000, "x" * 256), ("a\nb", "a\nb")])
def test_a_dispatcher_may_name_a_tool_that_nobody_has(name: str, recorded: str):
    with servers.Server(loops.script()) as server, capture() as captured:
        assert use(server.url, call=lambda item: Call(name, item.arguments, item.call_id)) == ANSWER
    (run,) = captured.runs
    assert [(call.name, call.call_id) for call in run.tool_calls] == [(recorded, f"call_{n}") for n in (1, 2, 3)]
    assert run.stop_reason == "success"


# runs in places where nobody looks


UNSAMPLED = NonRecordingSpan(SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(0)))


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, DEFAULT_OFF, None], ids=["off", "default off", "parent"])
def test_a_run_inside_an_unsampled_request_is_whole_and_not_exported(sampler: Any):
    with (
        servers.Server([*loops.script(), *runners.script(runners.streamed)]) as server,
        capture(sampler=sampler) as captured,
        use_span(UNSAMPLED),
    ):
        assert loops.use(loops.build(server.url)) == ANSWER
        client, tools = runners.build(server.url, open_telemetry={"tracer_provider": captured.tracer_provider})
        with client:
            client.beta.messages.tool_runner(tools=tools, stream=True, **runners.ASKING).until_done()
    gc.collect()
    assert captured.spans == []
    first, second = captured.runs
    assert (first.stop_reason, first.usage.input_tokens, len(first.tool_calls)) == ("success", 403, 3)
    assert (second.stop_reason, second.usage.input_tokens, len(second.tool_calls)) == ("success", 203, 2)
    assert captured.metric("gen_ai.client.inference.usage.input_tokens").sum == 403 + 203
    assert captured.metric("loopspan.run.closed", {"loopspan.run.stop_reason": "success"}).sum == 2


def test_where_nobody_records_the_loops_are_as_they_were():
    with (
        servers.Server([*loops.script(), *runners.script(runners.streamed)]) as server,
        loopspan.configure(enabled=False),
    ):
        assert loops.use(loops.build(server.url)) == ANSWER
        client, tools = runners.build(server.url)
        with client:
            how = {"stream": True, "run_tools_eagerly": True}
            runner = client.beta.messages.tool_runner(tools=tools, **how, **runners.ASKING)
            assert [answer.get_final_text() for answer in runner][-1] == "Sunny in Paris, rain in Rome."


# workers and streams that outlive their run, functions of another one


def test_a_worker_that_outlives_its_run_is_cut_off_in_the_record_only():
    started, go_on = threading.Event(), threading.Event()
    search = loopspan.tool(loops.price)

    @loopspan.tool
    def slow() -> list[str]:
        started.set()
        go_on.wait(10)
        return [search("apple")]

    with capture() as captured, ThreadPoolExecutor(1) as pool:

        @loopspan.agent_loop
        def hasty() -> Any:
            future = pool.submit(loopspan.carry(slow))
            started.wait(10)
            return future

        future = hasty()
        (run,) = captured.runs
        assert (run.stop_reason, [call.outcome for call in run.tool_calls]) == ("success", ["cancelled"])
        go_on.set()
        assert future.result(10) == ["3"]
    assert [call.name for call in captured.runs[0].tool_calls] == ["slow"], "nothing is added to a closed run"
    assert captured.open_spans() == []


def test_a_stream_that_outlives_its_run_can_be_read_on():
    with servers.Server([loops.streamed(servers.response(1, servers.output_text("Late.")))]) as server:
        client = loops.OpenAI(api_key="none", base_url=server.url, max_retries=0)
        create = loopspan.model_request(provider="openai")(client.responses.create)

        @loopspan.agent_loop
        def first() -> list[Any]:
            return [create(model="gpt-test", input="?", stream=True)]

        @loopspan.agent_loop
        def second(stream: Any) -> str:
            return next(event.response.output_text for event in stream if event.type == "response.completed")

        with client, capture() as captured:
            (stream,) = first()
            assert second(stream) == "Late."
    assert outline(captured) == (
        "invoke_agent first success\n  step 1\n    chat gpt-test cancelled\ninvoke_agent second success"
    )


def test_what_another_loop_wrapped_is_recorded_where_it_is_called(tmp_path: Path):
    with servers.Server([loops.streamed(servers.response(1, servers.output_text("Done.")))]) as server:
        other = loops.build(server.url)
        shell = agents.build(tmp_path)

        @loopspan.agent_loop("visitor")
        def visit() -> str:
            with other.client.responses.create(input="?", **other.request) as events:
                (answer,) = [event.response for event in events if event.type in loops.OVER]
            return answer.output_text + shell.env.execute({"command": "echo here"})["output"]

        with capture() as captured, other.client, other.pool:
            assert visit() == "Done.here\n"
    assert outline(captured) == (
        "invoke_agent visitor success\n"
        "  step 1\n"
        "    chat gpt-test 201 21 completed\n"
        "    execute_tool bash call_1_1 generated\n"
        "      attempt bash"
    )


def test_a_loop_inside_another_one_is_its_sub_agent():
    replies = [loops.streamed(servers.response(1, servers.output_text("Done.")))]
    with servers.Server([*replies, *runners.script(servers.whole)]) as server, capture() as captured:
        client, tools = runners.build(server.url)

        @loopspan.agent_loop("boss")
        def boss() -> str:
            with client:
                runner = client.beta.messages.tool_runner(tools=tools, **runners.ASKING)
                return loops.use(loops.build(server.url)) + runner.until_done().content[-1].text

        assert boss() == "Done.Sunny in Paris, rain in Rome."
    runs = {run.agent_name: run for run in captured.runs}
    assert {run.stop_reason for run in runs.values()} == {"success"}
    assert runs["responses"].parent_run_id == runs["tool-runner"].parent_run_id == runs["boss"].run_id
    assert (runs["boss"].usage.input_tokens, runs["boss"].usage_with_descendants.input_tokens) == (None, 201 + 203)
