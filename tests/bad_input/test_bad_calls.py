"""What a model wrote and cannot be called: refused by name and rule, on record, the tool's body not entered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from refusals import ENTERED, TOOLS, events, pay, refused

import loopspan
from loopspan import Lifecycle, StopReason
from loopspan.testing import Captured, capture

NAMES = ["drop_tables", "", "PAY", "pay ", None, 5, ("pay",), ["pay"], {"name": "pay"}]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_an_unknown_tool(heard: Captured | None, name: Any):
    @loopspan.agent_loop
    def loop() -> None:
        TOOLS.call(name, {"amount": 5}, call_id="call_1")

    refused(loop, loopspan.UnknownTool, repr(name), "allowlist", "pay, send", "nothing was executed")
    assert ENTERED == []
    if heard is not None:
        (run,) = heard.runs
        assert run.stop_reason is StopReason.UNKNOWN_TOOL
        assert [(call.outcome, call.entries) for call in run.tool_calls] == [("rejected", 0)]
        (event,) = events(heard, "validation_rejected")
        assert (event.rejection, event.call_id) == ("unknown_tool", "call_1")
        assert "pay, send" in event.reason


ARGUMENTS = {
    "JSON that breaks off": ('{"amount": 5', "not JSON"),
    "no JSON at all": ("amount=5", "not JSON"),
    "JSON after words": ('Sure! {"amount": 5}', "not JSON"),
    "JSON that nests without an end": ("[" * 100_000, "not JSON"),
    "bytes that are no text": (b'{"amount": "\xff"}', "not JSON"),
    "a number too long for any machine": ('{"amount": 1' + "0" * 5000 + "}", "not JSON"),
    "a JSON array": ("[5]", "not a JSON object but list"),
    "a JSON number": ("5", "not a JSON object but int"),
    "JSON null": ("null", "not a JSON object but NoneType"),
    "JSON text": ('"amount"', "not a JSON object but str"),
    "JSON of JSON": ('"{\\"amount\\": 5}"', "not a JSON object but str"),
    "None": (None, "not a JSON object but NoneType"),
    "a list": ([("amount", 5)], "not a JSON object but list"),
    "an object": (object(), "not a JSON object but object"),
    "nothing": ("", "amount: Field required"),
    "a missing field": ({"to": "bob"}, "amount: Field required"),
    "a surplus field": ({"amount": 5, "memo": "thanks"}, "memo: Extra inputs are not permitted"),
    "a field in other letters": ({"Amount": 5}, "amount: Field required"),
    "a wrong type": ({"amount": "five"}, "amount: Input should be a valid integer"),
    "a fraction": ('{"amount": 5.5}', "amount: Input should be a valid integer"),
    "null for a value": ('{"amount": null}', "amount: Input should be a valid integer"),
    "an object for a value": ({"amount": {"value": 5}}, "amount: Input should be a valid integer"),
    "two wrong types": ({"amount": [], "to": 5}, "to: Input should be a valid string"),
    "keys that are no text": ({5: "amount"}, "Keys should be strings"),
}


@pytest.mark.parametrize(("arguments", "why"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_arguments_that_do_not_fit(heard: Captured | None, arguments: Any, why: str):
    @loopspan.agent_loop
    def loop() -> None:
        TOOLS.call("pay", arguments, call_id="call_1")

    error = refused(loop, loopspan.ValidationRejected, "'pay'", why, "it takes amount, to", "body was not entered")
    assert isinstance(error, loopspan.ValidationRejected)
    assert why in error.reason
    assert ENTERED == []
    if heard is not None:
        (run,) = heard.runs
        assert run.stop_reason is StopReason.VALIDATION_ERROR
        assert [(call.outcome, call.entries) for call in run.tool_calls] == [("rejected", 0)]
        (event,) = events(heard, "validation_rejected")
        assert (event.rejection, event.stage) == ("validation_error", "proposal")
        assert why in event.reason


@pytest.mark.parametrize(("arguments", "why"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_arguments_of_an_asynchronous_tool(heard: Captured | None, arguments: Any, why: str):
    """The same rules where the call is awaited; this tool takes no `to`."""

    @loopspan.agent_loop
    async def loop() -> None:
        await TOOLS.acall("send", arguments)

    refused(lambda: asyncio.run(loop()), loopspan.ValidationRejected, "'send'", "it takes amount")
    assert ENTERED == []


def test_what_was_written_is_not_in_the_reason():
    """The reason says which rule is broken; values are content and stay out of it."""
    with capture(content=False) as captured:
        call = loopspan.agent_loop(lambda: TOOLS.call("pay", {"amount": "s3cret", "to": ["s3cret"]}))
        error = refused(call, loopspan.ValidationRejected, "amount", "to")
    assert "s3cret" not in str(error)
    assert "s3cret" not in "".join(span.to_json() for span in captured.spans)


@pytest.mark.parametrize(("name", "arguments"), [("drop", {}), ("pay", "{"), ("pay", {})])
def test_a_model_may_read_the_refusal_and_the_loop_goes_on(heard: Captured | None, name: str, arguments: Any):
    """`on_error="return"`: the text of the refusal, for the next request; the run is not over."""

    @loopspan.agent_loop
    def loop() -> str:
        said = TOOLS.call(name, arguments, on_error="return")
        assert said.startswith("Error: ")
        assert name in said
        assert ENTERED == []
        paid: str = TOOLS.call("pay", {"amount": 5})
        return paid

    assert loop() == "paid 5"
    assert ENTERED == [(5, "bob")]
    if heard is not None:
        (run,) = heard.runs
        assert run.stop_reason is StopReason.SUCCESS
        assert [call.outcome for call in run.tool_calls] == ["rejected", "ok"]


def test_a_direct_call_that_does_not_fit_raises_what_python_raises(heard: Captured | None):
    """The caller is a program and gets its TypeError; it is on record, and the body is not entered."""
    loop = loopspan.agent_loop(lambda: pay(amount=5, memo="thanks"))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="memo"):
        loop()
    assert ENTERED == []
    if heard is not None:
        assert [event.rejection for event in events(heard, "validation_rejected")] == ["validation_error"]


class Payment(BaseModel):
    """What the block below takes."""

    amount: int


@pytest.mark.parametrize("arguments", ["{", "[5]", None, {}, {"amount": "five"}, '{"amount": []}'], ids=repr)
def test_a_block_refuses_arguments_too(heard: Captured | None, arguments: Any):
    """`call.validate` refuses; an attempt after that is refused as well, also where the error was caught."""

    def block() -> None:
        with loopspan.agent_loop("payer") as run, loopspan.tool_call("pay", arguments, call_id="call_1") as call:
            refused(lambda: call.validate(Payment), loopspan.ValidationRejected, "'pay'", "body was not entered")
            with call.attempt():
                ENTERED.append("the block")
            run.succeed()

    refused(block, loopspan.IllegalTransition, "'pay'")
    assert ENTERED == []
    if heard is not None:
        (run,) = heard.runs
        assert (run.lifecycle, run.stop_reason) == (Lifecycle.CLOSED, StopReason.LOOP_ERROR)
        assert [(call.outcome, call.entries) for call in run.tool_calls] == [("rejected", 0)]
        assert [event.refused for event in events(heard, "transition_refused")] == ["tool_started"]


def test_an_attempt_inside_an_attempt_is_refused(heard: Captured | None):
    """One body at a time; the outer one goes on and the run does too."""
    with loopspan.agent_loop("payer") as run:
        with loopspan.tool_call("pay", {}) as call, call.attempt():
            refused(lambda: call.attempt().__enter__(), loopspan.IllegalTransition, "'pay'")
        run.succeed()
    if heard is not None:
        (recorded,) = heard.runs
        assert recorded.stop_reason is StopReason.SUCCESS
        assert [one.outcome for one in recorded.tool_calls[0].attempts] == ["ok"]


def test_an_attempt_after_the_call_is_refused(heard: Captured | None):
    with loopspan.agent_loop("payer") as run:
        with loopspan.tool_call("pay", {}) as call, call.attempt():
            pass
        refused(lambda: call.attempt().__enter__(), loopspan.IllegalTransition, "'pay'")
        run.succeed()
