"""What the consumer of a generator loop may do to it, whatever is open at that moment."""

from __future__ import annotations

import contextvars
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import baggage, context, trace

import loopspan
from ways import Witness, ask, ask_streamed, work_streamed

# A loop that yields while something is open, and why it ends when that breaks.
OPEN = {
    "nothing": "loop_error",
    "request": "model_failed",
    "tool": "tool_failed",
    "sub-agent": "model_failed",
    "request block": "model_failed",
    "tool block": "tool_failed",
    "sub-agent block": "model_failed",
}
WITH_OPEN = pytest.mark.parametrize("what", OPEN)


def holding(what: str) -> Iterator[str]:
    """Yield while something is open."""
    if what == "request":
        yield from ask_streamed()
    elif what == "tool":
        yield from work_streamed()
    elif what == "sub-agent":
        yield from loopspan.agent_loop("child")(ask_streamed)()
    elif what == "request block":
        with loopspan.model_request(model="m"):
            yield "item"
    elif what == "tool block":
        with loopspan.tool_call("work", {}) as call, call.attempt():
            yield "item"
    elif what == "sub-agent block":
        with loopspan.agent_loop("child") as run:
            yield from ask_streamed()
            run.succeed()
    yield "more"


@loopspan.agent_loop(name="loop")
def loop(what: str) -> Iterator[str]:
    """Yields once before anything is open, then with it."""
    ask()
    yield "first"
    yield from holding(what)


def in_thread(act: Callable[[], Any]) -> None:
    """Do it in another thread."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(10)


CLOSERS: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "here": lambda close: close(),
    "in a copy of the Context": lambda close: contextvars.copy_context().run(close),
    "in an empty Context": lambda close: contextvars.Context().run(close),
    "in another thread": in_thread,
}


@WITH_OPEN
@pytest.mark.parametrize("closer", CLOSERS)
def test_it_is_closed_early(witness: Witness, what: str, closer: str):
    with witness.caller():
        reading = loop(what)
        next(reading)
        next(reading)
        CLOSERS[closer](reading.close)
    witness.ended("cancelled", "consumer_stopped")


@WITH_OPEN
@pytest.mark.parametrize("items", [1, 2])
def test_it_is_abandoned_and_collected(witness: Witness, what: str, items: int):
    with witness.caller():
        for number, _ in enumerate(loop(what), 1):
            if number == items:
                break
        gc.collect()
    witness.ended("cancelled", "consumer_stopped")


@WITH_OPEN
def test_its_consumer_raises_in_between(witness: Witness, what: str):
    def consume() -> None:
        for item in loop(what):
            if item != "first":
                raise KeyError(item)

    with witness.caller(), pytest.raises(KeyError):
        consume()
    witness.ended("cancelled", "consumer_stopped")


@WITH_OPEN
@pytest.mark.parametrize("cls", [ValueError, KeyboardInterrupt])
def test_an_exception_is_thrown_into_it(witness: Witness, what: str, cls: type[BaseException]):
    error = cls("thrown")
    with witness.caller():
        reading = loop(what)
        next(reading)
        next(reading)
        with pytest.raises(cls) as caught:
            reading.throw(error)
    assert caught.value is error
    witness.ended(*(("cancelled", "keyboard_interrupt") if cls is KeyboardInterrupt else (OPEN[what],)))


@WITH_OPEN
def test_its_consumer_never_sees_its_spans(witness: Witness, what: str):
    reading = loop(what)
    for _ in range(2):
        with witness.caller():
            next(reading)
    with witness.caller():
        list(reading)
    witness.ended("success")


@WITH_OPEN
def test_each_item_may_be_read_by_another_thread(witness: Witness, what: str):
    reading = loop(what)
    items: list[str] = []
    while len(items) < 10 and items[-1:] != ["more"]:
        in_thread(lambda: items.append(next(reading)))
    with pytest.raises(StopIteration):
        next(reading)
    witness.ended("success")


def test_what_is_sent_thrown_and_returned_passes_through(witness: Witness):
    @loopspan.agent_loop("loop")
    def talk() -> Any:
        got = [(yield "a"), (yield "b")]
        try:
            yield "c"
        except KeyError as error:
            got.append(error)
        return got

    def reader() -> Any:
        return (yield from talk())

    error = KeyError("thrown")
    reading = reader()
    with witness.caller():
        assert [next(reading), reading.send(1), reading.send(2)] == ["a", "b", "c"]
        with pytest.raises(StopIteration) as stopped:
            reading.throw(error)
    assert stopped.value.value == [1, 2, error]
    witness.ended("success", runs=1)


def test_what_it_does_while_it_is_closed_is_part_of_the_run(witness: Witness):
    @loopspan.agent_loop("loop")
    def tidy() -> Iterator[str]:
        try:
            yield "item"
        finally:
            ask()

    with witness.caller():
        reading = tidy()
        next(reading)
        reading.close()
    witness.ended("cancelled", "consumer_stopped", runs=1)
    assert [span.name for span in witness.captured.spans[:3]] == ["chat m", "step", "invoke_agent loop"]


def test_an_exception_raised_while_it_is_closed_reaches_the_closer(witness: Witness):
    error = OSError("disk")

    @loopspan.agent_loop("loop")
    def breaks() -> Iterator[str]:
        try:
            yield "item"
        finally:
            raise error

    reading = breaks()
    next(reading)
    with witness.caller(), pytest.raises(OSError, match="disk") as caught:
        reading.close()
    assert caught.value is error
    witness.ended("loop_error")


def test_a_span_and_a_context_of_the_loops_own_last_over_its_yields(witness: Witness):
    seen: list[tuple[Any, Any]] = []

    @loopspan.agent_loop("loop")
    def with_own() -> Iterator[int]:
        tracer = witness.captured.tracer_provider.get_tracer("own")
        token = context.attach(baggage.set_baggage("of", "the loop"))
        with tracer.start_as_current_span("own") as own:
            for number in range(3):
                yield number
                seen.append((trace.get_current_span() is own, baggage.get_baggage("of")))
        context.detach(token)

    reading = with_own()
    for _ in range(3):
        with witness.caller():
            next(reading)
    with witness.caller():
        list(reading)
    assert seen == [(True, "the loop")] * 3
    witness.ended("success")


def test_two_that_take_turns_do_not_mix(witness: Witness):
    with witness.caller():
        tool, request = loop("tool block"), loop("request block")
        for _ in range(3):
            next(tool)
            next(request)
        tool.close()
        request.close()
    witness.ended("cancelled", "consumer_stopped", runs=2)
    of_run: dict[Any, list[str]] = {}
    for span in witness.captured.spans:
        of_run.setdefault(span.attributes.get("loopspan.run.id"), []).append(span.name)
    del of_run[None]
    assert sorted(map(sorted, of_run.values())) == [
        ["attempt work", "chat m", "execute_tool work", "invoke_agent loop", "step"],
        ["chat m", "chat m", "invoke_agent loop", "step", "step"],
    ]
