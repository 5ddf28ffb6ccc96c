"""A caller that checks what a loop leaves behind, and places inside a loop where something may happen to it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry import baggage, context, trace

import loopspan
from loopspan.testing import Captured

gc.freeze()  # what is there already is no garbage: each test collects, and looks at its own only

Act = Callable[[], Any]

KINDS = ("plain", "coroutine", "generator", "async_generator")


@loopspan.model_request(provider="p", model="m")
def ask(act: Act = lambda: None) -> Any:
    """A model request, in the middle of which `act` happens."""
    return act()


@loopspan.model_request(provider="p", model="m")
def ask_streamed(act: Act = lambda: None) -> Iterator[str]:
    """A streamed answer, between two chunks of which `act` happens."""
    yield "chunk"
    act()
    yield "chunk"


@loopspan.tool
def work(act: Act = lambda: None) -> Any:
    """A tool, in the body of which `act` happens."""
    return act()


@loopspan.tool
def work_streamed(act: Act = lambda: None) -> Iterator[str]:
    """A tool that yields, between two items of which `act` happens."""
    yield "item"
    act()
    yield "item"


@loopspan.agent_loop(name="child")
def child(act: Act) -> Any:
    """A sub-agent with a tool in flight."""
    return work(act)


@loopspan.tool
def delegate(act: Act) -> Any:
    """A tool that hands its work to a sub-agent."""
    return child(act)


def ask_block(act: Act) -> None:
    """A model request as a block."""
    with loopspan.model_request(provider="p", model="m"):
        act()


def work_block(act: Act) -> None:
    """A tool call as a block."""
    with loopspan.tool_call("work", {}) as call, call.attempt():
        act()


def child_block(act: Act) -> None:
    """A sub-agent as a block, with a request in flight."""
    with loopspan.agent_loop("child") as run:
        ask(act)
        run.succeed()


PLACES: dict[str, Callable[[Act], Any]] = {
    "loop": lambda act: act(),
    "request": ask,
    "stream": lambda act: list(ask_streamed(act)),
    "tool": work,
    "tool stream": lambda act: list(work_streamed(act)),
    "sub-agent": delegate,
    "request block": ask_block,
    "tool block": work_block,
    "sub-agent block": child_block,
}
"""Where in a loop `act` happens: with what in flight."""

FAILURES = {place: "tool_failed" if "tool" in place else "model_failed" for place in PLACES} | {
    "loop": "loop_error",
    "sub-agent": "tool_failed",
}
"""Why the loop ends when `act` raises there."""


def raises(error: BaseException) -> Act:
    """An act that raises `error`."""

    def act() -> None:
        raise error

    return act


def loop_of(kind: str, act: Act, **options: Any) -> Callable[[], Any]:
    """A decorated loop: one request, then `act`; the generators yield before and after it."""

    def plain() -> Any:
        ask()
        return act()

    async def coroutine() -> Any:
        ask()
        return act()

    def generator() -> Iterator[int]:
        ask()
        yield 1
        result = act()
        yield 2
        return result

    async def async_generator() -> AsyncIterator[int]:
        ask()
        yield 1
        act()
        yield 2

    kinds = {"plain": plain, "coroutine": coroutine, "generator": generator, "async_generator": async_generator}
    return loopspan.agent_loop("loop", **options)(kinds[kind])


class Witness:
    """A caller with a span and baggage of its own; knows what it was left with."""

    def __init__(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        self.captured = captured
        self._caplog = caplog

    @contextlib.contextmanager
    def caller(self) -> Iterator[None]:
        """What happens inside leaves the current span and the Context as they were."""
        tracer = self.captured.tracer_provider.get_tracer("caller")
        token = context.attach(baggage.set_baggage("who", "caller"))
        try:
            with tracer.start_as_current_span("caller", record_exception=False, set_status_on_exception=False) as span:
                before = context.get_current()
                try:
                    yield
                finally:
                    assert context.get_current() is before
                    assert trace.get_current_span() is span
        finally:
            context.detach(token)

    def use(self, loop: Callable[[], Any]) -> Any:
        """Call a loop of any kind and read it to its end. The result, or the list of the items."""
        if inspect.iscoroutinefunction(loop) or inspect.isasyncgenfunction(loop):
            return asyncio.run(self.use_async(loop))
        with self.caller():
            value = loop()
            return list(value) if inspect.isgenerator(value) else value

    async def use_async(self, loop: Callable[[], Any]) -> Any:
        """`use` in a task that is there already."""
        with self.caller():
            value = loop()
            return [item async for item in value] if inspect.isasyncgen(value) else await value

    def ended(self, reason: str, detail: str | None = None, runs: int | None = None) -> None:
        """Every span is ended, every run has one stop reason (that of the outermost is given), no log says a word."""
        gc.collect()
        assert [span.name for span in self.captured.open_spans()] == []
        started = self.events("run_started")
        closed = self.events("run_trace_closed")
        assert sorted(entry.run_id for entry in closed) == sorted(entry.run_id for entry in started)
        assert runs is None or len(started) == runs
        ending = next(entry.event for entry in closed if entry.run_id == started[0].run_id)
        assert (ending.stop_reason, ending.stop_detail) == (reason, detail)
        self._roots_say([(entry.run_id, entry.event.stop_reason) for entry in closed])
        self.silent()

    def _roots_say(self, reasons: list[tuple[str, str]]) -> None:
        roots = [span.attributes for span in self.captured.spans if span.name.startswith("invoke_agent")]
        said = [(root["loopspan.run.id"], root["loopspan.run.stop_reason"]) for root in roots]
        assert sorted(said) == sorted(reasons)

    def silent(self) -> None:
        """Neither OpenTelemetry nor loopspan has logged anything."""
        assert [r.getMessage() for r in self._caplog.records if r.name.startswith(("opentelemetry", "loopspan"))] == []

    def events(self, name: str) -> list[Any]:
        """The entries of this name, in order."""
        return [entry for entry in self.captured.entries if entry.event.name == name]
