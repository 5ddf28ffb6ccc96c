"""Other packages make tools of functions that are decorated, and their tools can be decorated and called by name."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from agents import FunctionTool, function_tool
from agents.tool_context import ToolContext
from agents.usage import Usage
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool
from langchain_core.tools import StructuredTool
from langchain_core.tools import tool as langchain_tool

import loopspan
from loopspan import Toolbox
from loopspan.testing import Captured


def price(item: str, amount: int = 1) -> str:
    """What an item costs.

    Args:
        item: What to look up.
        amount: How many of it.
    """
    return str({"apple": 3}[item] * amount)


async def stock(item: str, amount: int = 1) -> str:
    """How many there are."""
    await asyncio.sleep(0)
    return price(item, amount)


def use_agents(made: Any, **arguments: Any) -> Any:
    """Call a tool as the Agents SDK does."""
    context = ToolContext(
        context=None, usage=Usage(), tool_name=made.name, tool_call_id="c7", tool_arguments=json.dumps(arguments)
    )
    return asyncio.run(made.on_invoke_tool(context, json.dumps(arguments)))


class Package(NamedTuple):
    """How a package makes a tool of a function, and calls it."""

    kind: type
    make: Callable[[Any], Any]
    use: Callable[..., Any]
    function: Callable[..., Any] = price


PACKAGES = {
    "anthropic": Package(BetaFunctionTool, beta_tool, lambda made, **arguments: made.call(arguments)),
    "anthropic, async": Package(
        BetaAsyncFunctionTool, beta_async_tool, lambda made, **arguments: asyncio.run(made.call(arguments)), stock
    ),
    "langchain": Package(StructuredTool, langchain_tool, lambda made, **arguments: made.invoke(arguments)),
    "langchain, async": Package(
        StructuredTool, langchain_tool, lambda made, **arguments: asyncio.run(made.ainvoke(arguments)), stock
    ),
    "agents": Package(FunctionTool, function_tool, use_agents),
    "agents, async": Package(FunctionTool, function_tool, use_agents, stock),
}


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> Package:
    """Each package."""
    return PACKAGES[request.param]


def description(made: Any) -> tuple[Any, ...]:
    """What a model is told of a tool."""
    schemas = (getattr(made, name, None) for name in ("params_json_schema", "args", "input_schema"))
    return made.name, made.description, next(schema for schema in schemas if schema)


def read(arguments: str) -> Any:
    """Arguments on record; the Agents SDK's are a text in itself."""
    loaded = json.loads(arguments)
    return json.loads(loaded) if isinstance(loaded, str) else loaded


def in_run(use: Callable[[], Any]) -> Any:
    """Call it in a run."""
    return loopspan.agent_loop("loop")(use)()


def test_they_make_the_same_tool_of_a_decorated_function(package: Package):
    assert description(package.make(loopspan.tool(package.function))) == description(package.make(package.function))


def test_a_decorated_function_is_recorded_when_they_call_it(package: Package, loopspan_capture: Captured):
    made = package.make(loopspan.tool(package.function))
    assert in_run(lambda: package.use(made, item="apple", amount=2)) == "6"
    (call,) = loopspan_capture.runs[0].tool_calls
    assert (call.name, call.outcome) == (package.function.__name__, "ok")


def test_a_tool_of_theirs_stays_one_when_it_is_decorated(package: Package):
    theirs = package.make(package.function)
    ours = loopspan.tool(theirs)
    assert type(ours) is package.kind
    assert description(ours) == description(theirs)
    assert ours is not theirs, "what they hold themselves is as it was"


@pytest.mark.parametrize("decorator", [loopspan.tool, loopspan.tool(effect="read_only")])
def test_a_tool_of_theirs_is_recorded_when_it_is_decorated(
    package: Package, decorator: Callable[[Any], Any], loopspan_capture: Captured
):
    theirs = package.make(package.function)
    assert package.use(theirs, item="apple") == package.use(decorator(theirs), item="apple") == "3"
    assert in_run(lambda: package.use(decorator(theirs), item="apple", amount=2)) == "6"
    (call,) = loopspan_capture.runs[0].tool_calls
    assert (call.name, call.outcome) == (package.function.__name__, "ok")
    (span,) = [span for span in loopspan_capture.spans if span.name == f"execute_tool {call.name}"]
    assert read(span.attributes["gen_ai.tool.call.arguments"]) == {"item": "apple", "amount": 2}
    if package.kind is FunctionTool:
        assert (call.call_id, call.id_source) == ("c7", "given")


def test_a_failure_inside_a_tool_of_theirs_is_on_record(package: Package, loopspan_capture: Captured):
    theirs = loopspan.tool(package.make(package.function))

    told = package.kind is FunctionTool  # the Agents SDK tells the model
    with contextlib.nullcontext() if told else pytest.raises(KeyError):
        in_run(lambda: package.use(theirs, item="plum"))
    (call,) = loopspan_capture.runs[0].tool_calls
    assert call.outcome == "failed"


def test_the_toolbox_takes_their_tools_by_their_names(package: Package, loopspan_capture: Captured):
    tools = Toolbox(package.make(package.function))
    name = package.function.__name__

    def use() -> Any:
        if package.function is stock:
            return asyncio.run(tools.acall(name, '{"item": "apple", "amount": 2}', call_id="c1"))
        return tools.call(name, '{"item": "apple", "amount": 2}', call_id="c1")

    assert in_run(use) == "6"
    (call,) = loopspan_capture.runs[0].tool_calls
    assert (call.name, call.call_id, call.outcome) == (name, "c1", "ok")
    (schema,) = tools.schemas("anthropic")
    assert (schema["name"], list(schema["input_schema"]["properties"])) == (name, ["item", "amount"])


def test_the_toolbox_keeps_the_options_of_a_decorated_tool_of_theirs(loopspan_capture: Captured):
    limited = loopspan.tool(effect="read_only")(langchain_tool("cost")(price))
    tools = Toolbox(limited)
    assert in_run(lambda: tools.call("cost", {"item": "apple"})) == "3"
    spans = [span for span in loopspan_capture.spans if span.name == "execute_tool cost"]
    assert [span.attributes["loopspan.tool.effect"] for span in spans] == ["read_only"]


class Own:
    """An object with a call of its own is a function, whatever else it has."""

    name = "own"

    def func(self) -> str:
        return "not this"

    def __call__(self) -> str:
        return "this"


def test_an_object_with_a_call_of_its_own_is_called(loopspan_capture: Captured):
    assert in_run(lambda: loopspan.tool("own")(Own())()) == "this"
    assert [call.name for call in loopspan_capture.runs[0].tool_calls] == ["own"]


@pytest.mark.parametrize("value", [object(), 3, Captured])
def test_what_holds_no_function_is_refused(value: Any):
    with pytest.raises((loopspan.WrongKind, loopspan.ConfigurationError)):
        loopspan.tool("name")(value)
