"""Cases, group tokens-cost: every token and every cent counts once, and what is unknown is not 0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import loopspan
from loopspan import Answer, Cost, Usage
from loopspan.testing import Captured, capture

INPUT = "gen_ai.usage.input_tokens"


def request(answer: Any, provider: str = "p", model: str = "m") -> Any:
    """A request that gets this answer."""
    return loopspan.model_request(provider=provider, model=model)(lambda: answer)


def chat(prompt: int, completion: int) -> dict[str, Any]:
    """An answer with usage."""
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def run(*bodies: Any, **settings: Any) -> Captured:
    """One run that does these."""
    with capture(**settings) as captured:
        loopspan.agent_loop("agent")(lambda: [body() for body in bodies])()
    return captured


def test_F1_the_sum_of_one_attribute_over_a_trace_is_the_truth():
    parts = [10, 20, 30, 40]
    captured = run(*(request(chat(part, 1)) for part in parts))
    carriers = [span for span in captured.spans if INPUT in span.attributes]
    assert sum(span.attributes[INPUT] for span in carriers) == 100
    assert {span.name for span in carriers} == {"chat m"}
    root = next(span for span in captured.spans if span.name == "invoke_agent agent")
    assert root.attributes["loopspan.usage.input_tokens"] == 100, "the total has a name of its own"
    assert captured.metric("gen_ai.client.inference.usage.input_tokens").sum == 100


@pytest.mark.parametrize(
    ("provider", "usage"),
    [
        ("openai", {"prompt_tokens": 17903, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 17817}}),
        ("anthropic", {"input_tokens": 86, "cache_read_input_tokens": 17817, "output_tokens": 5}),
    ],
)
def test_F3_cached_tokens_are_in_the_input_once(provider: str, usage: Any):
    captured = run(request({"usage": usage}, provider))
    (chat_span,) = [span for span in captured.spans if span.name == "chat m"]
    assert chat_span.attributes[INPUT] == 17903
    assert chat_span.attributes["gen_ai.usage.cache_read.input_tokens"] == 17817
    assert captured.runs[0].usage.uncached_input_tokens == 86


def streamed(*chunks: Any) -> Any:
    """A request whose answer is streamed."""

    @loopspan.model_request(provider="openai", model="m")
    def ask() -> Any:
        yield from chunks

    return lambda: list(ask())


PIECE = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "hi"}}]}
STOP = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
LAST = {
    "object": "chat.completion.chunk",
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}


def test_F4_usage_of_a_stream_is_that_of_its_last_event():
    captured = run(streamed(PIECE, STOP, LAST))
    (span,) = [span for span in captured.spans if span.name == "chat m"]
    assert (span.attributes[INPUT], span.attributes["gen_ai.usage.output_tokens"]) == (9, 4)
    assert not captured.runs[0].usage.incomplete


def test_F4_a_stream_without_usage_has_none_and_says_so():
    captured = run(streamed(PIECE, STOP))
    (span,) = [span for span in captured.spans if span.name == "chat m"]
    assert not [key for key in span.attributes if key.startswith("gen_ai.usage.")]
    assert (captured.runs[0].usage.input_tokens, captured.runs[0].usage.incomplete) == (None, True)
    assert captured.metric("loopspan.usage.unknown").sum == 1


def test_F5_one_usage_field_that_is_None_costs_no_other_attribute():
    answer = {
        "id": "answer-1",
        "model": "m-1",
        "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": None, "completion_tokens": 4},
    }
    captured = run(request(answer))
    (span,) = [span for span in captured.spans if span.name == "chat m"]
    assert INPUT not in span.attributes
    assert span.attributes["gen_ai.usage.output_tokens"] == 4
    assert span.attributes["gen_ai.response.model"] == "m-1"
    assert span.attributes["gen_ai.response.id"] == "answer-1"
    assert tuple(span.attributes["gen_ai.response.finish_reasons"]) == ("stop",)
    assert captured.runs[0].usage == Usage(output_tokens=4, incomplete=True)


def prices(provider: str, model: str, usage: Usage) -> Cost | None:
    """One model is free, one has no row."""
    return Cost(0, source="estimated", table="t") if model == "free" else None


def test_F7_a_model_without_a_price_is_unpriced_and_never_0():
    captured = run(request(chat(10_000, 1), model="new"), prices=prices)
    cost = captured.runs[0].cost
    assert (dict(cost.amounts), cost.unpriced, cost.incomplete) == ({}, 1, True)
    assert captured.metric("loopspan.cost").points == []
    assert captured.metric("loopspan.cost.unpriced").sum == 1


def test_F7_a_true_0_is_0():
    captured = run(request(chat(10_000, 1), model="free"), prices=prices)
    cost = captured.runs[0].cost
    assert (dict(cost.amounts), cost.incomplete) == ({("USD", "estimated"): Decimal(0)}, False)
    assert len(captured.metric("loopspan.cost").points) == 1
    assert captured.metric("loopspan.cost.unpriced").points == []


def test_F8_tokens_and_cost_of_three_levels_have_the_same_scope():
    def ask(tokens: int) -> None:
        answer = Answer(usage=Usage(tokens, 1), cost=Cost(Decimal(tokens) / 100))
        loopspan.model_request(model="m", read=lambda value: value)(lambda: answer)()

    def level(tokens: int, below: Any = None) -> Any:
        def body() -> None:
            ask(tokens)
            if below is not None:
                below()

        return loopspan.agent_loop(f"level-{tokens}")(body)

    with capture() as captured:
        level(1, level(10, level(100)))()
    own = {run.agent_name: run.usage.input_tokens for run in captured.runs}
    whole = {run.agent_name: run.usage_with_descendants.input_tokens for run in captured.runs}
    cost = {run.agent_name: run.cost.amounts["USD", "provider"] * 100 for run in captured.runs}
    assert own == cost == {"level-1": 1, "level-10": 10, "level-100": 100}
    assert whole == {"level-1": 111, "level-10": 110, "level-100": 100}
    closed = {
        entry.event.descendants and entry.event.descendants["input_tokens"]: entry.event.descendants
        for entry in captured.entries
        if entry.event.name == "run_trace_closed"
    }
    assert closed.keys() == {110, 100, None}
    assert [item["amount"] for item in closed[110]["cost"]] == ["1.1"], "the cost of the same runs"


def test_F9_usage_is_what_the_provider_said_and_no_image_is_sent_as_text():
    image = "iVBORw0KGgo" * 20_000
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
    messages = [{"role": "user", "content": [part]}]

    @loopspan.model_request(provider="openai", model="m")
    def ask(messages: Any) -> Any:
        yield from (PIECE, STOP, {**LAST, "usage": {"prompt_tokens": 343, "completion_tokens": 4}})

    captured = run(lambda: list(ask(messages)))
    assert captured.runs[0].usage == Usage(343, 4)
    exported = "".join(f"{span.attributes} {[event.attributes for event in span.events]}" for span in captured.spans)
    assert image[:200] not in exported
    assert len(exported) < 20_000
