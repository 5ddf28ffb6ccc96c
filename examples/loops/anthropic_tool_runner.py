"""The Anthropic SDK's own loop, `client.beta.messages.tool_runner`, not modified, wrapped from outside on the client.

`pip install anthropic`; a loopback server stands for the provider, so nothing here needs the network. The runner is an
object that is iterated, or read with `until_done()`; its requests may be streams; it returns for most endings; it calls
a tool without telling it the call's id; and since 1.17 the SDK makes OpenTelemetry spans of its own
(`Anthropic(open_telemetry=False)` switches them off). `python anthropic_tool_runner.py [directory]`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _servers import Reply, Server, message, message_events, stream, tool_use, whole
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool

import loopspan
from loopspan import Call, End, StopReason

Reason = StopReason | tuple[StopReason, str]

# hooks
ENDINGS: dict[str | None, Reason] = {
    "end_turn": StopReason.SUCCESS,
    "stop_sequence": StopReason.SUCCESS,
    "tool_use": StopReason.MAX_STEPS,  # it asked for more, and the runner did not go on: `max_iterations`
    "refusal": (StopReason.MODEL_FAILED, "refusal"),
}


def why(end: End) -> Reason:
    """The runner just stops, whatever happened; why the last answer ended tells the reason."""
    reasons = end.last_answer.finish_reasons if end.last_answer else ()
    return ENDINGS.get(str(reasons[-1]) if reasons else None, (StopReason.MODEL_FAILED, "length"))


def named(name: str) -> Callable[[dict[str, Any]], Call]:
    """Which tool it is: the runner hands over what the model wrote, and nothing else."""
    return lambda arguments: Call(name, arguments)


# wrapper
def instrument(client: Anthropic | AsyncAnthropic, tools: list[Any]) -> None:
    """The requests that the runner makes, the tools that it calls, and the runner itself."""
    messages: Any = client.beta.messages
    for name in ("parse", "stream", "create"):
        setattr(messages, name, loopspan.model_request(provider="anthropic")(getattr(messages, name)))
    for each in tools:
        each.call = loopspan.tool(call=named(each.name))(each.call)
    messages.tool_runner = loopspan.agent_loop("tool-runner", outcome=why)(messages.tool_runner)


# end


def weather(city: str, unit: str = "celsius") -> str:
    """Look up the weather.

    Args:
        city: where
        unit: celsius or fahrenheit
    """
    return {"Paris": "sunny", "Rome": "rain"}[city] + f", 21 {unit}"


async def weather_async(city: str, unit: str = "celsius") -> str:
    """Look up the weather."""
    await asyncio.sleep(0)
    return weather(city, unit)


MODEL = {"model": "claude-test", "max_tokens": 100}
ASKING = {**MODEL, "messages": [{"role": "user", "content": "What is the weather in Paris and in Rome?"}]}


def build(url: str, **options: Any) -> tuple[Anthropic, list[Any]]:
    """A client and its tools as the SDK's users make them, then wrapped."""
    client = Anthropic(api_key="none", base_url=url, max_retries=0, **{"open_telemetry": False, **options})
    tools = [beta_tool(weather)]
    instrument(client, tools)
    return client, tools


def build_async(url: str, **options: Any) -> tuple[AsyncAnthropic, list[Any]]:
    """The same for coroutines."""
    client = AsyncAnthropic(api_key="none", base_url=url, max_retries=0, **{"open_telemetry": False, **options})
    tools = [beta_async_tool(weather_async, name="weather")]
    instrument(client, tools)
    return client, tools


def script(as_reply: Callable[[Any], Reply]) -> list[Reply]:
    """Two calls at once, then the answer."""
    calls = tool_use("toolu_1", "weather", city="Paris"), tool_use("toolu_2", "weather", city="Rome")
    return [as_reply(message(1, "Let me see.", *calls)), as_reply(message(2, "Sunny in Paris, rain in Rome."))]


def streamed(answer: Any) -> Reply:
    """An answer as its events."""
    return stream(message_events(answer))


def ask(url: str) -> str:
    """As the SDK's documentation does it: read the runner to its end."""
    client, tools = build(url)
    with client:
        return client.beta.messages.tool_runner(tools=tools, **ASKING).until_done().content[-1].text


def ask_streamed(url: str) -> str:
    """Likewise, with the text as it comes."""
    client, tools = build(url)
    with client:
        runner = client.beta.messages.tool_runner(tools=tools, stream=True, **ASKING)
        return "|".join("".join(answer.text_stream) for answer in runner)


async def ask_async(url: str) -> str:
    """Likewise in a task, event by event."""
    client, tools = build_async(url)
    async with client:
        async for answer in client.beta.messages.tool_runner(tools=tools, stream=True, **ASKING):
            async for event in answer:
                last = event
    return last.message.content[-1].text


def main(directory: Path) -> None:
    """Four runs: whole answers, streamed text, a task, and one that is cut off."""
    loopspan.setup(service_name="anthropic", file=directory / "spans.jsonl")
    with Server([*script(whole), *script(streamed), *script(streamed), *script(whole)[:1]]) as server:
        assert ask(server.url) == "Sunny in Paris, rain in Rome."
        assert ask_streamed(server.url) == "Let me see.|Sunny in Paris, rain in Rome."
        assert asyncio.run(ask_async(server.url)) == "Sunny in Paris, rain in Rome."
        client, tools = build(server.url)
        with client:
            client.beta.messages.tool_runner(tools=tools, max_iterations=1, **ASKING).until_done()
    loopspan.flush()

    runs = loopspan.read_runlog(directory / "spans.jsonl").runs
    assert [run.stop_reason for run in runs] == [StopReason.SUCCESS] * 3 + [StopReason.MAX_STEPS]
    for run in runs:
        first = run.steps[0]
        assert (first.usage.input_tokens, first.usage.output_tokens) == (101, 11)
        assert first.requests[0].finish_reasons == ["tool_use"]
        calls = [(call.name, call.call_id, call.id_source, call.outcome) for call in first.tool_calls]
        assert calls == [("weather", f"toolu_{number}", "matched", "ok") for number in (1, 2)]
        print(run.summary())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
