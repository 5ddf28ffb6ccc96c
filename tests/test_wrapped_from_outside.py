"""Loops of other people: told signatures, dispatchers, tools that yield, streams that will not be closed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import loopspan
from loopspan import Call, End, StopReason, Streamed
from ways import Witness


def arguments(witness: Witness, name: str) -> list[str]:
    """The arguments on record of all calls of a tool."""
    spans = [span for span in witness.captured.spans if span.name == f"execute_tool {name}"]
    return [span.attributes["gen_ai.tool.call.arguments"] for span in spans]


# signatures that somebody told


def look_up(item: str, amount: int = 1) -> str:
    """A function as its author wrote it."""
    return item * amount


def told(*parameters: str) -> Callable[..., Any]:
    """`look_up` with a signature that says these parameters, whatever is true."""

    @functools.wraps(look_up)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return look_up(*args, **kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    wrapper.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in parameters])
    return wrapper


@pytest.mark.parametrize(
    ("parameters", "recorded"),
    [
        (("self", "item", "amount"), ['{"item":"a","amount":2}', '{"item":"a"}', '{"item":"a","amount":2}']),
        (("item", "amount"), ['{"item":"a","amount":2}', '{"item":"a"}', '{"item":"a","amount":2}']),
        (
            ("something", "else_", "altogether", "here"),
            ['{"item":"a","amount":2}', '{"item":"a"}', '{"item":"a","amount":2}'],
        ),
    ],
)
def test_a_call_that_works_is_never_rejected_for_a_signature_that_is_not_true(
    witness: Witness, parameters: tuple[str, ...], recorded: list[str]
):
    tool = loopspan.tool("look_up")(told(*parameters))
    witness.use(loopspan.agent_loop("loop")(lambda: [tool("a", 2), tool("a"), tool(item="a", amount=2)]))
    witness.ended("success", runs=1)
    (run,) = witness.captured.runs
    assert [call.outcome for call in run.tool_calls] == ["ok"] * 3
    assert arguments(witness, "look_up") == recorded


def test_a_call_that_does_not_work_is_an_attempt_that_failed(witness: Witness):
    tool = loopspan.tool("look_up")(told("self", "item"))

    def loop() -> None:
        with pytest.raises(TypeError, match="fruit"):
            tool(fruit="a")

    witness.use(loopspan.agent_loop("loop")(loop))
    (call,) = witness.captured.runs[0].tool_calls
    assert (call.outcome, [attempt.outcome for attempt in call.attempts]) == ("failed", ["failed"])


# dispatchers


def test_a_dispatcher_that_is_called_with_keywords_is_told_apart(witness: Witness):
    @loopspan.tool(call=lambda action, *, call_id, default=None: Call(action, {}, call_id))
    def dispatch(action: str, *, call_id: str, default: Any = None) -> str:
        return action

    witness.use(loopspan.agent_loop("loop")(lambda: dispatch("search", call_id="c1", default=3)))
    witness.ended("success", runs=1)
    (call,) = witness.captured.runs[0].tool_calls
    assert (call.name, call.call_id) == ("search", "c1")


# tools that yield


def lines(*texts: str) -> Iterator[str]:
    """A tool that tells of a failure in one of its items."""
    yield from texts
    return len(texts)


async def alines(*texts: str) -> AsyncIterator[str]:
    """Likewise, asynchronous."""
    for text in texts:
        yield text


def reason(result: Streamed) -> str | None:
    """What the failure hook says of a tool that yields."""
    return "told" if any(text.startswith("Error") for text in result.chunks) else None


def test_what_a_tool_has_yielded_tells_whether_it_failed(witness: Witness):
    tool = loopspan.tool("lines", failure=reason)(lines)
    returned = []

    def read(*texts: str) -> Iterator[Any]:
        returned.append((yield from tool(*texts)))

    witness.use(loopspan.agent_loop("loop")(lambda: [list(read("a", "b")), list(read("a", "Error: b"))]))
    witness.ended("success", runs=1)
    assert returned == [2, 2], "the caller gets what the generator returned"
    outcomes = [(call.outcome, call.error_type) for call in witness.captured.runs[0].tool_calls]
    assert outcomes == [("ok", None), ("failed", "told")]
    results = [span.attributes["gen_ai.tool.call.result"] for span in witness.captured.spans if "execute" in span.name]
    assert results == ['["a","b"]', '["a","Error: b"]']


def test_what_an_asynchronous_tool_has_yielded_tells_whether_it_failed(witness: Witness):
    tool = loopspan.tool("lines", failure=reason)(alines)

    @loopspan.agent_loop("loop")
    async def loop() -> list[str]:
        return [text async for text in tool("a", "Error: b")]

    assert witness.use(loop) == ["a", "Error: b"]
    witness.ended("success", runs=1)
    assert [call.outcome for call in witness.captured.runs[0].tool_calls] == ["failed"]


def test_a_tool_that_nobody_asks_about_keeps_nothing_of_what_it_yields():
    class Item:
        """What is yielded."""

    alive = []

    @loopspan.tool
    def items() -> Iterator[Item]:
        for _ in range(3):
            yield Item()

    @loopspan.agent_loop("loop")
    def loop() -> None:
        for _ in items():
            gc.collect()
            alive.append(sum(isinstance(one, Item) for one in gc.get_objects()))

    with loopspan.testing.capture(content=False):
        loop()
    assert alive == [1, 1, 1]


# streams that do not want to be closed


def test_a_loop_that_yields_when_it_is_closed_was_stopped_by_its_reader(witness: Witness):
    @loopspan.agent_loop("loop")
    def loop() -> Iterator[int]:
        try:
            yield 1
        finally:
            yield 2

    with witness.caller():
        stream = loop()
        assert next(stream) == 1
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            stream.close()
    witness.ended("cancelled", "consumer_stopped", runs=1)


def test_an_asynchronous_loop_that_yields_when_it_is_closed_was_stopped_by_its_reader(witness: Witness):
    @loopspan.agent_loop("loop")
    async def loop() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            yield 2

    async def main() -> None:
        stream = loop()
        assert await anext(stream) == 1
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await stream.aclose()

    with witness.caller():
        asyncio.run(main())
    witness.ended("cancelled", "consumer_stopped", runs=1)


def test_a_loop_that_raises_when_it_is_closed_has_failed(witness: Witness):
    @loopspan.agent_loop("loop")
    def loop() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise RuntimeError("cannot clean up")

    with witness.caller():
        stream = loop()
        next(stream)
        with pytest.raises(RuntimeError, match="cannot clean up"):
            stream.close()
    witness.ended("loop_error", runs=1)


# messages inside of an object


@pytest.mark.parametrize(
    "pack", [lambda messages: SimpleNamespace(messages=messages), lambda messages: {"messages": messages}]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_messages_are_found_in_a_request_that_is_one_object(
    witness: Witness, pack: Callable[[Any], Any], by_name: bool
):
    asked = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"item": "a"}'}}

    @loopspan.model_request(model="m")
    def ask(request: Any) -> dict[str, Any]:
        return {"choices": [{"message": {"content": None, "tool_calls": [asked]}, "finish_reason": "tool_calls"}]}

    tool = loopspan.tool(look_up)

    @loopspan.agent_loop("loop")
    def loop() -> None:
        messages: list[Any] = [{"role": "user", "content": "?"}]
        for _ in range(2):
            ask(request=pack(messages)) if by_name else ask(pack(messages))
            messages.append({"role": "tool", "tool_call_id": "c1", "content": tool("a")})

    witness.use(loop)
    assert [entry.event.call_id for entry in witness.events("tool_result_backfilled")] == ["c1"]


# which exception it was


class TooLong(Exception):
    """The loop's own limit."""


class Interrupted(Exception):
    """Somebody stopped it."""


@pytest.mark.parametrize(
    ("error", "reason"), [(TooLong(), "max_steps"), (Interrupted(), "cancelled"), (None, "success")]
)
def test_the_outcome_hook_sees_which_exception_of_the_control_flow_it_was(
    witness: Witness, error: Exception | None, reason: str
):
    seen = []

    def why(end: End) -> StopReason:
        seen.append(end.error)
        kinds = {TooLong: StopReason.MAX_STEPS, Interrupted: StopReason.CANCELLED, type(None): StopReason.SUCCESS}
        return kinds[type(end.error)]

    @loopspan.agent_loop("loop", outcome=why, control_flow=(TooLong, Interrupted))
    def loop() -> None:
        if error is not None:
            raise error

    with contextlib.nullcontext() if error is None else pytest.raises(type(error)):
        witness.use(loop)
    witness.ended(reason, runs=1)
    assert seen == [error]
