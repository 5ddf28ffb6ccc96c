"""Cases, group outcome-truth, continued: loops that were cut, and what people and policies say."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

import loopspan
from facts import facts
from loopspan import Answer, Approval, Call, Decision, Toolbox
from loopspan.testing import TickingClock, capture
from ways import Witness, loop_of

UNSET, ERROR = StatusCode.UNSET, StatusCode.ERROR
OUTCOME, REASON = "loopspan.tool.outcome", "loopspan.validation.reason"
bodies: list[Any] = []


# D5: a loop that was cut is no success


@loopspan.model_request(model="m", read=lambda said: Answer(tool_calls=[Call(*call) for call in said]))
def ask_for(*calls: tuple[str, Any, str]) -> Any:
    """A model that asks for these calls."""
    return calls


@loopspan.tool
def look(where: str) -> str:
    """Look."""
    return where


def cut() -> str:
    """A loop of two turns whose last call is never made."""
    for turn in range(2):
        ask_for(("look", {"where": "here"}, f"{turn}a"), ("look", {"where": "there"}, f"{turn}b"))
        look("here")
        if turn == 0:
            look("there")
    return "not finished"


def by_the_option() -> None:
    """`max_steps`."""

    @loopspan.agent_loop("loop", max_steps=2)
    def loop() -> None:
        cut()
        ask_for()

    with pytest.raises(loopspan.MaxStepsExceeded, match="max_steps=2"):
        loop()


def by_explicit_steps() -> None:
    """`run.steps()`."""

    @loopspan.agent_loop("loop", max_steps=2)
    def loop() -> None:
        for step in loopspan.current_run().steps():
            ask_for(("look", {"where": "here"}, f"{step.number}a"), ("look", {"where": "there"}, f"{step.number - 1}b"))
            look("here")
            if step.number == 1:
                look("there")

    with pytest.raises(loopspan.MaxStepsExceeded, match="max_steps=2"):
        loop()


def by_the_handle() -> None:
    """The loop says so itself."""

    @loopspan.agent_loop("loop")
    def loop() -> str:
        result = cut()
        loopspan.current_run().stop("max_steps")
        return result

    assert loop() == "not finished"


def by_the_outcome() -> None:
    """A mapping of the loop's result."""
    loop = loopspan.agent_loop("loop", outcome=lambda end: "max_steps" if end.result == "not finished" else "success")
    assert loop(cut)() == "not finished"


def by_a_block() -> None:
    """A block."""
    with loopspan.agent_loop("loop") as run:
        cut()
        run.stop("max_steps")


@pytest.mark.parametrize("way", [by_the_option, by_explicit_steps, by_the_handle, by_the_outcome, by_a_block])
def test_D5_a_loop_that_was_cut_says_so_and_names_the_calls_that_wait(witness: Witness, way: Any):
    way()
    witness.ended("max_steps", runs=1)
    (closed,) = witness.events("run_trace_closed")
    assert closed.event.pending_calls == [{"tool": "look", "call_id": "1b"}]
    ((status, reason, error_type),) = facts(
        witness.captured, "invoke_agent loop", "loopspan.run.stop_reason", "error.type"
    )
    assert (status, reason) == (ERROR, "max_steps")
    assert error_type is not None
    assert witness.captured.metric("loopspan.run.closed", {"loopspan.run.stop_reason": "max_steps"}).sum == 1
    assert witness.captured.metric("loopspan.run.closed", {"loopspan.run.stop_reason": "success"}).sum == 0


def test_D5_a_loop_that_returns_in_silence_still_names_the_calls_that_wait(witness: Witness):
    witness.use(loop_of("plain", cut))
    (closed,) = witness.events("run_trace_closed")
    assert closed.event.pending_calls == [{"tool": "look", "call_id": "1b"}]


def test_D5_a_loop_that_made_every_call_names_none(witness: Witness):
    def loop() -> None:
        ask_for(("look", {"where": "here"}, "a"))
        look("here")
        ask_for()

    witness.use(loop_of("plain", loop))
    assert witness.events("run_trace_closed")[0].event.pending_calls is None


# D7, D8: what people and policies say


def by_permission(said: Any) -> Any:
    """A tool with a permission that answers like this."""
    return loopspan.tool("pay", permission=lambda arguments: said)(lambda to: bodies.append(to))


@pytest.mark.parametrize("said", ["access denied", False, None, 0, "", {"error": "access denied"}])
@pytest.mark.parametrize("through", ["raise", "return", "direct"])
def test_D7_a_denial_is_neither_a_success_nor_a_failure(witness: Witness, said: Any, through: str):
    bodies.clear()
    tool = by_permission(said)

    def loop() -> None:
        if through == "return":
            assert "not permitted" in Toolbox(tool).call("pay", {"to": "bob"}, on_error="return")
            return
        with pytest.raises(loopspan.PermissionDenied):
            tool("bob") if through == "direct" else Toolbox(tool).call("pay", {"to": "bob"})

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert bodies == []
    assert facts(witness.captured, "execute_tool pay", OUTCOME, "loopspan.tool.attempts") == [(UNSET, "denied", 0)]
    ((status, outcome, reason),) = facts(witness.captured, "validate pay", "loopspan.validation.outcome", REASON)
    assert (status, outcome) == (ERROR, "rejected")
    assert reason == ("access denied" if said == "access denied" else "not permitted")
    assert facts(witness.captured, "attempt pay") == []
    assert witness.captured.metric("loopspan.tool.calls", {OUTCOME: "denied"}).sum == 1


def test_D7_a_check_that_breaks_is_a_denial(witness: Witness):
    bodies.clear()

    def breaks(arguments: Any) -> bool:
        raise ConnectionError("policy server")

    tool = loopspan.tool("pay", permission=breaks)(lambda to: bodies.append(to))
    with loopspan.configure(strict=False), pytest.raises(loopspan.PermissionDenied):
        loopspan.agent_loop("loop")(lambda: tool("bob"))()
    assert bodies == []
    assert [run.stop_reason for run in witness.captured.runs] == ["permission_denied"]


def test_D7_a_denial_that_a_gate_returns_as_data_is_no_success(witness: Witness):
    @loopspan.tool("gate", failure=lambda result: result.get("error"))
    def gate() -> dict[str, str]:
        return {"error": "access denied"}

    witness.use(loop_of("plain", gate))
    assert facts(witness.captured, "execute_tool gate", OUTCOME, "error.type") == [(ERROR, "failed", "access denied")]


WAITS = {
    "approved": (lambda clock: True, None, "ok"),
    "denied": (lambda clock: Decision(False, "alice", "not today"), loopspan.ApprovalDenied, "denied"),
    "expired": (lambda clock: clock.advance(61) or True, loopspan.ApprovalExpired, "expired"),
}


@pytest.mark.parametrize("outcome", WAITS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_D8_a_wait_that_ran_out_is_no_ones_no(outcome: str, asynchronous: bool):
    bodies.clear()
    clock = TickingClock()
    decide, refusal, call_outcome = WAITS[outcome]

    async def later(request: Any) -> Any:
        await asyncio.sleep(0)
        return decide(clock)

    def at_once(request: Any) -> Any:
        return decide(clock)

    policy = Approval(expires_in=60, decide=later if asynchronous else at_once)
    tools = Toolbox(loopspan.tool("pay", approval=policy)(lambda to: bodies.append(to)))

    async def loop() -> None:
        if refusal is None:
            await tools.acall("pay", {"to": "bob"})
            return
        with pytest.raises(refusal):
            await (tools.acall("pay", {"to": "bob"}) if asynchronous else asyncio.to_thread(sync))

    def sync() -> None:
        tools.call("pay", {"to": "bob"})

    with capture(clock=clock) as captured:
        asyncio.run(loopspan.agent_loop("loop")(loop)())
    assert len(bodies) == (1 if outcome == "approved" else 0)
    assert facts(captured, "approval_wait pay", "loopspan.approval.outcome") == [(UNSET, outcome)]
    assert facts(captured, "execute_tool pay", OUTCOME) == [(UNSET, call_outcome)]
    assert captured.metric("loopspan.approval.wait", {"loopspan.approval.outcome": outcome}).count == 1
    (wait,) = [span for span in captured.spans if span.name == "approval_wait pay"]
    assert (wait.end_time - wait.start_time >= 61 * 10**9) is (outcome == "expired")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_D8_a_decision_that_never_comes_expires(witness: Witness, asynchronous: bool):
    bodies.clear()
    released = threading.Event()

    async def never(request: Any) -> bool:
        await asyncio.Event().wait()
        return True

    def never_blocking(request: Any) -> bool:
        return released.wait(10)

    policy = Approval(expires_in=0.05, decide=never if asynchronous else never_blocking)
    tools = Toolbox(loopspan.tool("pay", approval=policy)(lambda to: bodies.append(to)))

    @loopspan.agent_loop("loop")
    async def loop() -> None:
        if asynchronous:
            await tools.acall("pay", {"to": "bob"})
        else:
            tools.call("pay", {"to": "bob"})

    with pytest.raises(loopspan.ApprovalExpired):
        witness.use(loop)
    released.set()
    assert bodies == []
    witness.ended("approval_expired", runs=1)
    assert facts(witness.captured, "approval_wait pay", "loopspan.approval.outcome") == [(UNSET, "expired")]


@pytest.mark.parametrize(("decided", "outcome"), [(True, "approved"), (False, "denied"), (None, "pending")])
def test_D8_a_loop_that_asks_people_itself_tells_silence_from_a_no(
    witness: Witness, decided: bool | None, outcome: str
):
    def loop() -> None:
        with loopspan.human_wait("approval") as wait:
            if decided is not None:
                wait.decided(decided, by="alice")

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert facts(witness.captured, "approval_wait", "loopspan.approval.outcome") == [(UNSET, outcome)]
