"""The seed on the observable loop: its program as it stands and the same scenarios on loopspan tell the same story."""

from __future__ import annotations

import subprocess
import sys
from functools import reduce
from types import ModuleType
from typing import Any

import pytest
from seed_documents import printed, promised
from seed_scenarios import (
    Fed,
    as_the_seed,
    names,
    pending_approval,
    read,
    resume_after_approval,
    run_agent,
    told,
    unknown_side_effect,
    unresolved,
)

import loopspan
from loopspan import Call, Lifecycle, StopReason, SuspendReason
from loopspan.lifecycle import NEW, advance
from loopspan.testing import CountingIds, TickingClock, capture


@pytest.fixture
def captured():
    with capture(clock=TickingClock(), ids=CountingIds()) as recorded:
        yield recorded


class Stuck:
    """A tool that always fails in a way that is worth another attempt."""

    def __init__(self, seed: ModuleType) -> None:
        self.seed = seed
        self.attempts = 0

    def run(self, arguments: dict[str, Any]) -> dict[str, str]:
        self.attempts += 1
        raise self.seed.RetryableError("still down")


class Restless:
    """A model that asks for the same tool at every turn."""

    def __init__(self, tool: str = "get_status") -> None:
        self.turn = 0
        self.tool = tool

    def generate(self, _: list[dict[str, Any]]) -> dict[str, Any]:
        self.turn += 1
        arguments = {"project": "demo"}
        return {"kind": "tool_call", "call_id": f"call_{self.turn}", "name": self.tool, "arguments": arguments}


def test_the_program_prints_what_the_document_says(loop_source: str):
    """The four summaries stand as comments in the document; a fresh interpreter prints the same."""
    ran = subprocess.run([sys.executable, "-c", loop_source], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert printed(ran.stdout) == promised(loop_source)
    assert len(promised(loop_source)) == 4


def test_the_successful_loop_has_the_seeds_events_and_summary(seed: ModuleType, captured):
    """End to end: one retried read, a result that is filled in, a final answer, ten simulated tokens a request."""
    assert run_agent(seed, seed.ScriptedModel(), seed.LocalStatusTool()) == "build is green"
    assert names(captured.entries, seed.demo["events"]) == seed.demo["events"]
    assert as_the_seed(captured.runs[0].summary(), seed.demo) == told(seed.demo)
    assert seed.demo["cost_metric"]["estimated_tokens"] == 20, "the seed's own figure, all of it simulated"


def test_the_seeds_own_loop_wrapped_from_outside_says_the_same(seed: ModuleType, captured):
    """Its unchanged `run_agent`, which repeats the tool itself: the failed entry is an attempt, not a retry of ours."""
    model, tool = seed.ScriptedModel(), seed.LocalStatusTool()
    model.generate = loopspan.model_request(read=read)(model.generate)
    call = loopspan.tool(call=lambda arguments: Call("get_status", arguments, "call_1"))
    tool.run = call(tool.run)
    loop = loopspan.agent_loop("seed", outcome=lambda end: end.result["stop_reason"])(seed.run_agent)
    theirs = loop(model, tool)
    assert theirs == seed.demo
    expected = ["tool_failed" if name == "tool_retry" else name for name in theirs["events"]]
    assert names(captured.entries, expected) == expected
    (run,) = captured.runs
    assert run.stop_reason is StopReason.SUCCESS
    assert [[attempt.outcome for attempt in one.attempts] for one in run.tool_calls] == [["failed", "ok"]]


def test_a_tool_that_is_not_known_closes_the_run(seed: ModuleType, captured):
    """Refused at the validation: the tool's body is never entered."""
    expected = seed.run_agent(Restless("drop_tables"), seed.LocalStatusTool())
    tool = seed.LocalStatusTool()
    with pytest.raises(loopspan.UnknownTool, match="drop_tables"):
        run_agent(seed, Restless("drop_tables"), tool)
    assert tool.attempts == 0
    assert names(captured.entries, expected["events"]) == expected["events"]
    assert as_the_seed(captured.runs[0].summary(), expected) == told(expected)


def test_a_loop_without_an_end_closes_max_steps(seed: ModuleType, captured):
    """Where the loop says what it fills in, also the last result is on record as filled in, as in the seed."""
    expected = seed.run_agent(Restless(), seed.LocalStatusTool())
    with pytest.raises(loopspan.MaxStepsExceeded):
        run_agent(seed, Restless(), seed.LocalStatusTool(), told=True)
    assert names(captured.entries, expected["events"]) == expected["events"]
    assert as_the_seed(captured.runs[0].summary(), expected) == told(expected)


def test_the_last_result_before_max_steps_is_not_claimed_as_filled_in(seed: ModuleType, captured):
    """Where it does not say so, no request came that could show it: the one event less is the truth (telemetry.md)."""
    expected = seed.run_agent(Restless(), seed.LocalStatusTool())["events"]
    with pytest.raises(loopspan.MaxStepsExceeded):
        run_agent(seed, Restless(), seed.LocalStatusTool())
    assert expected[-2:] == ["tool_result_backfilled", "run_trace_closed"]
    assert names(captured.entries, expected) == [*expected[:-2], "run_trace_closed"]


def test_attempts_that_are_used_up_close_retry_budget_exhausted(seed: ModuleType, captured):
    """The seed counts every failure as `tool_retry`; here the last one, not repeated, is only `tool_failed`."""
    expected = seed.run_agent(seed.ScriptedModel(), Stuck(seed))
    tool = Stuck(seed)
    with pytest.raises(loopspan.RetryBudgetExhausted):
        run_agent(seed, seed.ScriptedModel(), tool)
    assert tool.attempts == 2
    events = expected["events"]
    last = len(events) - 1 - events[::-1].index("tool_retry")
    expected["events"] = [*events[:last], *events[last + 1 :]]
    assert names(captured.entries, expected["events"]) == expected["events"]
    failed = ["tool_failed" if name == "tool_retry" else name for name in events]
    assert names(captured.entries, failed) == failed, "every failure is on record"
    assert as_the_seed(captured.runs[0].summary(), expected) == told(expected)


def state(run: Fed) -> tuple[Lifecycle | None, SuspendReason | None, StopReason | None]:
    found = run.recorder.state
    return found.lifecycle, found.suspend_reason, found.stop_reason


def test_a_pending_approval_suspends_and_resumes(seed: ModuleType, captured):
    """The same events; suspended after the request, running again after the recheck, at neither point closed."""
    run = pending_approval()
    waiting = len(seed.approval["events"])
    assert state(run) == (Lifecycle.SUSPENDED, SuspendReason.PENDING_APPROVAL, None)
    assert names(captured.entries, seed.approval["events"]) == seed.approval["events"]
    assert as_the_seed(captured.runs[0].summary(), seed.approval) == told(seed.approval)
    resume_after_approval(run)
    assert state(run) == (Lifecycle.RUNNING, None, None)
    assert names(captured.entries, seed.approval_trace.events) == seed.approval_trace.events
    assert names(captured.entries, seed.resumed["events"])[:waiting] == seed.approval["events"]
    assert as_the_seed(captured.runs[0].summary(), seed.resumed) == told(seed.resumed)
    assert [span.name for span in captured.open_spans()] == ["invoke_agent seed"], "the root lives on"


def test_an_unknown_side_effect_suspends_for_a_person(seed: ModuleType, captured):
    """First as unknown, then, since nobody can tell, as manual intervention: never as failed, never closed."""
    run = unknown_side_effect()
    assert state(run) == (Lifecycle.SUSPENDED, SuspendReason.MANUAL_INTERVENTION, None)
    assert names(captured.entries, seed.unknown["events"]) == seed.unknown["events"]
    assert as_the_seed(captured.runs[0].summary(), seed.unknown) == told(seed.unknown)
    assert "tool_failed" not in [entry.name for entry in captured.entries]
    assert [span.name for span in captured.open_spans()] == ["invoke_agent seed"], "the tool's spans are over"


def test_an_unresolved_side_effect_closes_the_run(seed: ModuleType, captured):
    """End to end in one process: the remote side is asked, cannot tell, and the run says so."""
    with pytest.raises(loopspan.UnresolvedSideEffect):
        unresolved()
    assert names(captured.entries, seed.unresolved["events"]) == seed.unresolved["events"]
    assert as_the_seed(captured.runs[0].summary(), seed.unresolved) == told(seed.unresolved)


@pytest.mark.parametrize("fed", [pending_approval, unknown_side_effect])
def test_folding_the_events_gives_the_state_again(captured, fed):
    """The lifecycle is a pure function of the events."""
    run = fed()
    assert reduce(advance, [entry.event for entry in captured.entries], NEW) == run.recorder.state


@pytest.mark.parametrize("reason", list(SuspendReason))
def test_what_the_run_waits_for_is_no_stop_reason(seed: ModuleType, reason: SuspendReason):
    """What the seed suspends for is what loopspan suspends for, and nothing of it closes a run."""
    assert reason.value in seed.SUSPEND_REASONS
    assert reason.value not in list(StopReason)


def test_every_stop_reason_of_the_seed_is_one(seed: ModuleType):
    """The seed's twelve; three more are for what real loops need."""
    assert set(StopReason) >= seed.FINAL_STOP_REASONS
    assert set(StopReason) - seed.FINAL_STOP_REASONS == {"model_failed", "budget_exhausted", "loop_error"}
