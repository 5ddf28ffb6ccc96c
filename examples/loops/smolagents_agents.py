"""smolagents' two agents as published, wrapped from outside: without an adapter, without a patch of the package.

`pip install smolagents`; the models are scripted, nothing needs the network. A `ToolCallingAgent` runs parallel calls
in a pool of threads, a `CodeAgent` runs what the model wrote in another one, which loses the context; both return when
they were cut off, and make one more request then, outside of their steps. `python smolagents_agents.py [directory]`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from copy import copy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from smolagents import AgentError, AgentMaxStepsError, ChatMessage, CodeAgent, Model, ToolCallingAgent, tool
from smolagents.agents import MultiStepAgent
from smolagents.models import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    agglomerate_stream_deltas,
)
from smolagents.monitoring import LogLevel, TokenUsage

import loopspan
from loopspan import Answer, Call, End, StopReason, Streamed, Usage


# hooks
def read(said: Any) -> Answer:
    """What an answer says: a message, or the pieces of one."""
    streamed = isinstance(said, Streamed)
    message = agglomerate_stream_deltas(list(said.chunks)) if streamed else said
    known = not streamed or any(piece.token_usage for piece in said.chunks)  # without any they add up to 0
    choices = getattr(message.raw, "choices", None)
    return Answer(
        usage=Usage.parse(message.token_usage) if known else None,
        finish_reasons=[choices[0].finish_reason] if choices else [],
        tool_calls=[Call(call.function.name, call.function.arguments, call.id) for call in message.tool_calls or ()]
        or None,  # the agent looks for calls in the text, then
    )


def why(end: End) -> StopReason | tuple[StopReason, str]:
    """The agents return when they are cut off: their memory says it. An interruption has no type of its own."""
    last = end.self.memory.steps[-1]
    if isinstance(getattr(last, "error", None), AgentMaxStepsError):
        return StopReason.MAX_STEPS
    if end.error is None:
        return StopReason.SUCCESS
    return (StopReason.CANCELLED, "requested") if end.self.interrupt_switch else StopReason.MODEL_FAILED


# wrapper
def instrument(agent: MultiStepAgent) -> None:
    """The run and the requests of any agent."""
    ask, model = partial(loopspan.model_request, model=agent.model.model_id, read=read), agent.model
    model.generate, model.generate_stream = ask()(model.generate), ask()(model.generate_stream)
    agent.provide_final_answer = ask(step=False)(agent.provide_final_answer)
    agent.run = loopspan.agent_loop(type(agent).__name__, outcome=why, control_flow=(AgentError,))(agent.run)


# wrapper of ToolCallingAgent
def instrument_tools(agent: ToolCallingAgent) -> None:
    """One dispatcher for all tools; their ids are matched."""
    agent.execute_tool_call = loopspan.tool(call=Call)(agent.execute_tool_call)


# wrapper of CodeAgent
def instrument_code(agent: CodeAgent) -> None:
    """The code is a call, and so is each tool in it; they take the run along into the pool that runs the code."""
    agent.tools = {name: copy(each) for name, each in agent.tools.items()}  # other agents may have them too
    for name, each in agent.tools.items():
        each.forward = loopspan.tool(name)(each.forward)

    class Interpreter(type(agent.python_executor)):
        @loopspan.tool(call=lambda self, code: Call("python_interpreter", code, f"call_{len(agent.memory.steps)}"))
        def __call__(self, code: str) -> Any:
            self.send_tools({name: loopspan.carry(each) for name, each in (agent.tools | agent.managed_agents).items()})
            return super().__call__(code)

    agent.python_executor.__class__ = Interpreter


# end


class ScriptedModel(Model):
    """Answers what it is told to: a text, a list of tool calls; an exception is raised."""

    def __init__(self, *answers: str | list[ChatMessageToolCall] | Exception) -> None:
        super().__init__(model_id="scripted-1")
        self.answers = list(answers)

    def _next(self) -> tuple[str, list[ChatMessageToolCall]]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return (answer, []) if isinstance(answer, str) else ("", answer)

    def generate(self, messages: list[ChatMessage], **options: Any) -> ChatMessage:
        """A whole answer; `raw` holds the provider's own."""
        text, calls = self._next()
        choice = SimpleNamespace(finish_reason="tool_calls" if calls else "stop")
        return ChatMessage(
            "assistant",
            text,
            calls or None,
            raw=SimpleNamespace(choices=[choice]),
            token_usage=TokenUsage(input_tokens=100, output_tokens=20),
        )

    def generate_stream(self, messages: list[ChatMessage], **options: Any) -> Iterator[ChatMessageStreamDelta]:
        """The same in pieces; the last one says what was used."""
        text, calls = self._next()
        for line in text.splitlines(keepends=True):
            yield ChatMessageStreamDelta(content=line)
        for index, call in enumerate(calls):
            piece = ChatMessageToolCallStreamDelta(index, call.id, call.type, call.function)
            yield ChatMessageStreamDelta(tool_calls=[piece])
        yield ChatMessageStreamDelta(token_usage=TokenUsage(input_tokens=100, output_tokens=20))


def call(call_id: str, name: str, arguments: str) -> ChatMessageToolCall:
    """A tool call as a provider sends it."""
    return ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), call_id, "function")


def both() -> list[ChatMessageToolCall]:
    """Two calls at once."""
    return [call("c1", "price", '{"item": "apple"}'), call("c2", "price", '{"item": "pear"}')]


def final() -> list[ChatMessageToolCall]:
    """The call that ends a run."""
    return [call("c3", "final_answer", '{"answer": 7}')]


def code(text: str) -> str:
    """An answer of a model that writes code."""
    return f"Thought: try it.\n<code>\n{text}\n</code>"


@tool
def price(item: str) -> int:
    """The price of an item.

    Args:
        item: What to look up.
    """
    return {"apple": 3, "pear": 4}[item]


def tool_calling(*answers: Any, **options: Any) -> ToolCallingAgent:
    """A ToolCallingAgent as the package's users build it, then wrapped."""
    agent = ToolCallingAgent(
        [price], ScriptedModel(*answers), **{"max_steps": 5, "verbosity_level": LogLevel.OFF, **options}
    )
    instrument(agent)
    instrument_tools(agent)
    return agent


def coding(*answers: Any, **options: Any) -> CodeAgent:
    """A CodeAgent as the package's users build it, then wrapped."""
    agent = CodeAgent([price], ScriptedModel(*answers), **{"max_steps": 5, "verbosity_level": LogLevel.OFF, **options})
    instrument(agent)
    instrument_code(agent)
    return agent


def main(directory: Path) -> None:
    """Four runs: parallel calls, code, an answer in pieces, and one that never ends."""
    loopspan.setup(service_name="smolagents", file=directory / "spans.jsonl")
    assert tool_calling(both(), final()).run("What do both cost?") == 7
    assert coding(code("total = price('apple') + price(item='pear')"), code("final_answer(total)")).run("Both?") == 7
    assert list(tool_calling(both(), final(), stream_outputs=True).run("In pieces?", stream=True))[-1].output == 7
    assert coding(code("price('apple')"), code("price('pear')"), "About 7.", max_steps=2).run("Soon?") == "About 7."
    loopspan.flush()

    tools, coded, streamed, cut_off = loopspan.read_runlog(directory / "spans.jsonl").runs
    assert [run.stop_reason for run in (tools, coded, streamed)] == [StopReason.SUCCESS] * 3
    assert cut_off.stop_reason == StopReason.MAX_STEPS
    assert [(each.name, each.call_id) for each in tools.tool_calls] == [
        ("price", "c1"),
        ("price", "c2"),
        ("final_answer", "c3"),
    ]
    assert [each.name for each in coded.steps[0].tool_calls] == ["python_interpreter", "price", "price"]
    assert [len(run.steps) for run in (tools, coded, streamed, cut_off)] == [2, 2, 2, 2]
    assert [run.usage.input_tokens for run in (tools, coded, streamed, cut_off)] == [200, 200, 200, 300]
    for run in (tools, coded, streamed, cut_off):
        print(run.summary())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
