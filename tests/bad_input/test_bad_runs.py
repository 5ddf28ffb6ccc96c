"""Runs that end without a reason, need what is not there or are over; handles that are given something else."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest
from refusals import ENTERED, GUARDS, TOOLS, events, pay, refused

import loopspan
from loopspan import Answer, Approval, Cost, Lifecycle, StopReason, Usage
from loopspan.testing import Captured, capture

# why a run ends

REASONS = ["done", "", "SUCCESS", None, 5, ["success"], "pending_approval", "unknown_side_effect"]


@pytest.mark.parametrize("reason", REASONS, ids=repr)
def test_an_unknown_stop_reason(heard: Captured | None, reason: Any):
    """None of the fifteen: the error lists them. A reason to suspend closes nothing."""
    with loopspan.agent_loop("payer") as run:
        refused(lambda: run.stop(reason), loopspan.ConfigurationError, repr(reason), "max_steps", "loop_error")
        assert run.lifecycle is Lifecycle.RUNNING
        run.stop("max_steps", "turns")
    if heard is not None:
        assert (heard.runs[0].stop_reason, heard.runs[0].stop_detail) == (StopReason.MAX_STEPS, "turns")


def test_success_has_no_detail():
    with loopspan.agent_loop("payer") as run:
        refused(lambda: run.stop("success", "nearly"), loopspan.ConfigurationError, "'nearly'", "no detail")
        run.succeed()


@pytest.mark.parametrize("reason", ["done", None, "success", 5], ids=repr)
def test_an_unknown_reason_to_suspend(reason: Any):
    with loopspan.agent_loop("payer") as run:
        refused(lambda: run.suspend(reason), loopspan.ConfigurationError, repr(reason), "pending_approval")
        run.succeed()


@pytest.mark.parametrize("reason", ["pending_approval", "manual_intervention"])
def test_a_suspension_without_a_store(heard: Captured | None, reason: str):
    def block() -> None:
        with loopspan.agent_loop("payer") as run:
            run.suspend(reason)

    refused(block, loopspan.StoreRequired, "outlive this process", "store=", "durable=True")
    if heard is not None:
        assert heard.runs[0].stop_reason is StopReason.LOOP_ERROR


def test_a_block_that_is_left_undecided(heard: Captured | None):
    """Success is never assumed; what was open is ended with the run."""

    def block() -> None:
        with loopspan.agent_loop("payer") as run:
            next(run.steps())
            pay(5)

    refused(block, loopspan.RunNotClosed, "'payer'", "never assumed", "run.succeed()", "run.stop(reason)")
    if heard is not None:
        (run,) = heard.runs
        assert (run.stop_reason, run.stop_detail) == (StopReason.LOOP_ERROR, "not_closed")
        assert heard.open_spans() == []


def test_a_block_that_is_left_undecided_by_a_return(heard: Captured | None):
    def function() -> str:
        with loopspan.agent_loop("payer"):
            return "the caller never gets this"

    refused(function, loopspan.RunNotClosed, "'payer'")


# needs a store, needs a run


@pytest.mark.parametrize("form", ["function", "coroutine", "block"])
def test_a_durable_run_without_a_store(heard: Captured | None, form: str):
    """Refused when it would start: no run, no span, the loop's body not entered."""

    async def coroutine() -> None:
        ENTERED.append("the loop")

    def block() -> None:
        with loopspan.agent_loop("payer", durable=True):
            ENTERED.append("the loop")

    forms = {
        "function": loopspan.agent_loop("payer", durable=True)(lambda: ENTERED.append("the loop")),
        "coroutine": lambda: asyncio.run(loopspan.agent_loop("payer", durable=True)(coroutine)()),
        "block": block,
    }
    refused(forms[form], loopspan.StoreRequired, "'payer'", "durable=True", "store")
    assert ENTERED == []
    if heard is not None:
        assert heard.runs == []
        assert heard.spans == []


@pytest.mark.parametrize("through", ["toolbox", "direct"])
def test_an_approval_that_nobody_here_can_decide(heard: Captured | None, through: str):
    """Without `decide=` the wait would outlive the process: the call is over, the body not entered."""
    guarded = loopspan.tool(approval=Approval(expires_in=60))(pay.__wrapped__)  # type: ignore[attr-defined]
    tools = loopspan.Toolbox(guarded)

    @loopspan.agent_loop
    def loop() -> None:
        if through == "toolbox":
            tools.call("pay", {"amount": 5})
        guarded(5)

    refused(loop, loopspan.StoreRequired, "'pay'", "approval", "decide=", "store")
    assert ENTERED == []
    if heard is not None:
        (run,) = heard.runs
        assert run.stop_reason is StopReason.LOOP_ERROR
        assert [(call.outcome, call.entries) for call in run.tool_calls] == [("cancelled", 0)]


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS.keys())
def test_a_guarded_tool_outside_of_a_run(guard: dict[str, Any]):
    """Nothing could record who allowed it: refused, directly and through a Toolbox."""
    guarded = loopspan.tool(**guard)(pay.__wrapped__)  # type: ignore[attr-defined]
    refused(lambda: guarded(5), loopspan.NoActiveRun, "'pay'", "permission", "inside of a run")
    tools = loopspan.Toolbox(guarded)
    refused(lambda: tools.call("pay", {"amount": 5}), loopspan.NoActiveRun, "'pay'")
    assert ENTERED == []


def test_handles_outside_of_a_run():
    refused(loopspan.current_run, loopspan.NoActiveRun, "agent_loop", "carry")
    refused(loopspan.current_step, loopspan.NoActiveRun, "agent_loop")
    refused(loopspan.current_tool_call, loopspan.NoActiveRun, "body of a tool")
    refused(loopspan.tool_call("pay", {}).__enter__, loopspan.NoActiveRun, "'pay'", "agent_loop")


def test_a_step_before_the_first():
    with loopspan.agent_loop("payer") as run:
        refused(loopspan.current_step, loopspan.NoActiveRun, "no step is open", "run.steps()")
        run.succeed()


# a run that is over


class Over:
    """Everything that code may still hold of a run that is over, and the Context that it ran in."""

    def __init__(self) -> None:
        with loopspan.agent_loop("payer") as self.run:
            self.step = next(self.run.steps())
            with loopspan.tool_call("pay", {}, call_id="call_1") as self.call, self.call.attempt():
                pass
            self.context = contextvars.copy_context()
            self.run.succeed()

    def inside(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """`call` as left-over code of the run makes it: a task or a callback that outlives it."""
        return lambda: self.context.run(call)


WRITES: dict[str, Callable[[Over], Callable[[], Any]]] = {
    "stop": lambda over: lambda: over.run.stop("cancelled"),
    "succeed": lambda over: over.run.succeed,
    "another step": lambda over: lambda: next(over.run.steps()),
    "a parse error": lambda over: lambda: over.step.parse_error("raw", feedback="again"),
    "an attempt": lambda over: over.call.attempt,
    "a call as a block": lambda over: over.inside(loopspan.tool_call("pay", {}).__enter__),
    "a tool with a permission": lambda over: over.inside(lambda: loopspan.tool(**GUARDS["permission"])(entered)()),
    "a tool with an approval": lambda over: over.inside(lambda: loopspan.tool(**GUARDS["approval"])(entered)()),
    "a tool with an effect": lambda over: over.inside(lambda: loopspan.tool(effect="unsafe")(entered)()),
    "an effect by a Toolbox": lambda over: over.inside(
        lambda: loopspan.Toolbox(loopspan.tool("pay", effect="keyed")(entered)).call("pay", {})
    ),
}


def entered() -> None:
    ENTERED.append("a body")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_write_to_a_run_that_is_over(heard: Captured | None, write: Callable[[Over], Callable[[], Any]]):
    """Refused, and the log of the run stays as it was."""
    over = Over()
    before = list(heard.entries) if heard is not None else []
    error = refused(write(over), loopspan.RunClosed, "closed", "success")
    assert isinstance(error, loopspan.RunClosed)
    assert error.rule == "closed"
    assert ENTERED == []
    if heard is not None:
        assert heard.entries == before


def test_what_is_not_guarded_passes_a_run_that_is_over(heard: Captured | None):
    """A task that outlives its run was right before loopspan came: it is left alone, and leaves the log alone."""
    over = Over()
    before = list(heard.entries) if heard is not None else []
    assert over.inside(lambda: pay(5))() == "paid 5"
    assert over.inside(lambda: TOOLS.call("pay", {"amount": 6}))() == "paid 6"
    assert over.inside(loopspan.model_request(lambda: "an answer"))() == "an answer"
    if heard is not None:
        assert heard.entries == before


# handles that are given something else


def test_a_backfill_of_something_that_is_no_call():
    with loopspan.agent_loop("payer") as run:
        step = next(run.steps())
        refused(lambda: step.backfill("call_1", "paid"), loopspan.ConfigurationError, "'call_1'", "current_tool_call()")  # type: ignore[arg-type]
        run.succeed()


@pytest.mark.parametrize("feedback", [None, 5, ["again"]], ids=repr)
def test_a_parse_error_without_feedback(heard: Captured | None, feedback: Any):
    with loopspan.agent_loop("payer") as run:
        step = next(run.steps())
        refused(lambda: step.parse_error("raw", feedback=feedback), loopspan.ConfigurationError, repr(feedback), "text")
        run.succeed()
    if heard is not None:
        assert events(heard, "response_parse_error") == []


def test_a_parse_error_of_a_step_that_is_over(heard: Captured | None):
    """Its span has ended: nothing can be written to it any more, and the refusal is on record."""
    with loopspan.agent_loop("payer") as run:
        steps = run.steps()
        first, _ = next(steps), next(steps)
        error = refused(
            lambda: first.parse_error("raw", feedback="again"),
            loopspan.IllegalTransition,
            "step 1 is over",
            "2 is open",
        )
        assert isinstance(error, loopspan.IllegalTransition)
        assert error.rule == "past_step"
        run.succeed()
    if heard is not None:
        assert events(heard, "response_parse_error") == []
        assert [event.refused for event in events(heard, "transition_refused")] == ["response_parse_error"]


@pytest.mark.parametrize("reference", ["", None, 5], ids=repr)
def test_an_acceptance_without_a_reference(reference: Any):
    @loopspan.tool
    def order() -> None:
        loopspan.current_tool_call().accepted(reference)

    refused(loopspan.agent_loop(order), loopspan.ConfigurationError, repr(reference), "reference")


OBSERVED: dict[str, Callable[[Any], Any]] = {
    "an answer": lambda request: request.answer({"usage": {}}),
    "totals": lambda request: request.observe_totals({"input_tokens": 5}),
    "their cost": lambda request: request.observe_totals(Usage(input_tokens=5), cost=0.5),
}


@pytest.mark.parametrize("observe", OBSERVED.values(), ids=OBSERVED.keys())
def test_an_observation_of_another_type(heard: Captured | None, observe: Callable[[Any], Any]):
    """The request itself is not harmed: it is told at once, and goes on."""
    with loopspan.agent_loop("payer") as run:
        with loopspan.model_request(provider="p", model="m") as request:
            refused(lambda: observe(request), loopspan.ConfigurationError, "give a loopspan.")
            request.answer(Answer(usage=Usage(input_tokens=1, output_tokens=1), cost=Cost(1)))
        run.succeed()
    if heard is not None:
        assert heard.runs[0].usage.input_tokens == 1


def test_a_usage_with_fields_that_are_no_counts_is_unknown():
    """Numbers are observed, not typed in: one that is none costs neither the others nor the request."""
    with capture() as captured, loopspan.agent_loop("payer") as run:
        for _ in range(2):
            with loopspan.model_request(provider="p", model="m") as request:
                request.answer(Answer(usage=Usage(input_tokens="many", output_tokens=7)))  # type: ignore[arg-type]
        run.succeed()
    usage = captured.runs[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.incomplete) == (None, 14, True)
