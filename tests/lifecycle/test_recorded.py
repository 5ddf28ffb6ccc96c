"""What a refusal is for the caller, and what stands in the run's log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import loopspan
from lifecycle.facts import MINUTE, asked, decided, opened, resumed, step
from loopspan import events as e
from loopspan._scopes.run import Run
from loopspan.errors import BoundaryRefused, DecisionConflict, IllegalTransition, RunClosed
from loopspan.testing import TickingClock, capture
from loopspan.testing.capturing import Captured
from loopspan.values import Approval, ApprovalRequest, Intent, Reconciled, Retry


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


# an approved call whose effect did not happen


class Payment:
    """A tool that loses its answer once, and a person who is asked before."""

    def __init__(self, decide: Callable[[], bool] = lambda: True, **options: Any) -> None:
        self.entered = 0
        self.asked = 0
        self.resource = "1"

        def say(request: ApprovalRequest) -> bool:
            self.asked += 1
            return decide()

        approval = Approval(expires_in=60, decide=say, resource=lambda arguments: self.resource)
        again = Retry(max_attempts=3, wait=0)
        self.tool = loopspan.tool(effect="reconcilable", approval=approval, retry=again, reconcile=self.not_done)(
            self.pay
        )
        self.meanwhile: Callable[[], object] = lambda: None

    def pay(self, amount: int) -> int:
        self.entered += 1
        if self.entered == 1:
            raise ConnectionError("the answer was lost")
        return amount

    def not_done(self, intent: Intent) -> Reconciled[int]:
        self.meanwhile()
        return Reconciled.not_committed()

    def names(self, captured: Captured) -> list[str]:
        """What is on record of approvals and attempts."""
        kinds = ("approval_", "tool_started", "unknown", "reconcile_resolved")
        spans = ("approval_span_closed", "reconcile_span_closed")
        return [x.name for x in captured.entries if x.name.startswith(kinds) and x.name not in spans]


ASKED = ["approval_requested", "approval_decision_received", "approval_recheck"]
LOST = [*ASKED, "tool_started", "unknown_side_effect", "reconcile_resolved", "approval_recheck"]


def run_loop(body: Callable[[], Any], **capturing: Any) -> tuple[Any, Captured]:
    with capture(**capturing) as captured, contextlib.suppress(BoundaryRefused):
        loopspan.agent_loop("payer")(body)()
    return captured.entries[-1].event, captured


def test_what_was_approved_is_looked_at_again_before_the_next_attempt():
    payment = Payment()
    closed, captured = run_loop(lambda: payment.tool(5))
    assert payment.names(captured) == [*LOST, "tool_started"]
    assert (payment.entered, payment.asked, closed.stop_reason) == (2, 1, "success")


def test_what_has_changed_meanwhile_is_asked_for_anew():
    payment = Payment()
    payment.meanwhile = lambda: setattr(payment, "resource", "2")
    closed, captured = run_loop(lambda: payment.tool(5))
    assert payment.names(captured) == [*LOST, "approval_superseded", *ASKED, "tool_started"]
    assert (payment.entered, payment.asked, closed.stop_reason) == (2, 2, "success")


def test_a_person_may_say_no_the_second_time():
    answers = iter((True, False))
    payment = Payment(lambda: next(answers))
    payment.meanwhile = lambda: setattr(payment, "resource", "2")
    closed, captured = run_loop(lambda: payment.tool(5))
    assert payment.names(captured) == [*LOST, "approval_superseded", *ASKED[:2], "approval_denied"]
    assert (payment.entered, payment.asked, closed.stop_reason) == (1, 2, "approval_denied")


def test_an_approval_may_have_expired_meanwhile():
    payment, clock = Payment(), TickingClock()
    payment.meanwhile = lambda: clock.advance(61)
    closed, captured = run_loop(lambda: payment.tool(5), clock=clock)
    assert payment.names(captured) == [*LOST[:-1], "approval_expired"]
    assert (payment.entered, payment.asked, closed.stop_reason) == (1, 1, "approval_expired")


def test_what_is_to_be_sent_again_is_unknown_until_it_was():
    """Cancelled while it waits for the attempt with the same key: nobody knows what the first one did."""
    waiting = asyncio.Event()

    def a_minute(attempt: int) -> float:
        waiting.set()
        return 60

    @loopspan.tool(effect="keyed", retry=Retry(max_attempts=2, wait=a_minute))
    async def pay(amount: int) -> int:
        raise ConnectionError("the answer was lost")

    @loopspan.agent_loop("payer")
    async def payer() -> None:
        await pay(5)

    async def cancelled() -> None:
        task = asyncio.ensure_future(payer())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with capture() as captured:
        asyncio.run(cancelled())
    closed = captured.entries[-1].event
    assert (closed.stop_reason, closed.actor) == ("unresolved_side_effect", "not_durable")
