"""One decision a run (telemetry.md, *Sampling*): an unsampled run records nothing and keeps its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Decision, ParentBased, Sampler, SamplingResult

import loopspan
from loopspan import semconv
from loopspan.testing import Captured, TickingClock, capture
from projection.sample import everything
from projection.spans import of, ours


class Asked(Sampler):
    """Answers the same each time, and keeps what it was asked about."""

    def __init__(self, decision: Decision, attributes: dict[str, Any] | None = None) -> None:
        self.decision = decision
        self.added = attributes or {}
        self.names: list[str] = []
        self.seen: dict[str, Any] = {}

    def should_sample(
        self,
        parent_context: Any,
        trace_id: int,
        name: str,
        kind: Any = None,
        attributes: Any = None,
        links: Sequence[Any] | None = None,
        trace_state: Any = None,
    ) -> SamplingResult:
        """Decide."""
        self.names.append(name)
        self.seen = dict(attributes or {})
        return SamplingResult(self.decision, {**(attributes or {}), **self.added})

    def get_description(self) -> str:
        """What it is called."""
        return "Asked"


def test_the_sampler_is_asked_once_a_run_and_told_what_is_known_at_the_start():
    sampler = Asked(Decision.RECORD_AND_SAMPLE)
    with (
        capture(clock=TickingClock(), sampler=sampler),
        loopspan.context(conversation_id="c-1", subject="alice", attributes={"tier": "gold"}),
    ):
        everything()
    assert sampler.names == ["invoke_agent builder", "invoke_agent helper"]
    told = {key: sampler.seen[key] for key in (semconv.AGENT, semconv.CONVERSATION, semconv.SUBJECT, "tier")}
    assert told == {
        semconv.AGENT: "helper",
        semconv.CONVERSATION: "c-1",
        semconv.SUBJECT: "alice",
        "tier": "gold",
    }


def test_an_unsampled_run_exports_nothing_and_is_on_record_all_the_same():
    with capture(clock=TickingClock(), sampler=ALWAYS_OFF) as captured:
        assert everything() == "built"
    assert captured.spans == captured.open_spans() == []
    names = [entry.name for entry in captured.entries if entry.run_id == captured.entries[0].run_id]
    assert (names[0], names[-1], len(names)) == ("run_started", "run_trace_closed", 59)


def test_an_unsampled_run_keeps_its_rules():
    with (
        capture(clock=TickingClock(), sampler=ALWAYS_OFF, log_sinks=()),
        loopspan.agent_loop("agent", max_steps=1) as run,
    ):
        next(run.steps())
        with pytest.raises(loopspan.MaxStepsExceeded):
            next(run.steps())
        with pytest.raises(loopspan.UnknownTool):
            loopspan.Toolbox().call("rm", "{}")
        run.succeed()
    with pytest.raises(loopspan.RunClosed):
        run.succeed()


@pytest.mark.parametrize(("sampler", "recorded"), [(ParentBased(ALWAYS_ON), 2), (ParentBased(ALWAYS_OFF), 0)])
def test_spans_of_the_users_own_follow_the_decision(sampler: Sampler, recorded: int):
    with capture(clock=TickingClock(), sampler=sampler) as captured, loopspan.agent_loop("agent") as run:
        captured.tracer_provider.get_tracer("application").start_span("mine").end()
        run.succeed()
    assert len(captured.spans) == recorded
    assert len({span.context.trace_id for span in captured.spans}) == recorded // 2


def test_spans_of_the_users_own_know_the_trace_of_an_unsampled_run():
    with capture(clock=TickingClock(), sampler=ALWAYS_OFF) as captured, loopspan.agent_loop("agent") as run:
        mine = captured.tracer_provider.get_tracer("application").start_span("mine").get_span_context()
        run.succeed()
    assert mine.trace_id == captured.entries[0].trace_id != 0
    assert not mine.trace_flags.sampled


def test_a_run_that_is_recorded_and_not_sampled_reaches_processors_unsampled():
    with (
        capture(clock=TickingClock(), sampler=Asked(Decision.RECORD_ONLY)) as captured,
        loopspan.agent_loop("agent") as run,
    ):
        next(run.steps())
        run.succeed()
    assert [span.name for span in captured.spans] == ["step", "invoke_agent agent"]
    assert not any(span.context.trace_flags.sampled for span in captured.spans)


def test_what_the_sampler_adds_is_on_the_run():
    with capture(clock=TickingClock(), sampler=Asked(Decision.RECORD_AND_SAMPLE, {"sampled.by": "rule 1"})) as captured:
        everything()
    roots = of(ours(captured), "invoke_agent")
    assert [span.attributes["sampled.by"] for span in roots] == ["rule 1", "rule 1"]


def test_a_run_below_an_unsampled_caller_is_not_sampled(loopspan_capture: Captured):
    from opentelemetry.context import attach, detach
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    caller = SpanContext(0xABC, 0xDEF, True, TraceFlags(0))
    token = attach(set_span_in_context(NonRecordingSpan(caller)))
    try:
        everything()
    finally:
        detach(token)
    assert loopspan_capture.spans == []
    assert {entry.trace_id for entry in loopspan_capture.entries} == {0xABC}
