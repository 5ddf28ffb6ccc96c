"""Cases, group outcome-truth: what is on record is what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.trace import StatusCode
from pydantic import BaseModel, field_validator

import loopspan
from facts import facts, failures
from loopspan import Answer, Call, Toolbox
from loopspan.testing import capture
from ways import KINDS, Witness, loop_of

UNSET, ERROR = StatusCode.UNSET, StatusCode.ERROR


OUTCOME, REASON = "loopspan.tool.outcome", "loopspan.validation.reason"


# D1


def edit_failure(result: dict[str, Any]) -> str | None:
    """Why it could not, as a class of errors."""
    return None if result["success"] else result["error"]


@loopspan.tool("edit", failure=edit_failure)
def edit(text: str) -> dict[str, Any]:
    """Repairs what a model wrote, and says in its result when it could not."""
    return {"success": 1} if text != "broken" else {"success": 0, "error": "argument_parse"}


@pytest.mark.parametrize("through", ["direct", "toolbox", "block, said inside", "block, said after"])
def test_D1_a_failure_that_comes_back_as_a_result_is_a_failure(witness: Witness, through: str):
    tools = Toolbox(edit)

    def call(text: str, call_id: str) -> Any:
        if through == "direct":
            return edit(text)
        if through == "toolbox":
            return tools.call("edit", {"text": text}, call_id=call_id)
        with loopspan.tool_call("edit", {"text": text}, call_id=call_id, failure=edit_failure) as block:
            with block.attempt():
                result = edit.__wrapped__(text)
                if through == "block, said inside":
                    block.result(result)
            if through == "block, said after":
                block.result(result)
        return result

    def loop() -> None:
        assert call("broken", "1") == {"success": 0, "error": "argument_parse"}, "the result is the loop's own"
        assert call("fine", "2") == {"success": 1}

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert facts(witness.captured, "execute_tool edit", OUTCOME, "error.type") == [
        (ERROR, "failed", "argument_parse"),
        (UNSET, "ok", None),
    ]
    assert failures(witness.captured) == 1, "a later success does not hide it"
    attempts = facts(witness.captured, "attempt edit", "loopspan.attempt.outcome", "error.type")
    first = (UNSET, "ok", None) if through == "block, said after" else (ERROR, "failed", "argument_parse")
    assert attempts == [first, (UNSET, "ok", None)]
    assert witness.captured.metric("loopspan.tool.calls", {OUTCOME: "failed"}).sum == 1


@pytest.mark.parametrize("written", ['{"text": "cut', "[1]", "text", "", "null", b"\xff"])
def test_D1_arguments_that_are_no_json_object_are_no_success(witness: Witness, written: Any):
    tools = Toolbox(edit)

    def loop() -> None:
        with pytest.raises(loopspan.ValidationRejected):
            tools.call("edit", written, call_id="1")
        tools.call("edit", '{"text": "fine"}', call_id="2")

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert facts(witness.captured, "execute_tool edit", OUTCOME, "loopspan.tool.attempts") == [
        (ERROR, "rejected", 0),
        (UNSET, "ok", 1),
    ]
    assert failures(witness.captured) == 1


# D2


class TooFull(OSError):
    """What a tool raises."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("through", ["toolbox", "framework"])
def test_D2_a_failure_that_a_framework_keeps_to_itself_is_on_the_span(witness: Witness, kind: str, through: str):
    @loopspan.tool
    def save() -> None:
        raise TooFull("no space left for run 4711")

    def act() -> None:
        if through == "toolbox":
            assert "no space left" in Toolbox(save).call("save", {}, on_error="return")
            return
        try:
            save()
        except OSError as error:
            str(error)

    witness.use(loop_of(kind, act))
    witness.ended("success")
    for name, outcome in (("execute_tool save", OUTCOME), ("attempt save", "loopspan.attempt.outcome")):
        ((status, said, error_type),) = facts(witness.captured, name, outcome, "error.type")
        assert (status, said) == (ERROR, "failed")
        assert error_type == f"{__name__}.TooFull", "the class, never the message: it stays bounded"


def test_D2_a_reason_from_a_hook_stays_bounded(witness: Witness):
    @loopspan.tool(failure=lambda result: result * 1000)
    def save() -> str:
        return "reason "

    witness.use(loop_of("plain", save))
    witness.ended("success")
    ((_, error_type),) = facts(witness.captured, "attempt save", "error.type")
    assert 0 < len(error_type) <= 256


# D3


def test_D3_streamed_or_not_the_same_failure_looks_the_same(caplog: pytest.LogCaptureFixture):
    seen = []
    for kind in KINDS:
        for streamed in (False, True):
            with capture() as captured, pytest.raises(TooFull):
                Witness(captured, caplog).use(loop_of(kind, lambda streamed=streamed: list(fails(streamed)())))
            seen.append({(span.name, span.status.status_code, *failure_of(span)) for span in captured.spans[:-1]})
    assert all(one == seen[0] for one in seen)
    assert {name for name, status, *_ in seen[0] if status is ERROR} == {"chat m", "step", "invoke_agent loop"}


def failure_of(span: Any) -> list[tuple[str, Any]]:
    """What a span says of a failure."""
    keys = ("error.type", "loopspan.run.stop_reason", "loopspan.request.outcome", "loopspan.step.outcome")
    return [(key, span.attributes[key]) for key in keys if key in span.attributes]


def fails(streamed: bool) -> Any:
    """A request that fails, whole or in the middle of its stream."""

    def whole() -> Any:
        raise TooFull

    def parts() -> Iterator[str]:
        yield "chunk"
        raise TooFull

    return loopspan.model_request(model="m")(parts if streamed else whole)


# D4


class Amount(BaseModel):
    """An argument with a rule of its own."""

    cents: int

    @field_validator("cents")
    @classmethod
    def some(cls, cents: int) -> int:
        """Not nothing."""
        if cents <= 0:
            raise ValueError("cents must be more than 0")
        return cents


bodies: list[Any] = []


@loopspan.tool
def pay(amount: Amount, to: str) -> str:
    """Pay."""
    bodies.append(amount)
    return "paid"


REJECTED = {
    "wrong type": '{"amount": {"cents": "secret-7"}, "to": "bob"}',
    "own rule": '{"amount": {"cents": -5}, "to": "bob"}',
    "missing": '{"amount": {"cents": 5}}',
    "surplus": '{"amount": {"cents": 5}, "to": "bob", "secret-7": 1}',
    "no object": '["secret-7"]',
    "no JSON": '{"amount": secret-7}',
    "unknown tool": "{}",
}


@pytest.mark.parametrize("what", REJECTED)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_D4_a_rejected_call_has_a_span_with_the_reason(witness: Witness, what: str, asynchronous: bool):
    bodies.clear()
    tools, name = Toolbox(pay), "refund" if what == "unknown tool" else "pay"
    refusal = loopspan.UnknownTool if what == "unknown tool" else loopspan.ValidationRejected

    @loopspan.model_request(model="m", read=lambda said: Answer(tool_calls=[Call(*said)]))
    def ask(*said: str) -> tuple[str, ...]:
        return said

    def call(arguments: str, call_id: str) -> Any:
        return tools.call(name if call_id == "1" else "pay", arguments, call_id=call_id)

    async def acall(arguments: str) -> Any:
        return await tools.acall(name, arguments, call_id="1")

    def loop() -> None:
        ask(name, REJECTED[what], "1")
        with pytest.raises(refusal):
            asyncio.run(acall(REJECTED[what])) if asynchronous else call(REJECTED[what], "1")
        ask("pay", '{"amount": {"cents": 5}, "to": "bob"}', "2")
        assert call('{"amount": {"cents": 5}, "to": "bob"}', "2") == "paid"

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert len(bodies) == 1
    known = "" if what == "unknown tool" else " pay"
    rejection = "unknown_tool" if what == "unknown tool" else "validation_error"
    keys = ("loopspan.validation.outcome", "error.type", REASON)
    first = facts(witness.captured, f"validate{known}", *keys)[0]
    assert first[:3] == (ERROR, "rejected", rejection)
    assert first[3]
    assert "secret-7" not in first[3] or what == "surplus", "a reason names fields and rules, no values"
    call_span = facts(witness.captured, f"execute_tool{known}", OUTCOME, "loopspan.tool.attempts", "error.type")[0]
    assert call_span == (ERROR, "rejected", 0, rejection)
    assert len(witness.events("tool_call_proposed")) == len(witness.events("tool_call_opened")) == 2
    proposed = [entry.event.call_id for entry in witness.events("tool_call_proposed")]
    assert proposed == [entry.event.call_id for entry in witness.events("tool_call_opened")]


def test_D4_a_direct_call_that_does_not_fit_is_rejected_too(witness: Witness):
    def loop() -> None:
        with pytest.raises(TypeError, match="missing"):
            pay(Amount(cents=5))

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert facts(witness.captured, "execute_tool pay", OUTCOME, "loopspan.tool.attempts") == [(ERROR, "rejected", 0)]


def test_D4_a_block_that_validates_is_rejected_too(witness: Witness):
    def loop() -> None:
        with (
            pytest.raises(loopspan.ValidationRejected, match="cents"),
            loopspan.tool_call("pay", '{"cents": -5}', call_id="1") as call,
        ):
            call.validate(Amount)

    witness.use(loop_of("plain", loop))
    witness.ended("success")
    assert facts(witness.captured, "execute_tool pay", OUTCOME, "loopspan.tool.attempts") == [(ERROR, "rejected", 0)]
