"""A LangChain agent as published, wrapped from outside by a middleware: sync and async, streamed or not.

`pip install langchain`; the model is scripted, nothing needs the network. LangGraph runs tools in threads and tasks of
its own, hands most failures of tools back to the model, and raises where its limit of supersteps is reached.
`python langchain_agent.py [directory]` prints what was recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.errors import GraphBubbleUp, GraphRecursionError

import loopspan
from loopspan import Answer, Call, End, StopReason, Usage


# hooks
def read(response: ModelResponse[Any]) -> Answer:
    """What an answer says, in LangChain's own form."""
    message = response.result[0]
    about = message.response_metadata
    return Answer(
        usage=Usage.parse(message.usage_metadata),
        model=about.get("model_name"),
        finish_reasons=[about["finish_reason"]] if "finish_reason" in about else [],
        tool_calls=[Call(call["name"], call["args"], call["id"]) for call in message.tool_calls],
        id=message.id,
    )


def model(_: AgentMiddleware, request: ModelRequest, handler: Any) -> str | None:
    """Which model is asked."""
    return getattr(request.model, "model_name", None)


def which(_: AgentMiddleware, request: ToolCallRequest, handler: Any) -> Call:
    """Which call a tool is asked for."""
    return Call(request.tool_call["name"], request.tool_call["args"], request.tool_call["id"])


def failure(result: Any) -> str | None:
    """A failure that the model is told of is a message."""
    return "tool_error" if getattr(result, "status", None) == "error" else None


def why(end: End) -> StopReason | tuple[StopReason, str]:
    """The graph raises where its own limit is reached, and returns an answer that was cut off."""
    if isinstance(end.error, GraphRecursionError):
        return StopReason.MAX_STEPS
    cut = end.last_answer is not None and "length" in end.last_answer.finish_reasons
    return (StopReason.MODEL_FAILED, "length") if cut else StopReason.SUCCESS


# wrapper
def hand_over(self: AgentMiddleware, request: Any, handler: Any) -> Any:
    """What the middleware is asked to do, now or awaited."""
    return handler(request)


class Recorded(AgentMiddleware):
    """The last middleware of an agent, so that what others repeat is an attempt."""

    wrap_model_call = awrap_model_call = loopspan.model_request(model=model, read=read)(hand_over)
    wrap_tool_call = awrap_tool_call = loopspan.tool(call=which, failure=failure, control_flow=(GraphBubbleUp,))(
        hand_over
    )


def instrument(agent: Any, name: str) -> Any:
    """The run: whatever way an agent is called, it streams."""
    loop = loopspan.agent_loop(name, outcome=why, control_flow=(GraphRecursionError,))
    agent.stream, agent.astream = loop(agent.stream), loop(agent.astream)
    return agent


# end


class Script(Iterator[AIMessage]):
    """What a model answers, one after the other; an exception is raised, a function is called."""

    def __init__(self, *answers: AIMessage | Exception | Callable[[], AIMessage]) -> None:
        self.answers = list(answers)

    def __next__(self) -> AIMessage:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


class ScriptedModel(GenericFakeChatModel):
    """LangChain's own test model, with a name; it may be told of tools."""

    model_name: str = "scripted-1"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """The script knows which tools there are."""
        return self


def answer(text: str = "", *calls: tuple[str, str, dict[str, Any]], reason: str | None = None) -> AIMessage:
    """An answer with what a provider says of it; `calls` are (id, name, arguments)."""
    return AIMessage(
        text,
        tool_calls=[{"id": call_id, "name": name, "args": arguments} for call_id, name, arguments in calls],
        usage_metadata={"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
        response_metadata={
            "model_name": "scripted-1-served",
            "finish_reason": reason or ("tool_calls" if calls else "stop"),
        },
    )


@tool
def price(item: str) -> int:
    """The price of an item."""
    return {"apple": 3, "pear": 4}[item]


@tool
async def stock(item: str) -> int:
    """How many there are of an item."""
    await asyncio.sleep(0)
    return len(item)


def build(*answers: Any, tools: tuple[Any, ...] = (price, stock), middleware: tuple[AgentMiddleware, ...] = ()) -> Any:
    """An agent as the package's users build it, then wrapped."""
    model = ScriptedModel(messages=Script(*answers))
    return instrument(create_agent(model, tools, middleware=[*middleware, Recorded()]), "shop")


BOTH = (("c1", "price", {"item": "apple"}), ("c2", "price", {"item": "pear"}))


def main(directory: Path) -> None:
    """Four runs: sync, async, streamed, and one that never ends."""
    loopspan.setup(service_name="langchain", file=directory / "spans.jsonl")
    asked = {"messages": [("user", "What do both cost?")]}
    assert build(answer("", *BOTH), answer("7")).invoke(asked)["messages"][-1].content == "7"
    stocked = build(answer("", ("c1", "stock", {"item": "apple"})), answer("5"))
    assert asyncio.run(stocked.ainvoke(asked))["messages"][-1].content == "5"
    assert len(list(build(answer("", *BOTH), answer("7")).stream(asked, stream_mode="updates"))) == 4
    with contextlib.suppress(GraphRecursionError):
        build(*[answer("", ("c1", "price", {"item": "apple"})) for _ in range(9)]).invoke(asked, {"recursion_limit": 4})
    loopspan.flush()

    runs = loopspan.read_runlog(directory / "spans.jsonl").runs
    assert [run.stop_reason for run in runs] == [StopReason.SUCCESS] * 3 + [StopReason.MAX_STEPS]
    assert [[call.call_id for call in run.tool_calls] for run in runs] == [
        ["c1", "c2"],
        ["c1"],
        ["c1", "c2"],
        ["c1"] * 2,
    ]
    assert [len(run.steps) for run in runs] == [2, 2, 2, 2]
    assert [run.usage.input_tokens for run in runs] == [200] * 4
    for run in runs:
        print(run.summary())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
