"""How a run of the Anthropic SDK's tool runner ends, and what becomes of it when something breaks in the middle."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest

from loops import published
from loops.outlines import outline
from loopspan.testing import Captured, capture

servers = published.load("_servers")
runners = published.load("anthropic_tool_runner")
message, tool_use = servers.message, servers.tool_use
PARIS = tool_use("toolu_1", "weather", city="Paris")

FORMS = [pytest.param({}, id="whole"), pytest.param({"stream": True}, id="streamed")]
each_form = pytest.mark.parametrize("how", FORMS)


@pytest.fixture
def captured() -> Iterator[Captured]:
    """A capture that must not leave anything open."""
    with capture() as captured:
        yield captured
    gc.collect()
    assert captured.open_spans() == []


def as_reply(how: dict[str, Any], answer: dict[str, Any], breaks_after: int | None = None) -> Any:
    """An answer in the form that is asked for."""
    return servers.stream(servers.message_events(answer), breaks_after) if how else servers.whole(answer)


def run(replies: list[Any], how: dict[str, Any], read: Callable[[Any], Any] | None = None, **options: Any) -> Any:
    """Read a runner in front of these replies, to its end unless `read` does otherwise."""
    with servers.Server(replies) as server:
        client, tools = runners.build(server.url)
        with client:
            runner = client.beta.messages.tool_runner(tools=tools, **runners.ASKING, **how, **options)
            return runner.until_done() if read is None else read(runner)


def ending(captured: Captured) -> tuple[Any, ...]:
    """Why the only run ended."""
    (only,) = captured.runs
    return only.stop_reason, only.stop_detail


@each_form
@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", ("success", None)),
        ("stop_sequence", ("success", None)),
        ("max_tokens", ("model_failed", "length")),
        ("model_context_window_exceeded", ("model_failed", "length")),
        ("refusal", ("model_failed", "refusal")),
    ],
)
def test_the_last_answer_says_why_the_runner_stopped(captured: Captured, how: Any, stop: str, expected: Any):
    run([as_reply(how, message(1, "So far.", stop=stop))], how)
    assert ending(captured) == expected
    assert captured.runs[0].requests[0].finish_reasons == [stop]


@each_form
def test_the_most_iterations_are_the_most_steps(captured: Captured, how: Any):
    run([as_reply(how, message(number, PARIS)) for number in (1, 2)], how, max_iterations=2)
    assert ending(captured) == ("max_steps", None)
    assert [call.call_id for call in captured.runs[0].tool_calls] == ["toolu_1", "toolu_1"]


@each_form
def test_a_tool_that_fails_is_on_record_and_the_model_hears_of_it(captured: Captured, how: Any):
    unknown = message(1, tool_use("toolu_1", "weather", city="Atlantis"))
    run([as_reply(how, unknown), as_reply(how, message(2, "Nowhere."))], how)
    assert ending(captured) == ("success", None)
    (call,) = captured.runs[0].tool_calls
    assert (call.call_id, call.outcome, call.error_type) == ("toolu_1", "failed", "KeyError")
    assert outline(captured).splitlines()[3:6] == [
        "    execute_tool weather toolu_1 matched failed",
        "      attempt weather failed",
        "    backfill weather",
    ]


@each_form
def test_arguments_that_do_not_fit_are_a_failed_call(captured: Captured, how: Any):
    run([as_reply(how, message(1, tool_use("toolu_1", "weather", town="Paris"))), as_reply(how, message(2, "?"))], how)
    (call,) = captured.runs[0].tool_calls
    assert (call.call_id, call.outcome, call.error_type) == ("toolu_1", "failed", "ValueError")


@each_form
def test_a_tool_that_nobody_has_is_proposed_and_never_called(captured: Captured, how: Any):
    replies = [as_reply(how, message(1, tool_use("toolu_1", "weigh"))), as_reply(how, message(2, "No scales."))]
    with pytest.warns(UserWarning, match="'weigh' not found"):
        run(replies, how)
    (only,) = captured.runs
    assert (only.stop_reason, only.tool_calls) == ("success", [])
    proposed = [entry.event for entry in captured.entries if entry.event.name == "tool_call_proposed"]
    assert [(event.tool, event.call_id) for event in proposed] == [("weigh", "toolu_1")]


@each_form
def test_a_failed_request_is_the_models_failure(captured: Captured, how: Any):
    replies = [as_reply(how, message(1, PARIS)), servers.whole(servers.anthropic_error(), status=500)]
    with pytest.raises(anthropic.InternalServerError):
        run(replies, how)
    assert ending(captured) == ("model_failed", None)
    assert outline(captured).splitlines()[-1] == "    chat claude-test failed"
    assert captured.runs[0].usage.input_tokens == 101


def test_what_the_client_repeats_itself_is_inside_of_one_request(captured: Captured):
    replies = [servers.whole(servers.anthropic_error(), status=500), as_reply({}, message(1, "Here."))]
    with servers.Server(replies) as server:
        client, tools = runners.build(server.url)
        with client.with_options(max_retries=1) as repeating:
            runners.instrument(repeating, tools)
            repeating.beta.messages.tool_runner(tools=tools, **runners.ASKING).until_done()
    assert len(server.served) == 2
    (request,) = captured.runs[0].requests
    assert [attempt.outcome for attempt in request.attempts] == ["ok"]


# streams that end in another way than they should


def test_an_error_event_in_a_stream_is_a_failure_with_what_was_used(captured: Captured):
    events = [*servers.message_events(message(1, "So far"))[:4], servers.anthropic_error("overloaded_error")]
    with pytest.raises(anthropic.APIStatusError):
        run([servers.stream(events)], {"stream": True})
    assert ending(captured) == ("model_failed", None)
    assert captured.runs[0].usage.input_tokens == 101


def test_a_stream_that_breaks_is_a_failure_with_what_was_used(captured: Captured):
    reply = as_reply({"stream": True}, message(1, "So far"), breaks_after=4)
    with pytest.raises(Exception, match=r"peer closed connection|incomplete chunked read") as broken:
        run([reply], {"stream": True})
    assert ending(captured) == ("model_failed", None)
    (only,) = captured.runs
    assert only.requests[0].attempts[0].error_type.endswith(type(broken.value).__qualname__)
    assert only.usage.input_tokens == 101


@pytest.mark.parametrize("close", [True, False], ids=["closed", "left"])
def test_a_stream_that_is_not_read_to_its_end_is_a_cancelled_request(captured: Captured, close: bool):
    with servers.Server([as_reply({"stream": True}, message(1, "A long story"))]) as server:
        client, _ = runners.build(server.url)

        @runners.loopspan.agent_loop("reader")
        def read() -> None:
            with client.beta.messages.stream(**runners.ASKING) as stream:
                next(stream)
                if close:
                    stream.close()

        with client:
            read()
    assert outline(captured) == "invoke_agent reader success\n  step 1\n    chat claude-test 101 cancelled"


def test_an_error_of_who_reads_a_stream_is_not_the_models(captured: Captured):
    with servers.Server([as_reply({"stream": True}, message(1, "A long story"))]) as server:
        client, _ = runners.build(server.url)

        @runners.loopspan.agent_loop("reader")
        def read() -> None:
            with client.beta.messages.stream(**runners.ASKING) as stream:
                next(stream)
                raise ValueError("mine")

        with client, pytest.raises(ValueError, match="mine"):
            read()
    assert outline(captured) == "invoke_agent reader loop_error\n  step 1\n    chat claude-test 101 cancelled"


def test_a_text_that_is_not_read_to_its_end_says_what_went_in(captured: Captured):
    with servers.Server([as_reply({"stream": True}, message(1, "A long story"))]) as server:
        client, _ = runners.build(server.url)

        @runners.loopspan.agent_loop("reader")
        def read() -> None:
            with client.beta.messages.stream(**runners.ASKING) as stream:
                next(stream.text_stream)

        with client:
            read()
    assert outline(captured) == "invoke_agent reader success\n  step 1\n    chat claude-test 101 cancelled"


def test_a_stream_that_is_closed_after_its_answer_is_no_cancelled_one(captured: Captured):
    with servers.Server([as_reply({"stream": True}, message(1, "A story"))]) as server:
        client, _ = runners.build(server.url)

        @runners.loopspan.agent_loop("reader")
        def read() -> None:
            stream = client.beta.messages.create(stream=True, **runners.ASKING)
            for event in stream:
                if event.type == "message_delta":
                    break
            stream.close()

        with client:
            read()
    assert outline(captured) == "invoke_agent reader success\n  step 1\n    chat claude-test 101 11 end_turn"


def test_a_stream_that_nobody_reads_is_a_cancelled_request(captured: Captured):
    with servers.Server([as_reply({"stream": True}, message(1, "A story"))] * 2) as server:
        client, _ = runners.build(server.url)

        @runners.loopspan.agent_loop("reader")
        def read() -> None:
            client.beta.messages.create(stream=True, **runners.ASKING).response.close()
            with client.beta.messages.stream(**runners.ASKING):
                pass

        with client:
            read()
    gc.collect()
    assert outline(captured) == (
        "invoke_agent reader success\n  step 1\n    chat claude-test cancelled\n"
        "  step 2\n    chat claude-test cancelled"
    )


# runners that are not read to their end


@each_form
@pytest.mark.parametrize("way", ["closed", "forgotten"])
def test_a_runner_that_is_not_read_to_its_end_is_cancelled(captured: Captured, how: Any, way: str):
    def read(runner: Any) -> None:
        next(runner)
        if way == "closed":
            runner.close()
            assert list(runner) == []

    run([as_reply(how, message(1, PARIS))], how, read)
    gc.collect()
    assert ending(captured) == ("cancelled", "consumer_stopped")


@each_form
def test_a_runner_that_a_tool_closes_stops_after_that_tool(captured: Captured, how: Any):
    held: list[Any] = []

    def read(runner: Any) -> None:
        held.append(runner)
        runner.until_done()

    with servers.Server([as_reply(how, message(1, PARIS))]) as server:
        client, _ = runners.build(server.url)
        tool = anthropic.beta_tool(lambda city: held[0].close() or "closed", name="weather", description="Close.")
        tool.call = runners.loopspan.tool(call=runners.named("weather"))(tool.call)
        with client:
            read(client.beta.messages.tool_runner(tools=[tool], **runners.ASKING, **how))
    assert ending(captured) == ("cancelled", "consumer_stopped")
    (call,) = captured.runs[0].tool_calls
    assert (call.call_id, call.outcome) == ("toolu_1", "ok")


def test_a_cancelled_task_is_a_cancelled_run(captured: Captured):
    async def main(url: str) -> None:
        client, _ = runners.build_async(url)
        started = asyncio.Event()

        async def wait(city: str) -> str:
            started.set()
            await asyncio.Event().wait()
            return city

        tool = anthropic.beta_async_tool(wait, name="weather")
        tool.call = runners.loopspan.tool(call=runners.named("weather"))(tool.call)
        async with client:
            runner = client.beta.messages.tool_runner(tools=[tool], **runners.ASKING)
            task = asyncio.create_task(runner.until_done())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with servers.Server([as_reply({}, message(1, PARIS))]) as server:
        asyncio.run(main(server.url))
    assert ending(captured) == ("cancelled", "task_cancelled")
    assert captured.runs[0].tool_calls[0].outcome == "cancelled"


def test_an_interrupt_in_a_tool_is_a_cancelled_run(captured: Captured):
    def interrupted(city: str) -> str:
        raise KeyboardInterrupt

    with servers.Server([as_reply({}, message(1, PARIS))]) as server:
        client, _ = runners.build(server.url)
        tool = anthropic.beta_tool(interrupted, name="weather", description="Break off.")
        tool.call = runners.loopspan.tool(call=runners.named("weather"))(tool.call)
        with client, pytest.raises(KeyboardInterrupt):
            client.beta.messages.tool_runner(tools=[tool], **runners.ASKING).until_done()
    assert ending(captured) == ("cancelled", "keyboard_interrupt")
