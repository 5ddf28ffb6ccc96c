"""Properties of random runs: the RunLog, its spans, and the way back."""

from __future__ import annotations

import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import loopspan
from loopspan import Content, semconv
from loopspan._journal import Entry
from loopspan._sdk import FileSpanExporter
from loopspan.lifecycle import NEW, Lifecycle, Refusal, State, advance
from loopspan.telemetry._reproject import reproject
from loopspan.testing.capturing import Captured
from projection.playing import Player, playing
from projection.programs import PROGRAMS, Loop
from projection.spans import by_id, by_run, ours, pipeline, tracer_of, word

PARENTS = {
    "invoke_agent": {"invoke_agent", "step", "attempt", None},
    "step": {"invoke_agent"},
    "chat": {"invoke_agent", "step", "attempt"},
    "execute_tool": {"step", "attempt"},
    "validate": {"execute_tool"},
    "approval": {"execute_tool"},
    "attempt": {"execute_tool"},
    "reconcile": {"execute_tool"},
    "backfill": {"step"},
    "approval_wait": {"invoke_agent"},
}
"""Which span hangs below which."""

TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
TOKEN_ATTRIBUTES = (
    semconv.USAGE_INPUT,
    semconv.USAGE_OUTPUT,
    semconv.USAGE_CACHE_READ,
    semconv.USAGE_CACHE_WRITE,
    semconv.USAGE_REASONING,
)


def played(program: Loop, **settings: Any) -> tuple[Captured, Player]:
    """What is captured of `program`."""
    with playing(**settings) as (player, captured):
        player.play(program)
    return captured, player


# --- the RunLog and its spans


@given(PROGRAMS, st.sampled_from(Content))
def test_projecting_a_run_log_again_gives_the_same_spans(program: Loop, content: Content):
    captured, _ = played(program, content=content)
    provider, exporter = pipeline()
    for entries in by_run(captured.entries).values():
        reproject(entries, tracer_of(provider))
    assert by_id(exporter.get_finished_spans()) == by_id(ours(captured))


@given(PROGRAMS)
def test_reading_finished_spans_back_gives_the_same_run_log(program: Loop):
    captured, _ = played(program)
    log = loopspan.read_runlog(captured.spans)
    assert log.problems == []
    assert {run.run_id: list(run.log) for run in log.runs} == by_run(captured.entries)


@pytest.mark.parametrize("content", [False, True])
@given(PROGRAMS)
def test_reading_an_exported_file_back_gives_the_same_run_log(content: bool, program: Loop):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "spans.jsonl")
        with playing(content=content) as (player, captured):
            captured.tracer_provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
            player.play(program)
        log = loopspan.read_runlog(path)
        assert log.problems == []
        assert {run.run_id: list(run.log) for run in log.runs} == by_run(captured.entries)


# --- the lifecycle


def folded(entries: list[Entry]) -> list[State]:
    """The states of a run, the n-th after its n-th entry."""
    states = [NEW]
    for entry in entries:
        state = advance(states[-1], entry.event)
        assert not isinstance(state, Refusal), (entry, state)
        states.append(state)
    return states


@given(PROGRAMS)
def test_folding_a_run_log_gives_the_states_that_the_run_went_through(program: Loop):
    captured, player = played(program)
    states = {run_id: folded(entries) for run_id, entries in by_run(captured.entries).items()}
    for run_id, seq, state in player.states:
        assert states[run_id][seq] == state


@given(PROGRAMS)
def test_every_run_is_numbered_without_gaps_and_closed_once_at_its_end(program: Loop):
    captured, _ = played(program)
    for entries in by_run(captured.entries).values():
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert [entry.name for entry in entries].count("run_trace_closed") == 1
        assert entries[-1].name == "run_trace_closed"
        assert folded(entries)[-1].lifecycle is Lifecycle.CLOSED


@given(PROGRAMS)
def test_every_entry_into_a_body_is_answered_once(program: Loop):
    captured, _ = played(program)
    answers = ("tool_succeeded", "tool_failed", "unknown_side_effect")
    for entries in by_run(captured.entries).values():
        started, answered = (
            Counter((e.step, e.call_id, e.ordinal, e.attempt) for e in entries if e.name in names)
            for names in (("tool_started",), answers)
        )
        assert started == answered
        assert not started or set(started.values()) == {1}


# --- the tree


@given(PROGRAMS)
def test_every_span_is_ended_within_its_parent_and_hangs_where_the_tree_says(program: Loop):
    captured, _ = played(program)
    assert captured.open_spans() == []
    spans = {span.context.span_id: span for span in ours(captured)}
    for span in spans.values():
        parent = None if span.parent is None else spans[span.parent.span_id]
        assert (parent and word(parent)) in PARENTS[word(span)], (span.name, parent and parent.name)
        assert span.start_time <= span.end_time
        assert all(span.start_time <= event.timestamp <= span.end_time for event in span.events) or touched(program)
        if parent is not None:
            assert parent.start_time <= span.start_time, (span.name, parent.name)
            assert span.end_time <= parent.end_time, (span.name, parent.name)


def touched(program: Loop) -> bool:
    """Whether users' events, which have a clock of their own, may be on the spans."""
    return "touching=True" in repr(program)


@given(PROGRAMS)
def test_what_belongs_to_one_call_is_in_one_run_and_names_its_step(program: Loop):
    captured, _ = played(program)
    spans = {span.context.span_id: span for span in ours(captured)}
    for span in spans.values():
        assert span.attributes[semconv.RUN_ID]
        parent = None if span.parent is None else spans[span.parent.span_id]
        if parent is None or word(span) == "invoke_agent":
            continue
        assert span.attributes[semconv.RUN_ID] == parent.attributes[semconv.RUN_ID]
        if word(parent) != "invoke_agent":
            assert span.attributes[semconv.STEP_NUMBER] == parent.attributes[semconv.STEP_NUMBER]


# --- tokens and cost


@given(PROGRAMS)
def test_tokens_summed_over_all_spans_are_the_totals_of_all_runs_and_of_all_steps(program: Loop):
    captured, _ = played(program)
    stepless = {entry.run_id for entry in captured.entries if entry.name == "run_trace_closed" and not entry.steps}
    for name, attribute in zip(TOKENS, TOKEN_ATTRIBUTES, strict=True):
        naive = sum(span.attributes.get(attribute, 0) for span in captured.spans)
        closed = [entry for entry in captured.entries if entry.name == "run_trace_closed"]
        deltas = [entry for entry in captured.entries if entry.name == "step_closed"]
        field = f"{name}_tokens"
        assert naive == sum(getattr(entry, field) or 0 for entry in closed)
        within = sum(getattr(entry, field) or 0 for entry in closed if entry.run_id not in stepless)
        assert within == sum(getattr(entry, field) or 0 for entry in deltas)


@given(PROGRAMS)
def test_cost_summed_over_all_observations_is_the_cost_of_all_runs(program: Loop):
    captured, _ = played(program)
    observed: Counter[tuple[str, str]] = Counter()
    totals: Counter[tuple[str, str]] = Counter()
    for entry in captured.entries:
        if entry.name == "usage_observed" and entry.cost is not None:
            observed[entry.currency, entry.cost_source] += Decimal(entry.cost)
        for amount in (entry.cost or ()) if entry.name == "run_trace_closed" else ():
            totals[amount["currency"], amount["source"]] += Decimal(amount["amount"])
    assert totals == observed


@given(PROGRAMS)
def test_a_run_counts_the_use_of_its_sub_agents_apart_from_its_own(program: Loop):
    captured, _ = played(program)
    closed = {entry.run_id: entry for entry in captured.entries if entry.name == "run_trace_closed"}
    parents = {entry.run_id: entry.parent_run_id for entry in captured.entries if entry.name == "run_started"}
    below: Counter[str] = Counter()
    for run_id, entry in closed.items():
        at = parents[run_id]
        while at is not None:
            below[at] += entry.output_tokens or 0
            at = parents[at]
    for run_id, entry in closed.items():
        assert ((entry.descendants or {}).get("output_tokens") or 0) == below[run_id]
