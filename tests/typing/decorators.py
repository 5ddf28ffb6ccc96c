"""Decorated functions keep their types. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import loopspan


@loopspan.agent_loop
def bare(task: str, *, limit: int = 3) -> str:
    return task * limit


@loopspan.agent_loop(name="named", max_steps=3)
async def named(task: str) -> str:
    return task


@loopspan.model_request
def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return messages[-1]


@loopspan.model_request(provider="openai", model=lambda arguments: arguments["model"])
def stream(prompt: str) -> Iterator[str]:
    yield prompt


@loopspan.tool
async def chunks(path: str) -> AsyncIterator[bytes]:
    yield path.encode()


class Project:
    @loopspan.tool(effect="read_only")
    def status(self, name: str) -> dict[str, str]:
        return {name: "green"}

    @classmethod
    @loopspan.tool
    def named(cls, name: str) -> Project:
        return cls()

    @staticmethod
    @loopspan.tool
    def add(left: int, right: int) -> int:
        return left + right


async def results() -> None:
    assert_type(bare("x", limit=2), str)
    assert_type(await named("x"), str)
    assert_type(ask([]), dict[str, Any])
    assert_type(stream("x"), Iterator[str])
    assert_type(chunks("x"), AsyncIterator[bytes])
    assert_type(Project().status("x"), dict[str, str])
    assert_type(Project.named("x"), Project)
    assert_type(Project.add(1, 2), int)
    assert_type(loopspan.carry(bare)("x"), str)


def arguments_are_still_checked() -> None:
    bare(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    bare("x", surplus=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Project().status(2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
