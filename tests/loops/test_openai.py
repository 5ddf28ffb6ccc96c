"""A plain loop on OpenAI's responses: streamed answers, calls in a pool of threads, from a thread and from a task."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import loopspan
from loops import published
from loops.outlines import durations, outline
from loopspan.testing import Captured, capture

servers = published.load("_servers")
loops = published.load("openai_responses")
response, function_call, output_text = servers.response, servers.function_call, servers.output_text
APPLE = function_call("call_1", "price", item="apple")

TRACE = """\
invoke_agent responses success
  step 1
    chat gpt-test 201 21 completed
    execute_tool price call_1
      attempt price
    execute_tool price call_2
      attempt price
    execute_tool price call_3 failed
      attempt price failed
    backfill price
    backfill price
    backfill price
  step 2
    chat gpt-test 202 22 completed"""


@pytest.fixture
def captured() -> Iterator[Captured]:
    """A capture with the machine's clock, which must not leave anything open."""
    with capture() as captured:
        yield captured
    gc.collect()
    assert captured.open_spans() == []


def in_a_thread(url: str, *functions: Callable[..., str], **options: Any) -> Any:
    """Use the plain loop."""
    return loops.use(loops.build(url, *functions, **options))


def in_a_task(url: str, *functions: Callable[..., str], **options: Any) -> Any:
    """Use the asynchronous one."""
    return asyncio.run(loops.use_async(loops.build_async(url, *functions, **options)))


each_way = pytest.mark.parametrize("use", [in_a_thread, in_a_task])


def ending(captured: Captured) -> tuple[Any, ...]:
    """Why the only run ended."""
    (only,) = captured.runs
    return only.stop_reason, only.stop_detail


@each_way
def test_calls_in_a_pool_are_siblings_under_their_step(captured: Captured, use: Callable[..., Any]):
    with servers.Server(loops.script()) as server:
        assert use(server.url) == "3, 4, and who knows."
    assert outline(captured) == TRACE
    lasted = durations(captured, "chat gpt-test")
    assert [ours >= served.seconds for ours, served in zip(lasted, server.served, strict=True)] == [True, True]
    assert [call.error_type for call in captured.runs[0].tool_calls] == [None, None, "KeyError"]


@each_way
def test_calls_that_are_in_flight_at_once_are_all_seen(captured: Captured, use: Callable[..., Any]):
    both = threading.Barrier(2, timeout=10)

    def meet(place: int) -> str:
        both.wait()
        return f"at {place}, run {loopspan.log_fields()['call_id']}"

    calls = [function_call(f"call_{number}", "meet", place=number) for number in (1, 2)]
    replies = [loops.streamed(response(1, *calls)), loops.streamed(response(2, output_text("Met.")))]
    with servers.Server(replies) as server:
        use(server.url, meet)
    (run,) = captured.runs
    assert captured.metric("loopspan.concurrency.peak").sum == 2
    assert sorted((call.call_id, call.outcome) for call in run.tool_calls) == [("call_1", "ok"), ("call_2", "ok")]
    sent = {item["call_id"]: item["output"] for item in server.served[1].body["input"] if "output" in item}
    assert sent == {f"call_{number}": f"at {number}, run call_{number}" for number in (1, 2)}, "each in its own call"


@each_way
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (response(1, output_text("Done.")), ("success", None)),
        (response(1, servers.refusal("No.")), ("model_failed", "refusal")),
        (response(1, output_text("So f"), incomplete="max_output_tokens"), ("model_failed", "max_output_tokens")),
        (response(1, output_text(""), incomplete="content_filter"), ("model_failed", "content_filter")),
    ],
)
def test_the_last_answer_says_why_the_loop_returned(
    captured: Captured, use: Callable[..., Any], answer: Any, expected: Any
):
    with servers.Server([loops.streamed(answer)]) as server:
        use(server.url)
    assert ending(captured) == expected
    assert captured.runs[0].usage.output_tokens == 21


@each_way
def test_turns_that_are_used_up_are_the_most_steps(captured: Captured, use: Callable[..., Any]):
    with (
        servers.Server([loops.streamed(response(number, APPLE)) for number in (1, 2)]) as server,
        pytest.raises(loops.TurnsExceeded),
    ):
        use(server.url, turns=2)
    assert ending(captured) == ("max_steps", None)
    assert [call.call_id for call in captured.runs[0].tool_calls] == ["call_1", "call_1"]


@each_way
def test_a_failure_that_leaves_the_pool_and_the_loop_is_the_tools(captured: Captured, use: Callable[..., Any]):
    error = PermissionError("not yours")

    def price(item: str) -> str:
        raise error

    with servers.Server([loops.streamed(response(1, APPLE))]) as server, pytest.raises(PermissionError) as caught:
        use(server.url, price)
    assert caught.value is error
    assert ending(captured) == ("tool_failed", None)
    (call,) = captured.runs[0].tool_calls
    assert (call.call_id, call.outcome, call.error_type) == ("call_1", "failed", "PermissionError")


@each_way
def test_a_failed_request_is_the_models_failure(captured: Captured, use: Callable[..., Any]):
    with (
        servers.Server([servers.whole(servers.openai_error(), status=429)]) as server,
        pytest.raises(openai.RateLimitError),
    ):
        use(server.url)
    assert ending(captured) == ("model_failed", None)
    assert outline(captured).splitlines()[-1] == "    chat gpt-test failed"


@each_way
def test_a_stream_that_breaks_is_the_models_failure(captured: Captured, use: Callable[..., Any]):
    with (
        servers.Server([loops.streamed(response(1, output_text("So far")), breaks_after=4)]) as server,
        pytest.raises((httpx.HTTPError, openai.APIError)),
    ):
        use(server.url)
    assert ending(captured) == ("model_failed", None)
    assert outline(captured).splitlines()[-1] == "    chat gpt-test failed"
    assert captured.runs[0].usage is None or captured.runs[0].usage.input_tokens is None, "the end would have said it"


@each_way
def test_a_function_that_nobody_has_is_a_failure_that_the_model_hears_of(captured: Captured, use: Callable[..., Any]):
    replies = [response(1, function_call("call_1", "weigh")), response(2, output_text("No scales."))]
    with servers.Server([loops.streamed(reply) for reply in replies]) as server:
        use(server.url)
    assert ending(captured) == ("success", None)
    (call,) = captured.runs[0].tool_calls
    assert (call.name, call.call_id, call.outcome, call.error_type) == ("weigh", "call_1", "failed", "KeyError")


def test_a_cancelled_task_is_a_cancelled_run_and_its_late_worker_harms_nobody(captured: Captured):
    started, go_on, late = threading.Event(), threading.Event(), []

    def price(item: str) -> str:
        started.set()
        go_on.wait(10)
        late.append(loops.price(item))
        return late[0]

    async def main(url: str) -> None:
        agent = loops.build_async(url, price)
        async with agent.client:
            task = asyncio.create_task(agent.run("What does it cost?"))
            await asyncio.to_thread(started.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ending(captured) == ("cancelled", "task_cancelled")
            go_on.set()
            agent.pool.shutdown()

    with servers.Server([loops.streamed(response(1, APPLE))]) as server:
        asyncio.run(main(server.url))
    assert late == ["3"], "the worker was left to end on its own"
    (call,) = captured.runs[0].tool_calls
    assert (call.call_id, call.outcome) == ("call_1", "cancelled")


def test_both_ways_to_stream_that_the_client_has_are_one_request(captured: Captured):
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:1", max_retries=0)
    for name in ("create", "stream"):  # `stream` makes its request with `create`
        wrapped = loopspan.model_request(provider="openai")(getattr(client.responses, name))
        setattr(client.responses, name, wrapped)

    @loopspan.agent_loop("reader")
    def read() -> str:
        with client.responses.stream(model="gpt-test", input="?") as stream:
            return stream.get_final_response().output_text

    with servers.Server([loops.streamed(response(1, output_text("Done.")))]) as server, client:
        client.base_url = server.url
        assert read() == "Done."
    assert outline(captured) == "invoke_agent reader success\n  step 1\n    chat gpt-test 201 21 completed"
    assert captured.metric("gen_ai.client.inference.duration").count == 1


def test_a_pool_that_is_not_told_loses_the_run_with_one_warning(captured: Captured, caplog: pytest.LogCaptureFixture):
    functions = loopspan.tool(loops.price)

    @loopspan.agent_loop("plain")
    def work() -> list[str]:
        with ThreadPoolExecutor(1) as pool:
            return list(pool.map(functions, ["apple", "pear"]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loopspan._decorators.wrapping._warned", False)
        assert work() == ["3", "4"]
    assert captured.runs[0].tool_calls == []
    assert [record.getMessage() for record in caplog.records if "loopspan.carry" in record.getMessage()] != []


def test_the_example_runs_as_a_program(tmp_path: Path):
    printed = published.run("openai_responses", tmp_path)
    assert "cut off after 1" in printed
    assert "'stop_reason': 'max_steps'" in printed
