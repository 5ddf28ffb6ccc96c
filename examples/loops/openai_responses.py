"""A plain loop on the OpenAI SDK's responses API, as people write them, wrapped from outside.

`pip install openai`; a loopback server stands for the provider, so nothing here needs the network. The answers are
streamed, function calls run in a pool of threads (from a task by way of `run_in_executor`), failures go back to the
model as text, and the loop says with an exception that its turns are used up. `python openai_responses.py [directory]`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _servers import Reply, Server, function_call, output_text, response, response_events, stream
from openai import AsyncOpenAI, OpenAI

import loopspan
from loopspan import Call, End, StopReason

OVER = ("response.completed", "response.incomplete", "response.failed")
Item = dict[str, Any]


class TurnsExceeded(Exception):
    """How the loop says that it has had enough."""


class Agent:
    """The loop, which knows nothing of tracing."""

    def __init__(self, client: Any, pool: ThreadPoolExecutor, *functions: Callable[..., str], turns: int = 5) -> None:
        self.client = client
        self.pool = pool
        self.functions = {function.__name__: function for function in functions}
        self.turns = turns
        self.request = {"model": "gpt-test", "stream": True}

    def run(self, task: str) -> str:
        """Ask, call what is asked for, all at once, and ask again."""
        conversation: list[Any] = [{"role": "user", "content": task}]
        for _ in range(self.turns):
            with self.client.responses.create(input=conversation, **self.request) as events:
                (answer,) = [event.response for event in events if event.type in OVER]
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text
            futures = [self.pool.submit(self.call, item) for item in calls]
            conversation += [*answer.output, *(future.result() for future in futures)]
        raise TurnsExceeded(self.turns)

    def call(self, item: Any) -> Item:
        """Call a function; what the model may mend goes back to it."""
        try:
            output = self.functions[item.name](**json.loads(item.arguments))
        except (LookupError, TypeError, ValueError) as error:
            output = f"error: {error!r}"
        return {"type": "function_call_output", "call_id": item.call_id, "output": output}


class AsyncAgent(Agent):
    """The same in a task."""

    async def run(self, task: str) -> str:
        """Likewise."""
        conversation: list[Any] = [{"role": "user", "content": task}]
        for _ in range(self.turns):
            events = await self.client.responses.create(input=conversation, **self.request)
            (answer,) = [event.response async for event in events if event.type in OVER]
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text
            loop = asyncio.get_running_loop()
            outputs = await asyncio.gather(*(loop.run_in_executor(self.pool, self.call, item) for item in calls))
            conversation += [*answer.output, *outputs]
        raise TurnsExceeded(self.turns)


# hooks
def why(end: End) -> StopReason | tuple[StopReason, str]:
    """The loop raises when its turns are used up, and returns for every other ending: the last answer tells which."""
    if isinstance(end.error, TurnsExceeded):
        return StopReason.MAX_STEPS
    reason = end.last_answer.finish_reasons[-1] if end.last_answer else "failed"
    return StopReason.SUCCESS if reason == "completed" else (StopReason.MODEL_FAILED, reason)


def failed(item: Item) -> str | None:
    """The loop's own form of a failure."""
    return item["output"].partition("(")[0].removeprefix("error: ") if item["output"].startswith("error: ") else None


# wrapper
def instrument(agent: Agent) -> None:
    """The client's requests, the dispatcher, the pool, and the loop."""
    responses, submit = agent.client.responses, agent.pool.submit
    responses.create = loopspan.model_request(provider="openai")(responses.create)
    named = loopspan.tool(call=lambda item: Call(item.name, item.arguments, item.call_id), failure=failed)
    agent.call = named(agent.call)
    agent.pool.submit = lambda work, *args: submit(loopspan.carry(work), *args)
    agent.run = loopspan.agent_loop("responses", outcome=why, control_flow=(TurnsExceeded,))(agent.run)


# end


def price(item: str) -> str:
    """Look up a price."""
    return {"apple": "3", "pear": "4"}[item]


def build(url: str, *functions: Callable[..., str], turns: int = 5) -> Agent:
    """An agent, then wrapped. Who uses it closes the client and the pool."""
    client = OpenAI(api_key="none", base_url=url, max_retries=0)
    agent = Agent(client, ThreadPoolExecutor(2), *(functions or (price,)), turns=turns)
    instrument(agent)
    return agent


def build_async(url: str, *functions: Callable[..., str], turns: int = 5) -> AsyncAgent:
    """The same for a task."""
    client = AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
    agent = AsyncAgent(client, ThreadPoolExecutor(2), *(functions or (price,)), turns=turns)
    instrument(agent)
    return agent


def use(agent: Agent, task: str = "What do they cost?") -> str:
    """Run the loop once, then close what it was built from."""
    with agent.client, agent.pool:
        return agent.run(task)


async def use_async(agent: AsyncAgent, task: str = "What do they cost?") -> str:
    """Likewise."""
    async with agent.client:
        with agent.pool:
            return await agent.run(task)


def streamed(answer: Any, breaks_after: int | None = None) -> Reply:
    """An answer as its events."""
    return stream(response_events(answer), breaks_after)


def script() -> list[Reply]:
    """Three calls at once, one of them for something that nobody knows, then the answer."""
    calls = [function_call(f"call_{n}", "price", item=item) for n, item in enumerate(("apple", "pear", "plum"), 1)]
    return [streamed(response(1, *calls)), streamed(response(2, output_text("3, 4, and who knows.")))]


def main(directory: Path) -> None:
    """Three runs: with threads, with a task and threads, and one that is cut off."""
    loopspan.setup(service_name="openai", file=directory / "spans.jsonl")
    with Server([*script(), *script(), *script()[:1]]) as server:
        assert use(build(server.url)) == "3, 4, and who knows."
        assert asyncio.run(use_async(build_async(server.url))) == "3, 4, and who knows."
        try:
            use(build(server.url, turns=1))
        except TurnsExceeded as error:
            print("cut off after", *error.args)
    loopspan.flush()

    runs = loopspan.read_runlog(directory / "spans.jsonl").runs
    assert [run.stop_reason for run in runs] == [StopReason.SUCCESS] * 2 + [StopReason.MAX_STEPS]
    for run in runs:
        first = run.steps[0]
        assert (first.usage.input_tokens, first.usage.output_tokens) == (201, 21)
        calls = sorted((call.call_id, call.name, call.outcome) for call in first.tool_calls)
        assert calls == [("call_1", "price", "ok"), ("call_2", "price", "ok"), ("call_3", "price", "failed")]
        print(run.summary())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
