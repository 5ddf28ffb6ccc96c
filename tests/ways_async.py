"""Places inside an asynchronous loop where something may happen to it, with what is awaited there in flight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

import loopspan

Act = Callable[[], Awaitable[Any]]


@loopspan.model_request(provider="p", model="m")
async def ask(act: Act) -> Any:
    """A model request, in the middle of which `act` happens."""
    return await act()


@loopspan.model_request(provider="p", model="m")
def ask_plain(act: Act) -> Awaitable[Any]:
    """A plain function that returns something to await, as SDK methods do."""
    return act()


@loopspan.model_request(provider="p", model="m")
async def ask_streamed(act: Act) -> AsyncIterator[str]:
    """A streamed answer, between two chunks of which `act` happens."""
    yield "chunk"
    await act()
    yield "chunk"


@loopspan.tool
async def work(act: Act) -> Any:
    """A tool, in the body of which `act` happens."""
    return await act()


@loopspan.tool
async def work_streamed(act: Act) -> AsyncIterator[str]:
    """A tool that yields, between two items of which `act` happens."""
    yield "item"
    await act()
    yield "item"


@loopspan.agent_loop(name="child")
async def child(act: Act) -> Any:
    """A sub-agent with a tool in flight."""
    return await work(act)


@loopspan.tool
async def delegate(act: Act) -> Any:
    """A tool that hands its work to a sub-agent."""
    return await child(act)


async def read(items: AsyncIterator[Any]) -> None:
    """Read to the end."""
    async for _ in items:
        pass


async def ask_block(act: Act) -> None:
    """A model request as a block."""
    with loopspan.model_request(provider="p", model="m"):
        await act()


async def work_block(act: Act) -> None:
    """A tool call as a block."""
    with loopspan.tool_call("work", {}) as call, call.attempt():
        await act()


async def at_once(act: Act) -> None:
    """Two tools and a request at once."""
    await asyncio.gather(work(act), work(act), ask(act))


PLACES: dict[str, Callable[[Act], Awaitable[Any]]] = {
    "loop": lambda act: act(),
    "request": ask,
    "plain request": ask_plain,
    "stream": lambda act: read(ask_streamed(act)),
    "tool": work,
    "tool stream": lambda act: read(work_streamed(act)),
    "sub-agent": delegate,
    "request block": ask_block,
    "tool block": work_block,
    "several at once": at_once,
}
"""Where in a loop `act` happens: with what in flight."""

FAILURES = {place: "tool_failed" if "tool" in place else "model_failed" for place in PLACES} | {
    "loop": "loop_error",
    "sub-agent": "tool_failed",
}
"""Why the loop ends when `act` raises there."""


def loop_of(kind: str, act: Act) -> Callable[[], Any]:
    """A decorated loop that awaits `act`; the generator yields before and after it."""

    async def coroutine() -> Any:
        return await act()

    async def async_generator() -> AsyncIterator[int]:
        yield 1
        await act()
        yield 2

    return loopspan.agent_loop("loop")({"coroutine": coroutine, "async_generator": async_generator}[kind])


class Suspended:
    """Something to await that never comes, with or without an event loop; keeps what ended the waiting."""

    def __init__(self) -> None:
        self.reached = False
        self.error: BaseException | None = None

    def __await__(self) -> Generator[None]:
        self.reached = True
        try:
            while True:
                yield
        except BaseException as error:
            self.error = error
            raise

    async def act(self) -> None:
        """Await it."""
        await self
