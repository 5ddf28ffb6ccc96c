"""What a refusal is for the caller, and what stands in the run's log."""

from __future__ import annotations

import pytest

import loopspan
from lifecycle.facts import MINUTE, asked, decided, opened, resumed, step
from loopspan import events as e
from loopspan._scopes.run import Run
from loopspan.errors import DecisionConflict, IllegalTransition, RunClosed
from loopspan.testing import capture
from loopspan.testing.capturing import Captured


def refused(captured: Captured) -> list[tuple[str, str]]:
    """The refusals on record: which event, by which rule."""
    return [(entry.refused, entry.rule) for entry in captured.entries if entry.name == "transition_refused"]


def record(run: Run, *events: e.Event) -> None:
    for event in events:
        run.recorder.add(event, run.handle)


def test_a_refusal_raises_and_is_recorded_and_the_run_goes_on():
    with capture() as captured, loopspan.agent_loop("loop") as run:
        with pytest.raises(IllegalTransition, match="run_resumed refused: only a suspended run can resume") as raised:
            record(run, resumed())
        record(run, step(1))
        run.succeed()
    assert (raised.value.event, raised.value.rule) == ("run_resumed", "not_suspended")
    assert refused(captured) == [("run_resumed", "not_suspended")]
    names = [entry.name for entry in captured.entries]
    assert names == ["run_started", "transition_refused", "step_started", "run_trace_closed"]
    assert [entry.seq for entry in captured.entries] == [1, 2, 3, 4]


def test_a_refusal_of_a_closed_run_raises_and_is_not_recorded():
    with capture() as captured:
        with loopspan.agent_loop("loop") as run:
            run.succeed()
        with pytest.raises(RunClosed, match=r"closed \(success\) .*: start another run"):
            record(run, step(1))
    assert refused(captured) == []
    assert captured.entries[-1].name == "run_trace_closed"


def test_a_second_decision_is_a_conflict():
    with capture() as captured, loopspan.agent_loop("loop") as run:
        record(run, opened(needs_approval=True), asked(expires_at=MINUTE), decided())
        with pytest.raises(DecisionConflict, match="the first decision stands"):
            record(run, decided(approved=False))
        run.stop("cancelled")
        record(
            run, e.ToolCallClosed(step=1, call_id="call_1", ordinal=1, tool="tool_1", outcome="cancelled", attempts=0)
        )
    assert refused(captured) == [("approval_decision_received", "decision_conflict")]
