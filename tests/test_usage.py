"""Tokens and cost as values: what is read out of usage objects, sums, differences, limits."""

from __future__ import annotations

import decimal
import math
import pickle
from collections import UserDict
from dataclasses import replace
from decimal import Decimal
from enum import IntEnum
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answer_shapes import WHOLE, tokens
from hostile import COUNTS, FIELDS, HOSTILE, JSON, SCALARS, OneRaises, SameAs
from loopspan.errors import ConfigurationError
from loopspan.usage import Budget, Cost, CostTotals, Usage, total

COUNT = st.none() | st.integers(0, 2**53 - 1)
USAGES = st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT, st.booleans())
COSTS = st.builds(
    Cost,
    st.decimals(0, 10**6, places=9, allow_nan=False),
    st.sampled_from(["USD", "EUR"]),
    st.sampled_from(["provider", "estimated", "simulated"]),
)


class Two(IntEnum):
    """A number of another type."""

    VALUE = 2


# --- reading


@pytest.mark.parametrize(
    "value", ["7", "", [], [7], {}, {"n": 7}, math.nan, math.inf, -1, -0.5, 7.5, 2**53, 2**70, True, b"7"]
)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"])
def test_one_bad_field_is_unknown_and_costs_no_other(name: str, value: Any):
    good = {"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4, "reasoning_tokens": 2}
    expected = {
        "prompt_tokens": Usage(None, 3, 4, None, 2, incomplete=True),
        "completion_tokens": Usage(10, None, 4, None, 2, incomplete=True),
        "cached_tokens": Usage(10, 3, None, None, 2),
        "reasoning_tokens": Usage(10, 3, 4),
    }
    assert Usage.parse({**good, name: value}) == expected[name]


@pytest.mark.parametrize("name", ["cache_read_input_tokens", "cache_creation_input_tokens"])
def test_a_bad_part_that_stands_beside_the_input_leaves_the_input_incomplete(name: str):
    usage = Usage.parse({"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 4, name: "many"})
    assert usage is not None
    assert usage.incomplete
    assert usage.output_tokens == 3
    assert usage.input_tokens in (10, 14)


@pytest.mark.parametrize(
    "source",
    [
        None,
        "usage",
        b"usage",
        7,
        7.5,
        True,
        [],
        [1],
        (),
        {},
        {"usage": 1},
        {1: 2},
        object(),
    ],
)
def test_nothing_recognised_is_none(source: Any):
    assert Usage.parse(source) is None


@pytest.mark.parametrize("kind", HOSTILE)
def test_objects_that_raise_are_none(kind: type):
    assert Usage.parse(kind()) is None
    assert Usage.parse({"prompt_tokens": kind(), "completion_tokens": 3}) == Usage(None, 3, incomplete=True)


def test_a_mapping_whose_key_raises_is_none():
    assert Usage.parse({SameAs("prompt_tokens"): 5, "completion_tokens": 3}) is None


def test_known_names_without_a_count_are_an_incomplete_usage():
    assert Usage.parse({"prompt_tokens": None, "completion_tokens": None}) == Usage(incomplete=True)
    assert Usage.parse({"input_tokens": "1", "output_tokens": []}) == Usage(incomplete=True)
    assert Usage.parse(MagicMock()) == Usage(incomplete=True)


def test_details_that_are_nested_wrongly_are_unknown():
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": [1], "completion_tokens_details": "x"}
    assert Usage.parse(usage) == Usage(9, 3)
    assert Usage.parse({"prompt_tokens": {"prompt_tokens": 9}, "completion_tokens": 3}) == Usage(
        None, 3, incomplete=True
    )


def test_a_property_that_raises_counts_as_absent():
    assert Usage.parse(OneRaises()) == Usage(5, None, incomplete=True)


def test_other_kinds_of_numbers_and_mappings():
    assert Usage.parse({"input_tokens": 3.0, "output_tokens": Two.VALUE}) == Usage(3, 2)
    assert Usage.parse(UserDict(input_tokens=3, output_tokens=2)) == Usage(3, 2)
    parsed = Usage.parse({"input_tokens": 3.0, "output_tokens": Two.VALUE})
    assert parsed is not None
    assert (type(parsed.input_tokens), type(parsed.output_tokens)) == (int, int)


def test_a_usage_is_itself_and_loses_what_is_no_count():
    usage = Usage(5, 3, 9)
    assert Usage.parse(usage) is usage, "also where a part exceeds the whole: it is in the form already"
    wrong: Any = Usage("5", 3, 2**60, None, -1)  # type: ignore[arg-type]
    assert Usage.parse(wrong) == Usage(None, 3, incomplete=True)


def test_the_total_decides_where_reasoning_and_cache_stand():
    usage = {
        "prompt_tokens": 200,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 30},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    inside, both = Usage(200, 50, 30, None, 20), Usage(230, 70, 30, None, 20)
    assert Usage.parse(usage) == inside
    assert Usage.parse({**usage, "total_tokens": 250}) == inside
    assert Usage.parse({**usage, "total_tokens": 270}) == Usage(200, 70, 30, None, 20)
    assert Usage.parse({**usage, "total_tokens": 280}) == Usage(230, 50, 30, None, 20)
    assert Usage.parse({**usage, "total_tokens": 300}) == both
    assert Usage.parse({**usage, "total_tokens": 999}) == inside, "a total that nothing explains decides nothing"
    assert Usage.parse({**usage, "total_tokens": "?"}) == inside


@pytest.mark.parametrize(
    ("provider", "output"), [("x_ai", 70), ("xai", 70), ("perplexity", 70), ("openai", 50), (None, 50)]
)
def test_the_provider_decides_where_the_answer_does_not(provider: str | None, output: int):
    usage = {"prompt_tokens": 200, "completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 20}}
    assert Usage.parse(usage, provider) == Usage(200, output, None, None, 20)
    assert Usage.parse({**usage, "total_tokens": 250}, provider) == Usage(200, 50, None, None, 20), (
        "the total is better"
    )


def test_a_compaction_that_cannot_be_read_leaves_the_usage_incomplete():
    usage = {
        "input_tokens": 5,
        "output_tokens": 3,
        "iterations": [{"type": "compaction"}, {"type": "message"}, None, 7],
    }
    assert Usage.parse(usage) == Usage(5, 3, incomplete=True)
    nested: dict[str, Any] = {"type": "compaction", "input_tokens": 1, "output_tokens": 1}
    nested["iterations"] = [nested]
    assert Usage.parse(nested) == Usage(2, 2)


def test_F3_input_includes_the_cache_whether_the_provider_includes_it_or_not():  # noqa: N802  # the id of the case
    includes = {"prompt_tokens": 17903, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 17817}}
    excludes = {"input_tokens": 86, "output_tokens": 9, "cache_read_input_tokens": 17817}
    for source in (includes, excludes):
        usage = Usage.parse(source)
        assert usage is not None
        assert (usage.input_tokens, usage.cache_read_tokens, usage.uncached_input_tokens) == (17903, 17817, 86)


def test_F5_one_field_without_a_value_costs_no_other():  # noqa: N802  # the id of the case
    streamed = SimpleNamespace(
        input_tokens=None, output_tokens=5, cache_read_input_tokens=0, cache_creation_input_tokens=0
    )
    assert Usage.parse(streamed) == Usage(None, 5, 0, 0, incomplete=True)


@pytest.mark.parametrize("row", [row for row in WHOLE if row.usage is not None], ids=lambda row: row.name)
def test_F3_parts_are_never_greater_than_the_whole_that_includes_them(row: Any):  # noqa: N802  # the id of the case
    usage = row.usage
    if usage.input_tokens is not None:
        assert (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0) <= usage.input_tokens
    assert (usage.reasoning_tokens or 0) <= usage.output_tokens


@pytest.mark.fuzz
@given(JSON, st.none() | st.sampled_from(["openai", "anthropic", "x_ai", "perplexity"]) | st.text())
def test_parse_never_raises_and_answers_counts_only(source: Any, provider: str | None):
    usage = Usage.parse(source, provider)
    if usage is not None:
        for name in COUNTS:
            value = getattr(usage, name)
            assert value is None or (type(value) is int and value >= 0)
        assert usage.incomplete or None not in (usage.input_tokens, usage.output_tokens)
        assert Usage.parse(usage) == usage


@pytest.mark.fuzz
@given(st.dictionaries(st.sampled_from(FIELDS), SCALARS))
def test_an_object_reads_like_a_mapping(fields: dict[str, Any]):
    assert Usage.parse(SimpleNamespace(**fields)) == Usage.parse(fields)


# --- sums and differences


def test_sums_keep_unknown_apart_from_zero():
    assert Usage(1, 2) + Usage(3, 4, 0) == Usage(4, 6, 0)
    assert (Usage(1, 2) + Usage(3, 4)).reasoning_tokens is None
    assert Usage(1, 2) + Usage(output_tokens=5) == Usage(1, 7, incomplete=True)
    assert Usage(1, 2) + Usage(cache_read_tokens=5) == Usage(1, 2, 5, incomplete=True)
    assert Usage(1, 2) + Usage(3, 4, incomplete=True) == Usage(4, 6, incomplete=True)
    assert Usage(1, 2) + Usage() == Usage(1, 2), "one that counts nothing takes nothing away"


def test_total_of_none_counts_nothing():
    assert total([]) == Usage()
    assert total([Usage(1, 2)]) == Usage(1, 2)
    assert total(iter([Usage(1, 2), Usage(3, 4), Usage(output_tokens=1)])) == Usage(4, 7, incomplete=True)


def test_a_usage_is_only_added_to_a_usage():
    with pytest.raises(TypeError):
        Usage() + 1  # type: ignore[operator]


def test_what_is_computed_from_a_usage():
    assert Usage(10, 3, 4, 5).uncached_input_tokens == 1
    assert Usage(10, 3, 40).uncached_input_tokens == 0
    assert Usage(10, 3).uncached_input_tokens == 10
    assert Usage(None, 3, 4).uncached_input_tokens is None
    assert [Usage(10, 3).total_tokens, Usage(10).total_tokens, Usage(None, 3).total_tokens] == [13, 10, 3]
    assert Usage().total_tokens is None


@pytest.mark.fuzz
@given(st.lists(USAGES, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_a_sum_does_not_matter(usages: list[Usage], random: Any):
    shuffled = random.sample(usages, len(usages))
    middle = random.randint(0, len(usages))
    assert total(shuffled) == total(usages) == total([total(usages[:middle]), total(usages[middle:])])


def test_observe_totals_differences_of_cumulative_counters():
    first, second = Usage(100, 20, 0), Usage(250, 20, 30, None, 4)
    assert first.minus(Usage()) == Usage(100, 20), "a cached count that is not positive is None, not 0"
    assert second.minus(first) == Usage(150, 0, 30, None, 4), "input and output that did not grow are 0"


def test_observe_totals_of_counters_that_go_back_or_are_missing():
    assert Usage(30, 25, 5).minus(Usage(100, 20, 9)) == Usage(None, 5, incomplete=True)
    assert Usage(None, 25).minus(Usage(100, 20)) == Usage(None, 5, incomplete=True)
    assert Usage(130, 25, 5).minus(Usage(100, 20, 9)) == Usage(30, 5), "only cached tokens went back"
    assert Usage(130, 25, incomplete=True).minus(Usage(100, 20)) == Usage(30, 5, incomplete=True)


def test_the_base_of_the_next_difference_keeps_what_a_reading_does_not_know():
    base = Usage(100, 20, 9)
    assert Usage(None, 25).over(base) == Usage(100, 25, 9)
    assert Usage(30, 25, 5).over(base) == Usage(30, 25, 5), "a counter that was reset counts from where it is"
    assert Usage(150, 30).minus(Usage(None, 25).over(base)) == Usage(50, 5), "nothing is counted twice"


@pytest.mark.fuzz
@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999), st.integers(0, 99)), max_size=8))
def test_differences_add_up_to_the_last_reading(steps: list[tuple[int, int, int]]):
    base, found, last = Usage(), Usage(), Usage()
    for given_, made, read in steps:
        last = Usage(
            (last.input_tokens or 0) + given_, (last.output_tokens or 0) + made, (last.cache_read_tokens or 0) + read
        )
        found += last.minus(base)
        base = last.over(base)
    assert (found.input_tokens, found.output_tokens) == (last.input_tokens, last.output_tokens)
    assert (found.cache_read_tokens or 0) == (last.cache_read_tokens or 0)
    assert not found.incomplete


@pytest.mark.fuzz
@given(st.lists(USAGES, max_size=6))
def test_differences_of_any_readings_are_counts(readings: list[Usage]):
    base = Usage()
    for reading in readings:
        added = reading.minus(base)
        assert all(value is None or value >= 0 for value in (getattr(added, name) for name in COUNTS))
        assert 0 not in (added.cache_read_tokens, added.cache_write_tokens, added.reasoning_tokens)
        assert added.incomplete or None not in (added.input_tokens, added.output_tokens)
        base = reading.over(base)


# --- cost


@pytest.mark.parametrize(
    ("given_", "amount"), [(3, "3"), ("0.10", "0.10"), (0.1, "0.1"), (Decimal("1e-7"), "1E-7"), (0, "0")]
)
def test_an_amount_is_taken_exactly(given_: Any, amount: str):
    assert str(Cost(given_).amount) == amount


@pytest.mark.parametrize(
    "amount", [-1, "-0.01", math.nan, math.inf, "NaN", "sNaN", "free", "", None, True, 2**53, [], 1j]
)
def test_an_amount_that_is_none_is_refused(amount: Any):
    with pytest.raises(ConfigurationError, match=r"Cost\(amount="):
        Cost(amount)


@pytest.mark.parametrize("currency", ["usd", "US", "USDT", "", "U$D", "ÄÖÜ", None, 7])
def test_a_currency_is_a_code_of_three_capitals(currency: Any):
    with pytest.raises(ConfigurationError, match=r"Cost\(currency="):
        Cost(1, currency)


def test_source_and_table_are_checked():
    with pytest.raises(ConfigurationError, match="provider, estimated, simulated"):
        Cost(1, source="guess")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="price table"):
        Cost(1, source="estimated", table=7)  # type: ignore[arg-type]


def test_a_cost_is_a_value():
    cost = Cost("0.5", "EUR", "estimated", "t-1")
    assert cost == Cost(Decimal("0.50"), currency="EUR", source="estimated", table="t-1")
    assert hash(cost) == hash(Cost("0.50", "EUR", "estimated", "t-1"))
    assert pickle.loads(pickle.dumps(cost)) == cost
    assert replace(cost, amount=Decimal(1)) == Cost(1, "EUR", "estimated", "t-1")
    assert str(Cost(Decimal("-0")).amount) == "0"
    with pytest.raises(AttributeError):
        cost.amount = Decimal(2)  # type: ignore[misc]


def test_differences_of_a_cumulative_cost():
    assert Cost("0.3").minus(None) == Cost("0.3")
    assert Cost("0.3").minus(Cost("0.1")) == Cost("0.2")
    assert Cost("0.3").minus(Cost("0.3")) is None, "not positive is None"
    assert Cost("0").minus(None) is None
    assert Cost("0.3").minus(Cost("0.4")) is None
    assert Cost("0.3").minus(Cost("0.1", "EUR")) is None
    assert Cost("0.3").minus(Cost("0.1", source="estimated")) is None


def test_F7_unpriced_is_counted_and_never_zero():  # noqa: N802  # the id of the case
    totals = CostTotals().plus(None, unpriced=1)
    assert totals.amounts == {}
    assert (totals.unpriced, totals.incomplete) == (1, True)
    free = CostTotals().plus(Cost(0))
    assert free.amounts == {("USD", "provider"): Decimal(0)}
    assert not free.incomplete


def test_sources_and_currencies_are_never_summed():
    totals = CostTotals().plus(Cost("0.1")).plus(Cost("0.2")).plus(Cost("0.4", source="estimated")).plus(Cost(1, "EUR"))
    assert totals.amounts == {
        ("USD", "provider"): Decimal("0.3"),
        ("USD", "estimated"): Decimal("0.4"),
        ("EUR", "provider"): Decimal(1),
    }
    assert (totals.in_currency("USD"), totals.in_currency("GBP")) == (Decimal("0.7"), 0)


def test_what_is_missing_stays_marked_in_a_sum():
    assert (CostTotals(partial=True) + CostTotals().plus(Cost(1))).incomplete
    assert (CostTotals(unpriced=2) + CostTotals(unpriced=3)).unpriced == 5
    with pytest.raises(TypeError):
        CostTotals() + 1  # type: ignore[operator]


def test_sums_of_cost_do_not_depend_on_the_callers_decimal_context():
    with decimal.localcontext(decimal.Context(prec=2)):
        totals = CostTotals().plus(Cost("1.2345678")).plus(Cost("1000000.0000001"))
        assert totals.in_currency("USD") == Decimal("1000001.2345679")
        assert Cost("1.2345678").minus(Cost("1.0000001")) == Cost("0.2345677")


@pytest.mark.fuzz
@given(st.lists(COSTS, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_costs_does_not_matter(costs: list[Cost], random: Any):
    def summed(some: list[Cost]) -> CostTotals:
        return sum((CostTotals().plus(cost) for cost in some), CostTotals())

    middle = random.randint(0, len(costs))
    shuffled = random.sample(costs, len(costs))
    assert summed(shuffled) == summed(costs) == summed(costs[:middle]) + summed(costs[middle:])


# --- budgets


def test_a_budget_is_spent_when_what_is_used_has_reached_it():
    budget = Budget(total_tokens=5000)
    assert budget.exceeded(Usage(4000, 999), CostTotals(), 9) is None
    assert budget.exceeded(Usage(4000, 1000), CostTotals(), 9) == "total_tokens: 5000 of 5000"
    assert budget.exceeded(Usage(4200, 1000), CostTotals(), 9) == "total_tokens: 5200 of 5000"
    assert budget.exceeded(Usage(), CostTotals(), 9) is None


def test_every_limit_of_a_budget():
    spent = CostTotals().plus(Cost("0.002", source="estimated")).plus(Cost("0.001")).plus(Cost(9, "EUR"))
    usage = Usage(10, 3)
    assert Budget(input_tokens=10).exceeded(usage, spent, 2) == "input_tokens: 10 of 10"
    assert Budget(output_tokens=3).exceeded(usage, spent, 2) == "output_tokens: 3 of 3"
    assert Budget(requests=2).exceeded(usage, spent, 2) == "requests: 2 of 2"
    assert Budget(cost=Cost("0.003")).exceeded(usage, spent, 2) == "cost: 0.003 USD of 0.003 USD"
    assert Budget(cost=Cost("0.0031"), requests=3, total_tokens=14).exceeded(usage, spent, 2) is None


@pytest.mark.parametrize("name", ["total_tokens", "input_tokens", "output_tokens", "requests"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "7", True, math.inf])
def test_a_limit_is_a_count(name: str, value: Any):
    with pytest.raises(ConfigurationError, match=rf"Budget\({name}="):
        Budget(**{name: value})


@pytest.mark.parametrize("cost", [Cost(0), 5, "5 USD"])
def test_a_cost_limit_is_above_zero(cost: Any):
    with pytest.raises(ConfigurationError, match=r"Budget\(cost="):
        Budget(cost=cost)


def test_a_budget_without_a_limit_is_refused():
    with pytest.raises(ConfigurationError, match="at least one limit"):
        Budget()


def test_the_table_helper_marks_what_is_unknown():
    assert tokens(None, 3).incomplete
    assert not tokens(5, 3).incomplete
