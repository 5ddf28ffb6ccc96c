"""Prices, currencies and usage that nobody should give: the run goes on, the fault is counted, the rest stands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import loopspan
from hostile import OneRaises, Raising
from loopspan import Answer, Cost, Usage, _guard
from loopspan.testing import Captured, capture

GOOD = {"usage": {"prompt_tokens": 10, "completion_tokens": 2}}
PRICE = Cost(Decimal("0.5"), source="estimated", table="t")


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    """Faults are counted from none."""
    before = dict(_guard.faults)
    _guard.faults.clear()
    yield
    _guard.faults.clear()
    _guard.faults.update(before)


def run(*answers: Any, **settings: Any) -> Captured:
    """A run that gets these answers."""
    with capture(strict=False, **settings) as captured:
        ask = loopspan.model_request(provider="p", model="m")(lambda number: answers[number])
        loopspan.agent_loop("agent")(lambda: [ask(number) for number in range(len(answers))])()
    return captured


def raises(provider: str, model: str, usage: Usage) -> Cost:
    """A price function with a fault of its own."""
    raise KeyError(model)


@pytest.mark.parametrize("nonsense", ["0.5", 0.5, {"amount": 1}, object(), math.nan, True, raises])
def test_a_price_that_is_none_leaves_the_request_unpriced_and_the_others_priced(nonsense: Any):
    asked = []

    def prices(provider: str, model: str, usage: Usage) -> Any:
        asked.append(usage)
        if len(asked) != 2:
            return PRICE
        return nonsense(provider, model, usage) if nonsense is raises else nonsense

    captured = run(GOOD, GOOD, GOOD, prices=prices)
    (recorded,) = captured.runs
    assert recorded.stop_reason == "success"
    assert _guard.faults == {"the prices= function": 1}
    assert (dict(recorded.cost.amounts), recorded.cost.unpriced) == ({("USD", "estimated"): Decimal(1)}, 1)
    assert (recorded.usage.input_tokens, recorded.usage.incomplete) == (30, False)
    assert captured.metric("loopspan.telemetry.faults").sum == 1
    assert captured.metric("loopspan.cost.unpriced").sum == 1


def test_prices_in_two_currencies_are_never_added():
    found = iter(["USD", "EUR", "USD"])
    captured = run(GOOD, GOOD, GOOD, prices=lambda *_: Cost(1, next(found), "estimated"))
    assert dict(captured.runs[0].cost.amounts) == {("USD", "estimated"): 2, ("EUR", "estimated"): 1}


@pytest.mark.parametrize("second", [Cost(7, "EUR"), Cost(7, "USD", "simulated")])
def test_cumulative_costs_that_change_their_currency_are_unknown_once(second: Cost):
    with capture(strict=False) as captured, loopspan.agent_loop("agent") as agent:
        for number, cost in enumerate([Cost(5), second, Cost(9, second.currency, second.source)], start=1):
            with loopspan.model_request(model="m") as request:
                request.observe_totals(Usage(10 * number, number), cost=cost)
        agent.succeed()
    (recorded,) = captured.runs
    assert _guard.faults == {"the totals of a request": 1}
    assert dict(recorded.cost.amounts) == {("USD", "provider"): 5, (second.currency, second.source): 2}
    assert recorded.cost.unpriced == 1
    assert (recorded.usage.input_tokens, recorded.usage.output_tokens) == (30, 3)


def test_a_counter_that_one_reading_lacks_goes_on_from_the_reading_before():
    with capture() as captured, loopspan.agent_loop("agent") as agent:
        for totals in (Usage(100, 10), Usage(None, 20), Usage(150, 30)):
            with loopspan.model_request(model="m") as request:
                request.observe_totals(totals)
        agent.succeed()
    (recorded,) = captured.runs
    assert (recorded.usage.input_tokens, recorded.usage.output_tokens, recorded.usage.incomplete) == (150, 30, True)


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        ("many", None),
        ([1, 2], None),
        (math.nan, None),
        (2**70, None),
        ({"prompt_tokens": math.nan, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": 2**70, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": {"prompt_tokens": 1}, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": -1, "completion_tokens": 2}, (None, 2)),
        (Raising, None),
        (OneRaises, (5, None)),
    ],
)
def test_hostile_usage_is_unknown_and_the_others_stand(usage: Any, kept: Any):
    given = usage() if isinstance(usage, type) else usage
    captured = run(GOOD, {"usage": given, "model": "m-1"}, GOOD)
    (recorded,) = captured.runs
    mine = kept or (None, None)
    assert recorded.stop_reason == "success"
    assert recorded.usage == Usage(20 + (mine[0] or 0), 4 + (mine[1] or 0), incomplete=True)
    chat = [span.attributes for span in captured.spans if span.name == "chat m"][1]
    assert (chat.get("gen_ai.usage.input_tokens"), chat.get("gen_ai.usage.output_tokens")) == mine
    assert chat["gen_ai.response.model"] == "m-1"
    assert captured.metric("loopspan.usage.unknown").sum == (kept is None)


def test_an_answer_with_a_usage_that_is_none_stands():
    with capture(strict=False) as captured, loopspan.agent_loop("agent") as agent:
        with loopspan.model_request(model="m") as request:
            request.answer(Answer(usage=Usage(2**70, 2), model="m-1"))
        agent.succeed()
    assert captured.runs[0].usage == Usage(None, 2, incomplete=True)
