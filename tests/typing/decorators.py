"""Decorated functions keep their types, whatever kind they are. Checked by mypy and pyright; imported by a test."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, assert_type, overload

import loopspan
from loopspan import Answer, Call, End, Retry, StopReason

T = TypeVar("T")
P = ParamSpec("P")


# functions of every kind, with and without options


@loopspan.agent_loop
def bare(task: str, *, limit: int = 3) -> str:
    return task * limit


@loopspan.agent_loop(name="named", max_steps=3)
async def named(task: str) -> str:
    return task


def why(end: End) -> StopReason:
    return StopReason.SUCCESS if end.error is None else StopReason.MODEL_FAILED


@loopspan.agent_loop("turns", outcome=why, control_flow=(KeyError,))
def turns(task: str) -> Iterator[int]:
    yield len(task)


@loopspan.agent_loop
async def aturns(task: str, /, *more: str, **options: int) -> AsyncIterator[int]:
    yield len(task)


@loopspan.model_request
def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return messages[-1]


def chosen(prompt: str) -> str:
    return f"model for {prompt}"


def read(answer: Any) -> Answer:
    return Answer(content=answer)


@loopspan.model_request(provider="openai", model=chosen, read=read)
def stream(prompt: str) -> Iterator[str]:
    yield prompt


@loopspan.model_request(retry=Retry(max_attempts=2), timeout=30)
async def aask(prompt: str) -> bytes:
    return prompt.encode()


@loopspan.model_request(step=False)
def later(prompt: str) -> Awaitable[bytes]:
    return aask(prompt)


@loopspan.tool
async def chunks(path: str) -> AsyncIterator[bytes]:
    yield path.encode()


def which(action: dict[str, str]) -> Call:
    return Call(action["tool"], action["input"])


@loopspan.tool(call=which)
def dispatch(action: dict[str, str]) -> str:
    return action["tool"]


# overloads and generics


@overload
def double(value: int) -> int: ...


@overload
def double(value: str) -> str: ...


@loopspan.tool
def double(value: int | str) -> int | str:
    return value * 2


@loopspan.tool("first", effect="read_only")
def first(items: Sequence[T]) -> T:
    return items[0]


@loopspan.tool
def call_with(function: Callable[Concatenate[int, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    return function(1, *args, **kwargs)


def repeated(number: int, text: str) -> str:
    return text * number


# methods of every kind


class Base(ABC):
    @abstractmethod
    def status(self, name: str) -> dict[str, str]: ...

    @loopspan.tool
    def renamed(self, name: str) -> Self:
        return self


class Project(Base):
    @loopspan.tool(effect="read_only")
    def status(self, name: str) -> dict[str, str]:
        return {name: "green"}

    @loopspan.tool
    def renamed(self, name: str) -> Self:
        return super().renamed(name)

    @classmethod
    @loopspan.tool
    def named(cls, name: str) -> Self:
        return cls()

    @staticmethod
    @loopspan.tool
    def add(left: int, right: int) -> int:
        return left + right

    @loopspan.agent_loop("work")
    async def work(self, task: str) -> int:
        return len(task)

    @loopspan.model_request
    def __call__(self, prompt: str) -> str:
        return prompt


@dataclass
class Box(Generic[T]):
    content: T

    @loopspan.tool
    def get(self) -> T:
        return self.content

    @loopspan.tool
    def swap(self, other: Box[T]) -> tuple[T, T]:
        return other.content, self.content


class Speaks(Protocol):
    def __call__(self, prompt: str) -> str: ...


def speak(speaker: Speaks) -> str:
    return speaker("hello")


def results() -> None:
    assert_type(bare("x", limit=2), str)
    assert_type(turns("x"), Iterator[int])
    assert_type(ask([]), dict[str, Any])
    assert_type(stream("x"), Iterator[str])
    assert_type(later("x"), Awaitable[bytes])
    assert_type(chunks("x"), AsyncIterator[bytes])
    assert_type(aturns("x", "y", deep=1), AsyncIterator[int])
    assert_type(dispatch({"tool": "a", "input": "b"}), str)
    assert_type(double(1), int)
    assert_type(double("x"), str)
    assert_type(first(["x"]), str)
    assert_type(call_with(repeated, "x"), str)
    assert_type(loopspan.carry(bare)("x"), str)
    assert_type(loopspan.tool(lambda: str(3))(), str)


async def methods() -> None:
    project = Project.named("x")
    assert_type(project, Project)
    assert_type(project.status("x"), dict[str, str])
    assert_type(project.renamed("x"), Project)
    assert_type(Project.add(1, 2), int)
    assert_type(project("x"), str)
    assert_type(await project.work("x"), int)
    assert_type(await named("x"), str)
    assert_type(await aask("x"), bytes)
    assert_type(Box(3).get(), int)
    assert_type(Box("x").swap(Box("y")), tuple[str, str])
    assert_type(speak(project), str)
    assert_type(await asyncio.to_thread(project.status, "x"), dict[str, str])


def blocks() -> None:
    with loopspan.agent_loop("work") as run:
        assert_type(run.run_id, str)
        with loopspan.model_request(provider="openai", model="m") as request:
            request.answer(Answer())
        with loopspan.tool_call("add", {"left": 1}) as call, call.attempt():
            assert_type(call.call_id, str)
        run.succeed()
