"""Cases, group retries, continued: what attempts cost, attempts of tools, and how often one retries at all."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import StatusCode

import loopspan
from facts import facts
from loopspan import Answer, Call, Cost, Usage
from loopspan.testing import TickingClock
from retrying import OK, RETRY, WAITS, WAYS, Broken, Client, TooMany, by_own_loop, name, retries_of, run

UNSET, ERROR = StatusCode.UNSET, StatusCode.ERROR
SECOND = 1_000_000_000


# E3: what is billed, and what is delivered


class NotUnderstood(Exception):
    """An answer that was billed and does not fit the schema."""

    def __init__(self, answer: Any) -> None:
        super().__init__("not what was asked for")
        self.answer = answer


BAD = {**OK, "usage": {"prompt_tokens": 30, "completion_tokens": 5}}


def understood(error: NotUnderstood) -> Answer:
    """What the client's exception carries."""
    return Answer(usage=Usage.parse(error.answer["usage"]), model="m-1")


def by_parse_errors(client: Client, clock: TickingClock) -> Any:
    """The request raises, and is made again by the loop."""

    @loopspan.model_request(model="m", parse_errors=(NotUnderstood,), read_error=understood)
    def ask(messages: Any) -> Any:
        answer = client.send()
        if answer is BAD:
            raise NotUnderstood(answer)
        return answer

    for _ in range(2):
        try:
            return ask(["equal"])
        except NotUnderstood:
            pass
    return None


def by_the_step(client: Client, clock: TickingClock) -> Any:
    """The loop finds that it does not understand, says so, and asks again."""
    ask = loopspan.model_request(model="m")(client.send)
    for step in loopspan.current_run().steps():
        answer = ask([step.number])
        if answer is BAD:
            step.parse_error("cut {", feedback="ERROR: no JSON")
            continue
        loopspan.current_run().succeed()
    return None


@pytest.mark.parametrize("way", [by_parse_errors, by_the_step])
def test_E3_an_answer_that_is_rejected_is_billed_all_the_same(way: Any):
    captured, recorded = run(way, BAD, OK)
    assert recorded.stop_reason == "success"
    assert (recorded.usage.input_tokens, recorded.usage.output_tokens) == (40, 7)
    spans = [span for span in captured.spans if span.name == "chat m"]
    assert [span.attributes["gen_ai.usage.input_tokens"] for span in spans] == [30, 10]
    root = next(span for span in captured.spans if span.name == "invoke_agent loop")
    assert root.attributes["loopspan.usage.input_tokens"] == 40
    assert captured.metric("gen_ai.client.inference.usage.input_tokens").sum == 40


@pytest.mark.parametrize("way", [by_parse_errors, by_the_step])
def test_E3_what_was_delivered_is_named_beside_what_was_billed(way: Any):
    captured, _ = run(way, BAD, OK)
    closed = next(entry.event for entry in captured.entries if entry.event.name == "run_trace_closed")
    assert (closed.input_tokens, closed.output_tokens) == (40, 7)
    assert (closed.delivered["input_tokens"], closed.delivered["output_tokens"]) == (10, 2)
    root = next(span for span in captured.spans if span.name == "invoke_agent loop")
    assert root.attributes["loopspan.usage.delivered.input_tokens"] == 10


def test_E3_a_run_whose_answers_were_all_accepted_has_one_total():
    captured, _ = run(by_own_loop, OK)
    closed = next(entry.event for entry in captured.entries if entry.event.name == "run_trace_closed")
    assert (closed.input_tokens, closed.delivered) == (10, None)


def test_E3_a_failed_attempt_that_said_what_it_used_is_billed():
    def fails_after_use(client: Client, clock: TickingClock) -> None:
        for _ in range(2):
            try:
                with loopspan.model_request(model="m") as request:
                    request.answer(
                        Answer(usage=Usage(input_tokens=7, output_tokens=0), cost=Cost(1, "USD", "provider"))
                    )
                    client.send()
            except TooMany:
                pass

    _, recorded = run(fails_after_use, TooMany, OK)
    assert recorded.usage.input_tokens == 14
    assert recorded.cost.amounts == {("USD", "provider"): 2}


# E4: retries of tools, and how often one retries at all


def tool_by_retry(client: Client, clock: TickingClock) -> Any:
    """Loopspan repeats."""
    return loopspan.tool("t", retry=RETRY)(client.send)(1)


def tool_by_toolbox(client: Client, clock: TickingClock) -> Any:
    """Loopspan repeats what a model asked for."""
    return loopspan.Toolbox(loopspan.tool("t", retry=RETRY)(client.send)).call("t", {"messages": 1}, call_id="c1")


def tool_by_own_loop(client: Client, clock: TickingClock) -> Any:
    """The loop repeats by itself."""
    tool = loopspan.tool("t")(client.send)
    for attempt in (1, 2, 3):
        try:
            return tool(1)
        except (TooMany, Broken):
            clock.sleep(WAITS[attempt])
    return None


def tool_by_block(client: Client, clock: TickingClock) -> Any:
    """The loop repeats in a block."""
    with loopspan.tool_call("t", {"messages": 1}, call_id="c1") as call:
        for attempt in (1, 2, 3):
            try:
                with call.attempt(WAITS.get(attempt - 1)):
                    return client.send()
            except (TooMany, Broken):
                clock.sleep(WAITS[attempt])
    return None


@pytest.mark.parametrize("way", [tool_by_retry, tool_by_toolbox, tool_by_own_loop, tool_by_block])
def test_E4_attempts_of_a_tool_are_one_call_with_numbers(way: Any):
    captured, recorded = run(way, TooMany, Broken, OK)
    keys = ("loopspan.attempt.number", "error.type", "loopspan.attempt.outcome")
    assert facts(captured, "attempt t", *keys) == [
        (ERROR, 1, name(TooMany), "failed"),
        (ERROR, 2, name(Broken), "failed"),
        (UNSET, 3, None, "ok"),
    ]
    (call,) = recorded.tool_calls
    assert (call.outcome, call.entries, [attempt.number for attempt in call.attempts]) == ("ok", 3, [1, 2, 3])
    assert [attempt.error_type for attempt in call.attempts] == [name(TooMany), name(Broken), None]
    attempts = [span for span in captured.spans if span.name == "attempt t"]
    assert all((span.end_time - span.start_time) / SECOND == 1 for span in attempts)
    assert captured.metric("loopspan.tool.attempts", {"error.type": name(TooMany)}).sum == 1
    assert captured.metric("loopspan.tool.attempts").sum == 3


@pytest.mark.parametrize("way", [tool_by_retry, tool_by_toolbox])
def test_E4_a_retry_says_its_limit_the_error_before_it_and_the_backoff(way: Any):
    captured, _ = run(way, TooMany, Broken, OK)
    assert [entry.event.max_attempts for entry in captured.entries if entry.event.name == "tool_call_opened"] == [3]
    retries = [(entry.event.attempt, entry.event.error_type, entry.event.backoff_s) for entry in retries_of(captured)]
    assert retries == [(1, name(TooMany), 3.0), (2, name(Broken), 7.0)]
    assert [wait for _, wait in facts(captured, "attempt t", "loopspan.attempt.backoff_s")] == [None, 3.0, 7.0]


@pytest.mark.parametrize("way", WAYS)
def test_E4_how_often_we_retry_is_a_question_about_spans(way: Any):
    captured, _ = run(way, TooMany, Broken, OK)
    chats = [span.attributes for span in captured.spans if span.name == "chat m"]
    retried = [said for said in chats if said["loopspan.attempt.number"] > 1]
    assert len(retried) == 2
    by_number = {(said["loopspan.request.id"], said["loopspan.attempt.number"]): said for said in chats}
    before = [by_number[said["loopspan.request.id"], said["loopspan.attempt.number"] - 1] for said in retried]
    assert [said["error.type"] for said in before] == [name(TooMany), name(Broken)]


def test_E4_a_call_with_other_arguments_after_a_failed_one_is_another_call():
    def other(client: Client, clock: TickingClock) -> None:
        tool = loopspan.tool("t")(client.send)
        with pytest.raises(TooMany):
            tool(1)
        tool(2)

    _, recorded = run(other, TooMany, OK)
    assert [(call.outcome, call.entries) for call in recorded.tool_calls] == [("failed", 1), ("ok", 1)]


def test_E4_a_call_that_the_model_asks_for_again_is_another_call():
    def again(client: Client, clock: TickingClock) -> None:
        tools = loopspan.Toolbox(loopspan.tool("t")(client.send))

        @loopspan.model_request(model="m", read=lambda said: Answer(tool_calls=[Call("t", {"messages": 1}, said)]))
        def ask(call_id: str) -> str:
            return call_id

        for call_id in ("c1", "c2"):
            ask(call_id)
            tools.call("t", {"messages": 1}, call_id=call_id, on_error="return")

    captured, recorded = run(again, TooMany, OK)
    assert [(call.call_id, call.outcome) for call in recorded.tool_calls] == [("c1", "failed"), ("c2", "ok")]
    assert [number for _, number in facts(captured, "attempt t", "loopspan.attempt.number")] == [1, 1]
