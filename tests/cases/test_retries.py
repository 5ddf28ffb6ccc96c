"""Cases, group retries: attempts, and the one logical request that they belong to."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

import loopspan
from facts import facts
from loopspan.testing import TickingClock, capture
from retrying import OK, WAYS, Broken, Client, TooMany, by_retry, by_retry_async, name, retries_of, run

UNSET, ERROR = StatusCode.UNSET, StatusCode.ERROR
SECOND = 1_000_000_000
WAY = pytest.mark.parametrize("way", WAYS)


@WAY
def test_E1_every_attempt_is_on_record_with_its_number_error_and_backoff(way: Any):
    captured, recorded = run(way, TooMany, Broken, OK)
    keys = ("loopspan.attempt.number", "error.type", "loopspan.request.outcome")
    assert facts(captured, "chat m", *keys) == [
        (ERROR, 1, name(TooMany), "failed"),
        (ERROR, 2, name(Broken), "failed"),
        (UNSET, 3, None, "ok"),
    ]
    assert len({span.attributes["loopspan.request.id"] for span in captured.spans if span.name == "chat m"}) == 1
    assert recorded.stop_reason == "success"
    assert [len(request.attempts) for request in recorded.requests] == [3]


@WAY
def test_E1_the_backoff_is_in_no_attempts_duration(way: Any):
    captured, _ = run(way, TooMany, Broken, OK)
    chats = sorted((span for span in captured.spans if span.name == "chat m"), key=lambda span: span.start_time)
    assert [(chat.end_time - chat.start_time) / SECOND for chat in chats] == [1, 1, 1]
    gaps = [(after.start_time - before.end_time) / SECOND for before, after in pairwise(chats)]
    assert gaps == [3, 7], "the latency of the request and the backoff are separable"


@pytest.mark.parametrize("way", [by_retry, by_retry_async])
def test_E1_the_backoff_of_a_retry_is_said(way: Any):
    captured, _ = run(way, TooMany, Broken, OK)
    waits = facts(captured, "chat m", "loopspan.attempt.backoff_s")
    assert [wait for _, wait in waits] == [None, 3.0, 7.0]
    retries = [(entry.event.attempt, entry.event.error_type, entry.event.backoff_s) for entry in retries_of(captured)]
    assert retries == [(1, name(TooMany), 3.0), (2, name(Broken), 7.0)]


def test_E1_attempts_that_are_used_up_say_so():
    clock = TickingClock(step=0)
    client = Client(clock, TooMany, Broken, TooMany)
    with capture(clock=clock) as captured, pytest.raises(loopspan.RetryBudgetExhausted) as caught:
        loopspan.agent_loop("loop")(lambda: by_retry(client, clock))()
    assert isinstance(caught.value.__cause__, TooMany)
    assert captured.runs[0].stop_reason == "retry_budget_exhausted"
    assert [number for _, number in facts(captured, "chat m", "loopspan.attempt.number")] == [1, 2, 3]


def test_E1_an_error_that_is_not_worth_it_is_not_repeated():
    clock = TickingClock(step=0)
    with capture(clock=clock) as captured, pytest.raises(KeyError):
        loopspan.agent_loop("loop")(lambda: by_retry(Client(clock, TooMany, KeyError), clock))()
    assert captured.runs[0].stop_reason == "model_failed"
    assert [number for _, number in facts(captured, "chat m", "loopspan.attempt.number")] == [1, 2]


def test_E1_the_retries_of_a_run_have_a_budget():
    clock = TickingClock(step=0)
    with capture(clock=clock) as captured, pytest.raises(loopspan.RetryBudgetExhausted):
        loopspan.agent_loop("loop", retry_budget=1)(lambda: by_retry(Client(clock, TooMany, TooMany, OK), clock))()
    assert [number for _, number in facts(captured, "chat m", "loopspan.attempt.number")] == [1, 2]


@WAY
def test_E2_one_logical_request_of_several_attempts_counts_once(way: Any):
    captured, recorded = run(way, TooMany, OK)
    assert recorded.summary()["cost_metric"]["model_calls"] == 1
    assert len(facts(captured, "chat m")) == 2
    assert captured.metric("gen_ai.invoke_agent.inference_calls").sum == 1
    assert captured.metric("gen_ai.client.inference.duration").count == 2
    assert len(recorded.steps) == 1, "an attempt opens no step"
    assert [len(step.requests) for step in recorded.steps] == [1]


def test_E2_equal_requests_that_both_succeed_are_two():
    def twice(client: Client, clock: TickingClock) -> None:
        send, messages = loopspan.model_request(model="m")(client.send), ["equal"]
        send(messages)
        send(messages)

    captured, recorded = run(twice, OK, OK)
    assert recorded.summary()["cost_metric"]["model_calls"] == 2
    assert [number for _, number in facts(captured, "chat m", "loopspan.attempt.number")] == [1, 1]


def test_E2_another_request_after_a_failed_one_is_another_request():
    def other(client: Client, clock: TickingClock) -> None:
        send = loopspan.model_request(model="m")(client.send)
        with pytest.raises(TooMany):
            send(["one"])
        send(["another", "message"])

    captured, recorded = run(other, TooMany, OK)
    assert recorded.summary()["cost_metric"]["model_calls"] == 2
    assert [number for _, number in facts(captured, "chat m", "loopspan.attempt.number")] == [1, 1]
