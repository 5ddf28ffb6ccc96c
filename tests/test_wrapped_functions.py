"""What may be wrapped: functions, methods, partials, callables; and what a plain function may turn out to be."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import loopspan
from loopspan import ConfigurationError, WrongKind
from ways import KINDS, Witness, ask, loop_of, work

DECORATORS: dict[str, Any] = {
    "agent_loop": loopspan.agent_loop,
    "model_request": loopspan.model_request(model="m"),
    "tool": loopspan.tool,
}
DECORATOR = pytest.mark.parametrize("decorator", DECORATORS)


class Agent:
    """Methods of every sort."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    @loopspan.agent_loop("method")
    def method(self, task: str) -> tuple[Any, str]:
        ask()
        return self, task

    @loopspan.agent_loop("coroutine method")
    async def coroutine(self, task: str) -> tuple[Any, str]:
        ask()
        return self, task

    @loopspan.agent_loop("class method")
    @classmethod
    def of_class(cls, task: str) -> tuple[Any, str]:
        return cls, task

    @classmethod
    @loopspan.agent_loop("class method inside")
    def of_class_inside(cls, task: str) -> tuple[Any, str]:
        return cls, task

    @loopspan.agent_loop("static method")
    @staticmethod
    def static(task: str) -> tuple[Any, str]:
        return None, task

    @loopspan.agent_loop("callable")
    def __call__(self, task: str) -> tuple[Any, str]:
        return self, task

    def undecorated(self, task: str) -> tuple[Any, str]:
        return self, task

    async def undecorated_coroutine(self, task: str) -> tuple[Any, str]:
        return self, task


class Called:
    """An object that is called."""

    def __call__(self, task: str) -> tuple[Any, str]:
        return self, task


class AsyncCallable:
    """An object whose call is a coroutine function."""

    async def __call__(self, task: str) -> tuple[Any, str]:
        return self, task


agent, called, called_async = Agent(), Called(), AsyncCallable()

CALLS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "method": (agent.method, agent),
    "unbound method": (lambda task: Agent.method(agent, task), agent),
    "coroutine method": (agent.coroutine, agent),
    "class method": (Agent.of_class, Agent),
    "class method of an instance": (agent.of_class, Agent),
    "class method inside": (Agent.of_class_inside, Agent),
    "static method": (Agent.static, None),
    "static method of an instance": (agent.static, None),
    "call of an instance": (agent, agent),
    "bound method": (loopspan.agent_loop("bound")(agent.undecorated), agent),
    "bound coroutine method": (loopspan.agent_loop("bound")(agent.undecorated_coroutine), agent),
    "partial": (loopspan.agent_loop("partial")(functools.partial(Agent.undecorated, agent)), agent),
    "partial of a decorated": (functools.partial(Agent.method, agent), agent),
    "partial of a coroutine function": (
        loopspan.agent_loop("partial")(functools.partial(Agent.undecorated_coroutine, agent)),
        agent,
    ),
    "callable": (loopspan.agent_loop("callable")(called), called),
    "asynchronous callable": (loopspan.agent_loop("callable")(called_async), called_async),
}


@pytest.mark.parametrize("sort", CALLS)
def test_every_sort_of_callable_gets_its_own_arguments(witness: Witness, sort: str):
    function, owner = CALLS[sort]

    async def use() -> Any:
        value = function("task")
        return await value if inspect.isawaitable(value) else value

    assert asyncio.run(use()) == (owner, "task")
    witness.ended("success", runs=1)


@DECORATOR
def test_functions_keep_their_sort_name_and_signature(decorator: str):
    def plain(one: int, *, two: str = "2") -> int: ...
    async def coroutine(one: int, *, two: str = "2") -> int: ...
    def generator(one: int, *, two: str = "2") -> Iterator[int]:
        yield one

    async def async_generator(one: int, *, two: str = "2") -> AsyncIterator[int]:
        yield one

    for function in (plain, coroutine, generator, async_generator):
        wrapped = DECORATORS[decorator](function)
        for question in (
            inspect.isfunction,
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
            inspect.signature,
            inspect.getdoc,
        ):
            assert question(wrapped) == question(function)
        assert (wrapped.__name__, wrapped.__qualname__, wrapped.__module__, wrapped.__wrapped__) == (
            function.__name__,
            function.__qualname__,
            function.__module__,
            function,
        )


@DECORATOR
@pytest.mark.parametrize("value", [3, Agent, [len]])
def test_what_is_no_function_is_refused_by_name(decorator: str, value: Any):
    with pytest.raises((WrongKind, ConfigurationError)) as caught:
        DECORATORS[decorator](value)
    assert (value.__name__ if isinstance(value, type) else repr(value)) in str(caught.value)


# a plain function may turn out to be something else


async def coroutine() -> str:
    ask()
    await asyncio.sleep(0)
    return "done"


def generator() -> Iterator[str]:
    ask()
    yield "item"


async def async_generator() -> AsyncIterator[str]:
    ask()
    yield "item"


@pytest.mark.parametrize("late", [False, True])
def test_a_plain_loop_that_returns_an_awaitable_ends_when_that_is_awaited(witness: Witness, late: bool):
    loop = loopspan.agent_loop("loop")(lambda: asyncio.ensure_future(coroutine()) if late else coroutine())

    async def main() -> None:
        with witness.caller():
            made = loop()
            assert witness.events("run_trace_closed") == []
            assert await made == "done"

    asyncio.run(main())
    witness.ended("success", runs=1)
    assert [run.usage is not None for run in witness.captured.runs] == [True], "the request is part of the run"


def test_a_plain_loop_that_returns_a_generator_ends_with_it(witness: Witness):
    with witness.caller():
        made = loopspan.agent_loop("loop")(lambda: generator())()
        assert witness.events("run_trace_closed") == []
        assert list(made) == ["item"]
    witness.ended("success", runs=1)


def test_a_plain_loop_that_returns_an_asynchronous_generator_ends_with_it(witness: Witness):
    async def main() -> None:
        with witness.caller():
            made = loopspan.agent_loop("loop")(lambda: async_generator())()
            assert witness.events("run_trace_closed") == []
            assert [item async for item in made] == ["item"]

    asyncio.run(main())
    witness.ended("success", runs=1)


@pytest.mark.parametrize("result", [generator, async_generator])
def test_a_plain_loop_whose_result_nobody_reads_has_not_succeeded(witness: Witness, result: Callable[[], Any]):
    loopspan.agent_loop("loop")(lambda: result())()
    witness.ended("cancelled", "consumer_stopped")


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_a_plain_loop_whose_result_nobody_awaits_has_not_succeeded(witness: Witness):
    loopspan.agent_loop("loop")(lambda: coroutine())()
    gc.collect()
    witness.ended("cancelled", "consumer_stopped")


def test_a_coroutine_loop_that_returns_a_generator_ends_with_it(witness: Witness):
    async def loop() -> Any:
        return generator()

    async def main() -> None:
        made = await loopspan.agent_loop("loop")(loop)()
        assert witness.events("run_trace_closed") == []
        with witness.caller():
            assert list(made) == ["item"]

    asyncio.run(main())
    witness.ended("success", runs=1)


# what passes through a request or a tool

VALUES = [None, object(), [1], {"a": 1}, ValueError("a value"), NotImplemented, iter, StopIteration(1)]


@pytest.mark.parametrize("inner", [ask, work])
@pytest.mark.parametrize(
    "value", [None, object(), [1], {"a": 1}, ValueError("a value"), NotImplemented, iter, StopIteration(1)]
)
def test_results_are_the_same_objects(witness: Witness, inner: Any, value: Any):
    got = []
    witness.use(loop_of("plain", lambda: got.append(inner(lambda: value))))
    assert got[0] is value
    witness.ended("success")


@pytest.mark.parametrize("inner", [ask, work])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_iteration_that_is_raised_is_the_same_object(witness: Witness, inner: Any, kind: str):
    error = StopIteration("mine")

    def broken() -> None:
        raise error

    def act() -> None:
        with pytest.raises(StopIteration) as caught:
            inner(broken)
        assert caught.value is error

    witness.use(loop_of(kind, act))
    witness.ended("success")


@pytest.mark.parametrize("decorator", ["model_request", "tool"])
def test_what_is_sent_thrown_and_returned_passes_through_a_generator(witness: Witness, decorator: str):
    @DECORATORS[decorator]
    def talk() -> Any:
        got = [(yield "a")]
        try:
            yield "b"
        except KeyError as error:
            got.append(error)
        return got

    error = KeyError("thrown")

    def act() -> Any:
        talking = talk()
        assert [next(talking), talking.send(1)] == ["a", "b"]
        with pytest.raises(StopIteration) as stopped:
            talking.throw(error)
        return stopped.value.value

    assert witness.use(loop_of("plain", act)) == [1, error]
    witness.ended("success")


@pytest.mark.parametrize("decorator", ["model_request", "tool"])
def test_outside_of_a_run_functions_are_as_they_were(witness: Witness, decorator: str):
    value, decorated = object(), DECORATORS[decorator]
    with witness.caller():
        assert decorated(lambda: value)() is value
        assert list(decorated(generator)()) == ["item"]
        assert asyncio.run(decorated(coroutine)()) == "done"
    assert witness.captured.entries == []
    witness.silent()
