"""The agent loop that is measured: ten steps, one request each, one or two tool calls, answers of OpenAI's form.

`plain_loop` is the loop as it stands; `decorated_loop` is the same function with loopspan's decorators and Toolbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import loopspan

STEPS = 10
TEXT = "The build log says that the test of the parser fails since yesterday. " * 4

Message = dict[str, Any]
Ask = Callable[[list[Message]], dict[str, Any]]
CallTool = Callable[..., Any]


def read_file(path: str, limit: int = 100) -> str:
    """Read the first lines of a file."""
    return TEXT


def search(query: str, limit: int = 10) -> str:
    """Search the sources."""
    return TEXT


PLAIN_TOOLS: dict[str, Callable[..., str]] = {"read_file": read_file, "search": search}


class Wanted(NamedTuple):
    """A tool call that the model asks for."""

    call_id: str | None
    name: str
    arguments: str

    def in_openai_form(self) -> Message:
        """As it stands in an answer."""
        return {
            "id": self.call_id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


def answer(number: int, calls: list[Wanted]) -> dict[str, Any]:
    """Answer `number` of a run, a chat completion as JSON gives it."""
    message = {
        "role": "assistant",
        "content": TEXT if not calls else None,
        "refusal": None,
        "annotations": [],
        "tool_calls": [call.in_openai_form() for call in calls] or None,
    }
    return {
        "id": f"chatcmpl-{number:08}",
        "object": "chat.completion",
        "created": 1_760_000_000 + number,
        "model": "gpt-4.1-2025-04-14",
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if calls else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 1000 + 150 * number,
            "completion_tokens": 80,
            "total_tokens": 1080 + 150 * number,
            "prompt_tokens_details": {"cached_tokens": 900, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_0a1b2c3d4e",
    }


def wanted(number: int, *, ids: bool = True) -> list[Wanted]:
    """The calls that answer `number` asks for; every eighth one asks for two."""
    reading = Wanted(f"call_{number}_a" if ids else None, "read_file", json.dumps({"path": f"src/{number}.py"}))
    searching = Wanted(f"call_{number}_b" if ids else None, "search", json.dumps({"query": "parse", "limit": number}))
    return [reading, searching] if number % 8 == 1 else [reading]


def _script() -> dict[int, dict[str, Any]]:
    """The answers of a run by the number of messages that they answer."""
    script, length = {}, 2
    for number in range(STEPS - 1):
        calls = wanted(number)
        script[length] = answer(number, calls)
        length += 1 + len(calls)
    script[length] = answer(STEPS - 1, [])
    return script


SCRIPT = _script()


def ask(messages: list[Message]) -> dict[str, Any]:
    """The next answer."""
    return SCRIPT[len(messages)]


def call_plainly(name: str, arguments: str, *, call_id: str | None = None) -> Any:
    """Call a tool the way that a loop without an allowlist does."""
    return PLAIN_TOOLS[name](**json.loads(arguments))


def make_loop(ask: Ask, call_tool: CallTool) -> Callable[[str], str]:
    """The loop around a model and tools."""

    def fix_build(task: str) -> str:
        messages: list[Message] = [{"role": "system", "content": TEXT}, {"role": "user", "content": task}]
        while True:
            message = ask(messages)["choices"][0]["message"]
            messages.append(message)
            if not message["tool_calls"]:
                return str(message["content"])
            messages.extend(result_of(wanted, call_tool) for wanted in message["tool_calls"])

    return fix_build


def result_of(wanted: Message, call_tool: CallTool) -> Message:
    """Call the tool, and the message that tells the model."""
    function, call_id = wanted["function"], wanted["id"]
    result = call_tool(function["name"], function["arguments"], call_id=call_id)
    message = {"role": "tool", "content": result}
    return message if call_id is None else {**message, "tool_call_id": call_id}


def endless_loop(ask: Ask, call_tool: CallTool, *, ids: bool = True) -> Callable[[], Iterator[int]]:
    """A loop that never decides to end; its reader takes one step at a time."""

    def watch_builds() -> Iterator[int]:
        messages: list[Message] = [{"role": "system", "content": TEXT}, {"role": "user", "content": "watch"}]
        number = 0
        while True:
            message = ask(messages, number, ids=ids)["choices"][0]["message"]  # type: ignore[call-arg]  # see `ask_on`
            messages.append(message)
            messages += [result_of(wanted, call_tool) for wanted in message["tool_calls"]]
            number += 1
            yield number

    return watch_builds


def ask_on(messages: list[Message], number: int, *, ids: bool = True) -> dict[str, Any]:
    """Answer `number` of an endless run."""
    return answer(number, wanted(number, ids=ids))


ask_model = loopspan.model_request(provider="openai", model="gpt-4.1")
toolbox = loopspan.Toolbox(*(loopspan.tool(effect="read_only")(tool) for tool in PLAIN_TOOLS.values()))

plain_loop = make_loop(ask, call_plainly)
decorated_loop = loopspan.agent_loop("fix-build")(make_loop(ask_model(ask), toolbox.call))
