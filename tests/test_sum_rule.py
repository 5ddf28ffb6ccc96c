"""The sum rule: deltas of steps = totals of runs = `gen_ai.usage.*` over all spans = the token metric, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopspan
from loopspan.testing import Captured
from loopspan.trajectory.run import RunView
from loopspan.usage import CostTotals, Usage, total
from projection.playing import playing
from projection.programs import ASKS, ASYNC_FORMS, PROGRAMS, SYNC_FORMS, Ask, Loop, Together

KINDS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read.input_tokens",
    "cache_write_tokens": "cache_write.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}
"""The fields of usage, and what the conventions call them."""


def asking(forms: list[str], inner: Any) -> st.SearchStrategy[Loop]:
    """Loops that mostly ask: alone, at the same time, in sub-agents."""
    parts = [ASKS, st.builds(Together, st.lists(ASKS, min_size=2, max_size=3).map(tuple))]
    actions = st.lists(st.one_of(parts if inner is None else [*parts, inner]), min_size=1, max_size=4).map(tuple)
    return st.builds(
        Loop,
        st.sampled_from(forms),
        actions,
        st.sampled_from(["return", "return", "raise", "cancel"]),
        explicit=st.booleans(),
        options=st.just({}),
        facts=st.just({}),
    )


TREES = asking(SYNC_FORMS, asking(SYNC_FORMS, asking(SYNC_FORMS, None))) | asking(
    ASYNC_FORMS, asking(ASYNC_FORMS + SYNC_FORMS, None)
)


def counts(usage: Usage) -> dict[str, int]:
    """The fields that are known."""
    return {name: value for name in KINDS if (value := getattr(usage, name)) is not None}


def closings(captured: Captured) -> Iterator[tuple[RunView, Any, list[Any]]]:
    """(run, event that closed it, events that closed its steps)."""
    for run in captured.runs:
        mine = [entry.event for entry in captured.entries if entry.run_id == run.run_id]
        (closed,) = [event for event in mine if event.name == "run_trace_closed"]
        yield run, closed, [event for event in mine if event.name == "step_closed"]


def observed(captured: Captured, run_id: str, *, outside: bool = False) -> list[Any]:
    """What the requests of a run used, or those outside of every step."""
    return [
        entry.event
        for entry in captured.entries
        if entry.run_id == run_id
        and entry.event.name == "usage_observed"
        and not (outside and entry.event.step is not None)
    ]


def summed(events: Any) -> dict[str, int]:
    """Sums of the fields that are known."""
    return counts(total(Usage(**{name: getattr(event, name) for name in KINDS}) for event in events))


def amounts(events: Any) -> Counter[tuple[str, str]]:
    """Decimal sums of the cost fields of events with totals."""
    sums: Counter[tuple[str, str]] = Counter()
    for event in events:
        for item in event.cost or ():
            sums[item["currency"], item["source"]] += Decimal(item["amount"])
    return sums


def seen(event: Any) -> Counter[tuple[str, str]]:
    """The cost of one observation."""
    return Counter({} if event.cost is None else {(event.currency, event.cost_source): Decimal(event.cost)})


def check_runs(captured: Captured) -> None:
    """Within each run: deltas and what lay outside of steps are the totals, in the record and in what reads it."""
    for run, closed, steps in closings(captured):
        outside = observed(captured, run.run_id, outside=True)
        assert summed([*steps, *outside]) == summed([closed]) == counts(run.usage)
        every = [run_step.usage for run_step in run.steps]
        assert counts(total([*every, *(Usage(**summed([event])) for event in outside)])) == counts(run.usage)
        money = amounts(steps)
        for event in outside:
            money.update(seen(event))
        assert money == amounts([closed]) == Counter(dict(run.cost.amounts))
        assert bool(closed.usage_incomplete) == run.usage.incomplete


def check_trees(captured: Captured) -> None:
    """Over runs: what a run says of its descendants is the sum of theirs."""
    runs = {run.run_id: (run, closed) for run, closed, _ in closings(captured)}
    for run_id, (run, closed) in runs.items():
        below = [other for other in runs.values() if _descends(other[0], run_id, runs)]
        assert counts(run.usage_with_descendants) == counts(total(r.usage for r, _ in [(run, closed), *below]))
        said = closed.descendants or {}
        known = {name: said[name] for name in KINDS if said.get(name) is not None}
        assert known == counts(total(r.usage for r, _ in below))
        assert _money(said.get("cost")) == sum((Counter(amounts([c])) for _, c in below), Counter())


def _money(items: Any) -> Counter[tuple[str, str]]:
    return Counter({(item["currency"], item["source"]): Decimal(item["amount"]) for item in items or ()})


def _descends(run: RunView, run_id: str, runs: dict[str, Any]) -> bool:
    parent = run.parent_run_id
    while parent is not None and parent != run_id:
        parent = runs[parent][0].parent_run_id
    return parent == run_id


def check_telemetry(captured: Captured) -> None:
    """Over everything: all spans, and the metrics."""
    everything = summed([event for run in captured.runs for event in observed(captured, run.run_id)])
    for field, name in KINDS.items():
        on_spans = [span.attributes.get(f"gen_ai.usage.{name}") for span in captured.spans]
        known = [value for value in on_spans if value is not None]
        assert (sum(known) if known else None) == everything.get(field)
        metric = captured.metric(f"gen_ai.client.inference.usage.{name}")
        assert metric.sum == everything.get(field, 0)
    check_cost(captured)


def check_cost(captured: Captured) -> None:
    """Money by currency and source: the totals exactly, the metric as a float."""
    costs = sum((run.cost for run in captured.runs), CostTotals())
    for (currency, source), amount in costs.amounts.items():
        wanted = {"loopspan.cost.currency": currency, "loopspan.cost.source": source}
        assert captured.metric("loopspan.cost", wanted).sum == pytest.approx(float(amount))
    counted = {
        (point.attributes["loopspan.cost.currency"], point.attributes["loopspan.cost.source"])
        for point in captured.metric("loopspan.cost").points
    }
    assert counted == costs.amounts.keys()


def check(program: Loop) -> None:
    """The rule, for one program."""
    with playing() as (player, captured):
        player.play(program)
        check_runs(captured)
        check_trees(captured)
        check_telemetry(captured)


@pytest.mark.fuzz
@given(TREES)
def test_deltas_totals_spans_and_metrics_agree_for_loops_that_ask(program: Loop):
    check(program)


@pytest.mark.fuzz
@given(PROGRAMS)
def test_deltas_totals_spans_and_metrics_agree_whatever_a_loop_does(program: Loop):
    check(program)


@pytest.mark.parametrize("usage", [Usage(output_tokens=5), Usage(input_tokens=5), Usage(), Usage(cache_read_tokens=1)])
def test_a_run_and_its_reader_agree_that_a_total_is_incomplete(usage: Usage):
    program = Loop("plain", (Ask(loopspan.Answer(usage=usage)),), "return", options={}, facts={})
    with playing() as (player, captured):
        player.play(program)
        ((run, closed, steps),) = closings(captured)
    assert closed.usage_incomplete is True
    assert [step.usage_incomplete for step in steps] == [True]
    assert run.usage.incomplete
