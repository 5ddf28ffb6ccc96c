"""The metrics of telemetry.md: what each is, which attributes it has, and that no name from outside multiplies them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NoOpTracerProvider

import loopspan
from loopspan import _guard, semconv
from loopspan.telemetry import _instruments, _metrics
from loopspan.testing import TickingClock, capture
from metered import Metric, metered, price, run_everything, series

OPERATION = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}
NAMED = {"gen_ai.provider.name", "gen_ai.request.model"}
SPENT = OPERATION | {"gen_ai.token.modality"}
AGENT = {"gen_ai.agent.name"}
TOOL = {"gen_ai.tool.name"}
ERROR = {"error.type"}

SECONDS = [0.01 * 2**power for power in range(14)]
RUNS = [0.1 * 2**power for power in range(13)]
TOKENS = [4**power for power in range(14)]
WEEK = 7 * 86400

HISTOGRAMS: dict[str, tuple[str, Any, list[set[str]]]] = {
    "gen_ai.client.inference.duration": ("s", SECONDS, [OPERATION, OPERATION | ERROR]),
    "gen_ai.client.inference.operation.input_tokens": ("{token}", TOKENS, [OPERATION]),
    "gen_ai.client.inference.operation.output_tokens": ("{token}", TOKENS, [OPERATION]),
    "gen_ai.execute_tool.duration": ("s", SECONDS, [TOOL, TOOL | ERROR, ERROR]),
    "gen_ai.invoke_agent.duration": ("s", RUNS, [AGENT]),
    "gen_ai.invoke_agent.inference_calls": ("{call}", None, [AGENT]),
    "gen_ai.invoke_agent.tool_calls": ("{call}", None, [AGENT]),
    "loopspan.run.active.duration": ("s", RUNS, [AGENT | {"loopspan.run.stop_reason"}]),
    "loopspan.run.waiting": ("s", None, [AGENT | {"loopspan.run.suspend_reason"}]),
    "loopspan.step.duration": ("s", SECONDS, [AGENT]),
    "loopspan.step.tokens": ("{token}", TOKENS, [AGENT | {"gen_ai.token.type"}]),
    "loopspan.approval.wait": ("s", None, [TOOL | {"loopspan.approval.outcome"}, {"loopspan.approval.outcome"}]),
    "loopspan.concurrency.peak": ("{attempt}", None, [AGENT]),
}
FORMER: dict[str, tuple[str, Any, list[set[str]]]] = {
    "gen_ai.client.token.usage": ("{token}", TOKENS, [OPERATION | {"gen_ai.token.type"}]),
    "gen_ai.client.operation.duration": ("s", SECONDS, [OPERATION, OPERATION | ERROR]),
}
_USAGE = ("input", "output", "cache_read.input", "cache_write.input", "reasoning.output")
COUNTERS: dict[str, tuple[str, list[set[str]]]] = {
    **{f"gen_ai.client.inference.usage.{kind}_tokens": ("{token}", [SPENT]) for kind in _USAGE},
    "loopspan.run.started": ("{run}", [AGENT]),
    "loopspan.run.closed": ("{run}", [AGENT | {"loopspan.run.stop_reason"}]),
    "loopspan.tool.calls": ("{call}", [TOOL | {"loopspan.tool.outcome"}, {"loopspan.tool.outcome"}]),
    "loopspan.tool.attempts": (
        "{attempt}",
        [TOOL | {"loopspan.tool.outcome"}, TOOL | ERROR | {"loopspan.tool.outcome"}],
    ),
    "loopspan.side_effect.unknown": ("{effect}", [TOOL | {"loopspan.side_effect.resolution"}]),
    "loopspan.cost": ("{currency}", [NAMED | {"loopspan.cost.source", "loopspan.cost.currency"}]),
    "loopspan.cost.unpriced": ("{request}", [NAMED]),
    "loopspan.usage.unknown": ("{request}", [NAMED]),
    "loopspan.telemetry.produced": ("{item}", [{"loopspan.telemetry.kind"}]),
    "loopspan.telemetry.faults": ("{fault}", [{"loopspan.telemetry.kind"}]),
}
KEYS = {key for _, _, sets in [*HISTOGRAMS.values(), *FORMER.values()] for keys in sets for key in keys} | {
    key for _, sets in COUNTERS.values() for keys in sets for key in keys
}


@pytest.fixture(scope="module")
def both() -> dict[str, Metric]:
    """All metrics of a loop that touches each of them."""
    return of_everything("both")


def of_everything(version: str) -> dict[str, Metric]:
    """What `run_everything` and one fault of a hook give."""
    with capture(strict=False), metered(prices=price, semconv=version) as read:
        run_everything()
        _guard.faults["a hook"] += 1
        return read()


# --- the table


def test_there_are_the_metrics_of_the_table_and_no_other(both: dict[str, Metric]):
    assert both.keys() == HISTOGRAMS.keys() | FORMER.keys() | COUNTERS.keys()
    specs = _instruments.GENAI.keys() | _instruments.FORMER_NAMES.keys() | _instruments.OWN.keys()
    assert both.keys() == specs | {semconv.M_FAULTS}


@pytest.mark.parametrize("name", [*HISTOGRAMS, *FORMER])
def test_a_histogram_has_the_unit_the_boundaries_and_the_attributes_of_the_table(both: dict[str, Metric], name: str):
    unit, boundaries, keys = {**HISTOGRAMS, **FORMER}[name]
    metric = both[name]
    assert (metric.kind, metric.unit) == ("histogram", unit)
    assert metric.keys == set(map(frozenset, keys))
    for point in metric.points.values():
        if boundaries is not None:
            assert list(point.explicit_bounds) == pytest.approx(boundaries)


@pytest.mark.parametrize("name", ["loopspan.run.waiting", "loopspan.approval.wait"])
def test_waits_are_told_apart_up_to_a_week(both: dict[str, Metric], name: str):
    for point in both[name].points.values():
        assert point.explicit_bounds[-1] == WEEK
        assert point.explicit_bounds[0] <= 1


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_has_the_unit_and_the_attributes_of_the_table(both: dict[str, Metric], name: str):
    unit, keys = COUNTERS[name]
    metric = both[name]
    assert (metric.kind, metric.unit) == ("sum", unit)
    assert metric.keys == set(map(frozenset, keys))


def test_every_metric_says_how_it_counts(both: dict[str, Metric]):
    assert [name for name, metric in both.items() if len(metric.description.split()) < 4] == []
    assert len({metric.description for metric in both.values()}) >= len(both) - 1, "the two durations of one attempt"


def test_the_former_version_has_the_former_names_only():
    former = of_everything("1.41")
    assert {name for name in former if name.startswith("gen_ai.")} == FORMER.keys()
    assert {name for name in former if name.startswith("loopspan.")} == {
        name for name in [*HISTOGRAMS, *COUNTERS] if name.startswith("loopspan.")
    }


def test_the_current_version_has_none_of_the_former_names():
    assert of_everything("genai-0.1").keys() == HISTOGRAMS.keys() | COUNTERS.keys()


# --- values


def test_durations_are_those_of_the_spans():
    with capture(clock=TickingClock(), strict=False) as captured, metered(prices=price) as read:
        run_everything()
        metrics = read()

    def seconds(name: str) -> float:
        spans = [span for span in captured.spans if span.name.split()[0] == name]
        return sum(span.end_time - span.start_time for span in spans) / 1_000_000_000

    for metric, span in (
        ("gen_ai.client.inference.duration", "chat"),
        ("gen_ai.execute_tool.duration", "execute_tool"),
        ("gen_ai.invoke_agent.duration", "invoke_agent"),
        ("loopspan.step.duration", "step"),
    ):
        measured = sum(point.sum for point in metrics[metric].points.values())
        assert measured == pytest.approx(seconds(span))
        assert measured > 0


@pytest.mark.parametrize(
    ("usage", "recorded"),
    [
        (None, set()),
        ({"prompt_tokens": None, "completion_tokens": 5}, {"output"}),
        ({"prompt_tokens": 7, "completion_tokens": "5"}, {"input"}),
        ({"prompt_tokens": 0, "completion_tokens": 0}, {"input", "output"}),
    ],
)
def test_unknown_tokens_are_recorded_nowhere(usage: Any, recorded: set[str]):
    with capture(), metered(semconv="both") as read:
        ask = loopspan.model_request(provider="p", model="m")(lambda: {"usage": usage})
        loopspan.agent_loop("agent")(ask)()
        metrics = read()
    for name in ("gen_ai.client.inference.usage.", "gen_ai.client.inference.operation."):
        assert {kind for kind in ("input", "output") if f"{name}{kind}_tokens" in metrics} == recorded
    for name in ("gen_ai.client.token.usage", "loopspan.step.tokens"):
        kinds = {dict(point)["gen_ai.token.type"] for point in metrics[name].points} if name in metrics else set()
        assert kinds == recorded
    silent = [point.value for point in metrics["loopspan.usage.unknown"].points.values()] if usage is None else []
    assert silent == ([1] if usage is None else [])
    assert (usage is None) == ("loopspan.usage.unknown" in metrics)


# --- names from outside


def test_no_id_is_an_attribute(both: dict[str, Metric]):
    used = {key for metric in both.values() for keys in metric.keys for key in keys}
    assert used == KEYS
    assert not [key for key in used if key.endswith((".id", "_id")) or ".id." in key]


def test_500_models_tools_agents_providers_and_errors_have_a_bounded_number_of_series():
    limit = _metrics.NAMES_LIMIT + 1

    def loop(number: int) -> None:
        loopspan.model_request(provider=f"p-{number}", model=f"m-{number}")(lambda: {"usage": {"input_tokens": 1}})()
        loopspan.tool(f"t-{number}", failure=lambda result: f"e-{number}")(lambda: "no")()

    with capture(), metered() as read:
        for number in range(500):
            loopspan.agent_loop(f"a-{number}")(loop)(number)
        metrics = read()
    for metric in metrics.values():
        assert len(metric.points) <= limit
    other = {"gen_ai.agent.name": semconv.OTHER}
    (rest,) = [p.value for s, p in metrics["loopspan.run.started"].points.items() if dict(s) == other]
    assert rest == 500 - _metrics.NAMES_LIMIT
    asked = metrics["gen_ai.client.inference.usage.input_tokens"].points
    assert sum(point.value for point in asked.values()) == 500, "the rest is counted"
    assert max(point.value for point in asked.values()) == 500 - _metrics.NAMES_LIMIT
    called = metrics["loopspan.tool.calls"].points
    assert sum(p.value for s, p in called.items() if dict(s)["gen_ai.tool.name"] == semconv.OTHER) == rest


def test_500_tools_that_are_not_in_the_allowlist_are_one_series():
    tools = loopspan.Toolbox(loopspan.tool("listed")(lambda: 1))

    def loop() -> None:
        for number in range(500):
            tools.call(f"made-up-{number}", {}, call_id=f"c{number}", on_error="return")

    with capture(), metered() as read:
        loopspan.agent_loop("agent")(loop)()
        metrics = read()
    ((attributes, point),) = metrics["loopspan.tool.calls"].points.items()
    assert (dict(attributes), point.value) == ({"loopspan.tool.outcome": "rejected"}, 500)
    assert metrics["gen_ai.execute_tool.duration"].keys == {frozenset(ERROR)}


def test_300_runs_have_the_series_of_10():
    with capture(strict=False) as captured, metered(prices=price) as read:
        for _ in range(10):
            run_everything()
        few = series(read())
        captured.entries.clear()
        for _ in range(290):
            run_everything()
        assert series(read()) == few


# --- exemplars, sampling, flushing


def test_exemplars_carry_the_trace_of_their_run():
    with capture(strict=False) as captured, metered(prices=price, semconv="both") as read:
        run_everything()
        metrics = read()
    (trace_id,) = {span.get_span_context().trace_id for span in captured.spans}
    spans = {span.get_span_context().span_id for span in captured.spans}
    metrics.pop(semconv.M_FAULTS, None)
    for name, metric in metrics.items():
        for point in metric.points.values():
            assert point.exemplars, name
            assert {exemplar.trace_id for exemplar in point.exemplars} == {trace_id}
            assert {exemplar.span_id for exemplar in point.exemplars} <= spans


@pytest.mark.parametrize("way", ["not sampled", "no tracer"])
def test_metrics_do_not_depend_on_spans(way: str):
    expected = of_everything("both")
    sampler = ALWAYS_OFF if way == "not sampled" else None
    with ExitStack() as stack:
        captured = stack.enter_context(capture(sampler=sampler, strict=False))
        if way == "no tracer":
            stack.enter_context(loopspan.configure(tracer_provider=NoOpTracerProvider()))
        read = stack.enter_context(metered(prices=price, semconv="both"))
        run_everything()
        _guard.faults["a hook"] += 1
        found = read()
    assert captured.spans == []
    assert series(found) == series(expected)
    for name in ("gen_ai.client.inference.usage.input_tokens", "loopspan.tool.calls", "loopspan.run.closed"):
        assert {s: p.value for s, p in found[name].points.items()} == {
            s: p.value for s, p in expected[name].points.items()
        }


def test_nothing_is_metered_where_loopspan_is_disabled():
    with capture(), metered(enabled=False) as read:
        run_everything()
        assert read().keys() <= {semconv.M_FAULTS}


def test_a_long_run_is_counted_on_the_way_and_at_its_end():
    every, seen = _metrics.FLUSH_STEPS, []

    def used(metrics: dict[str, Metric]) -> int:
        metric = metrics.get("gen_ai.client.inference.usage.output_tokens")
        return sum(point.value for point in metric.points.values()) if metric else 0

    with capture(), metered() as read:
        ask = loopspan.model_request(model="m")(lambda number: {"usage": {"output_tokens": 1, "input_tokens": 0}})

        def loop() -> None:
            for number in range(2 * every + 5):
                ask(number)
                seen.append(used(read()))

        loopspan.agent_loop("agent")(loop)()
        assert used(read()) == 2 * every + 5
    assert seen == [0] * every + [every] * every + [2 * every] * 5
