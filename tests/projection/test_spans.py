"""The spans of one run: tree, names, kinds and attributes (telemetry.md, *Trace = one run*, *Attributes*)."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import SpanKind

import loopspan
from loopspan import semconv
from loopspan.testing import Captured, CountingIds, TickingClock, capture
from projection.sample import everything
from projection.spans import word


@pytest.fixture
def sample() -> Captured:
    """The run of `projection.sample`, with facts around it."""
    facts = loopspan.context(
        conversation_id="c-1", subject="alice", goal="a build", attributes={"tenant": "t1", "tags": ["a", "b"]}
    )
    with capture(clock=TickingClock(), ids=CountingIds()) as captured, facts:
        everything()
    return captured


TREE = [
    ("invoke_agent builder", [
        ("step", [
            ("chat gpt-4.1", []),
            ("chat gpt-4.1", []),
            ("execute_tool read", [
                ("validate read", []),
                ("attempt read", []),
                ("attempt read", []),
            ]),
            ("backfill read", []),
            ("execute_tool pay", [
                ("validate pay", []),
                ("approval pay", []),
                ("validate pay", []),
                ("attempt pay", []),
                ("reconcile pay", []),
            ]),
            ("backfill pay", []),
            ("execute_tool delegate", [
                ("attempt delegate", [
                    ("invoke_agent helper", []),
                ]),
            ]),
            ("backfill delegate", []),
            ("execute_tool", [
                ("validate", []),
            ]),
            ("backfill", []),
        ]),
        ("approval_wait pay", []),
        ("approval_wait", []),
        ("step", [
            ("chat gpt-4.1", []),
        ]),
    ]),
]  # fmt: skip


# --- tree and names


def test_a_run_is_one_trace_with_the_tree_that_the_design_draws(sample: Captured):
    assert sample.span_tree() == TREE
    assert len({span.context.trace_id for span in sample.spans}) == 1


def test_only_model_requests_leave_the_process(sample: Captured):
    kinds = {word(span): span.kind for span in sample.spans}
    assert kinds.pop("chat") is SpanKind.CLIENT
    assert set(kinds.values()) == {SpanKind.INTERNAL}


def test_names_hold_nothing_that_a_model_made_up(loopspan_capture: Captured):
    tools = loopspan.Toolbox()

    @loopspan.model_request
    def ask(messages: list[Any]) -> str:
        return "?"

    @loopspan.agent_loop("agent")
    def loop() -> None:
        ask([])
        tools.call("rm -rf /", "{}", call_id="call_1", on_error="return")
        ask([{"role": "tool", "tool_call_id": "call_1", "content": "no"}])

    loop()
    names = {span.name for span in loopspan_capture.spans}
    assert names == {"invoke_agent agent", "step", "chat", "execute_tool", "validate", "backfill"}


def test_numbers_and_ids_are_attributes_and_no_part_of_names(sample: Captured):
    names = {span.name.replace("gpt-4.1", "") for span in sample.spans}
    assert not [name for name in names if any(character.isdigit() for character in name)]


def test_spans_are_of_our_scope_and_schema(sample: Captured):
    scopes = {(span.instrumentation_scope.name, span.instrumentation_scope.schema_url) for span in sample.spans}
    assert scopes == {(semconv.SCOPE, semconv.SCHEMA_URL)}


# --- attributes


def test_every_span_says_which_run_agent_and_conversation_it_is_part_of(sample: Captured):
    for span in sample.spans:
        agent = "helper" if span.name == "invoke_agent helper" else "builder"
        assert span.attributes["gen_ai.agent.name"] == agent
        assert span.attributes["gen_ai.conversation.id"] == "c-1"
        assert (span.attributes["tenant"], span.attributes["tags"]) == ("t1", ("a", "b"))
    by_agent = {span.attributes["gen_ai.agent.name"]: span.attributes["loopspan.run.id"] for span in sample.spans}
    assert sorted(by_agent) == ["builder", "helper"]
    assert len(set(by_agent.values())) == 2


def test_a_conversation_that_nobody_named_is_not_made_up():
    with capture(clock=TickingClock()) as captured:
        everything()
    assert not [span for span in captured.spans if "gen_ai.conversation.id" in span.attributes]


def test_every_span_inside_of_a_step_has_its_number(sample: Captured):
    numbers = {(word(span), span.attributes.get("loopspan.step.number")) for span in sample.spans}
    assert {number for kind, number in numbers if kind == "invoke_agent"} == {None}
    assert {number for kind, number in numbers if kind in ("step", "chat")} == {1, 2}
    assert {number for kind, number in numbers if kind not in ("invoke_agent", "step", "chat")} == {1}


ATTRIBUTES: dict[tuple[str, int], dict[str, Any]] = {
    ("invoke_agent builder", 0): {
        "gen_ai.operation.name": "invoke_agent",
        "loopspan.run.lifecycle": "closed",
        "loopspan.run.subject": "alice",
        "loopspan.run.goal": "a build",
        "loopspan.run.stop_reason": "success",
        "loopspan.run.steps": 2,
        "loopspan.run.active_s": pytest.approx(3, abs=0.2),
        "loopspan.run.waiting_s": pytest.approx(0.01, abs=0.0099),
        "loopspan.run.periods": 1,
        "loopspan.run.concurrency.peak": 1,
        "loopspan.usage.input_tokens": 250,
        "loopspan.usage.output_tokens": 50,
        "loopspan.usage.cache_read_tokens": 60,
        "loopspan.usage.reasoning_tokens": 5,
        "loopspan.cost.provider.usd": 0.25,
        "loopspan.events.count": 59,
    },
    ("invoke_agent helper", 0): {
        "gen_ai.operation.name": "invoke_agent",
        "loopspan.run.lifecycle": "closed",
        "loopspan.run.parent_run_id": f"{1:032x}",
        "loopspan.run.parent_call_id": "call_1_1",
        "loopspan.run.subject": "alice",
        "loopspan.run.goal": "a build",
        "loopspan.run.stop_reason": "success",
        "loopspan.run.steps": 0,
        "loopspan.run.active_s": pytest.approx(0.01, abs=0.0099),
        "loopspan.run.waiting_s": 0.0,
        "loopspan.run.periods": 1,
        "loopspan.run.concurrency.peak": 0,
        "loopspan.events.count": 2,
    },
    ("step", 0): {
        "loopspan.step.outcome": "ok",
        "loopspan.usage.input_tokens": 100,
        "loopspan.usage.output_tokens": 20,
        "loopspan.usage.cache_read_tokens": 60,
        "loopspan.usage.reasoning_tokens": 5,
        "loopspan.cost.provider.usd": 0.25,
    },
    ("chat gpt-4.1", 0): {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "loopspan.request.id": f"{2:032x}",
        "loopspan.request.outcome": "failed",
        "loopspan.attempt.number": 1,
        "error.type": "projection.sample.Flaky",
    },
    ("chat gpt-4.1", 1): {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.response.model": "gpt-4.1-2026",
        "gen_ai.response.id": "r1",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "gen_ai.output.messages": '[{"text":"let me look"}]',
        "loopspan.request.id": f"{2:032x}",
        "loopspan.request.outcome": "ok",
        "loopspan.attempt.number": 2,
        "loopspan.attempt.backoff_s": 2.0,
    },
    ("execute_tool read", 0): {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": '{"path":"a"}',
        "gen_ai.tool.call.result": '"green"',
        "loopspan.tool.call.id_source": "given",
        "loopspan.tool.call.ordinal": 1,
        "loopspan.tool.effect": "read_only",
        "loopspan.tool.outcome": "ok",
        "loopspan.tool.attempts": 2,
        "loopspan.tool.arguments.digest": "fde64ffe7a4a0bbd5d2fe2c294b79580",
        "loopspan.tool.arguments.size": 12,
    },
    ("execute_tool", 0): {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "remove",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_3",
        "gen_ai.tool.call.arguments": "{}",
        "loopspan.tool.call.id_source": "given",
        "loopspan.tool.call.ordinal": 1,
        "loopspan.tool.outcome": "rejected",
        "loopspan.tool.attempts": 0,
        "loopspan.tool.arguments.digest": "44136fa355b3678a1146ad16f7e8649e",
        "loopspan.tool.arguments.size": 2,
        "error.type": "unknown_tool",
    },
    ("validate", 0): {
        "gen_ai.tool.name": "remove",
        "loopspan.validation.outcome": "rejected",
        "loopspan.validation.stage": "proposal",
        "loopspan.validation.reason": "not in the allowlist: read, pay, delegate",
        "error.type": "unknown_tool",
    },
    ("validate pay", 1): {
        "gen_ai.tool.name": "pay",
        "loopspan.validation.outcome": "passed",
        "loopspan.validation.stage": "recheck",
    },
    ("attempt read", 0): {
        "gen_ai.tool.name": "read",
        "loopspan.attempt.number": 1,
        "loopspan.attempt.outcome": "failed",
        "error.type": "projection.sample.Flaky",
    },
    ("attempt read", 1): {
        "gen_ai.tool.name": "read",
        "loopspan.attempt.number": 2,
        "loopspan.attempt.outcome": "ok",
        "loopspan.attempt.backoff_s": 1.0,
    },
    ("attempt pay", 0): {
        "gen_ai.tool.name": "pay",
        "loopspan.attempt.number": 1,
        "loopspan.attempt.outcome": "unknown",
        "error.type": "ConnectionError",
    },
    ("approval pay", 0): {
        "gen_ai.tool.name": "pay",
        "loopspan.approval.id": f"{3:032x}",
        "loopspan.approval.outcome": "pending",
        "loopspan.approval.expires_at": pytest.approx(1_700_000_063_000_000_000, abs=200_000_000),
    },
    ("approval_wait pay", 0): {
        "gen_ai.tool.name": "pay",
        "loopspan.approval.id": f"{3:032x}",
        "loopspan.approval.outcome": "approved",
        "loopspan.approval.decided_by": "alice",
    },
    ("approval_wait", 0): {"loopspan.approval.outcome": "denied", "loopspan.approval.decided_by": "bob"},
    ("reconcile pay", 0): {
        "gen_ai.tool.name": "pay",
        "loopspan.reconcile.outcome": "committed",
        "loopspan.reconcile.tries": 1,
    },
    ("backfill read", 0): {"gen_ai.tool.name": "read", "loopspan.backfill.outcome": "backfilled"},
    ("backfill delegate", 0): {"gen_ai.tool.name": "delegate", "loopspan.backfill.outcome": "missing"},
}
"""All attributes of a span, by its name and its place among those of that name, without those that every span has."""

COMMON = {"loopspan.run.id", "gen_ai.agent.name", "gen_ai.conversation.id", "tenant", "tags", "loopspan.step.number"}


@pytest.mark.parametrize(("name", "place"), ATTRIBUTES)
def test_a_span_has_the_attributes_of_its_kind_and_no_others(sample: Captured, name: str, place: int):
    spans = sorted((span for span in sample.spans if span.name == name), key=lambda span: span.start_time)
    found = {key: value for key, value in spans[place].attributes.items() if key not in COMMON}
    assert found == ATTRIBUTES[name, place]
