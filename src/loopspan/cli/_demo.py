"""`loopspan demo`: an agent loop as people write it, with three decorators, and a scripted model for a real one.

What the decorators see: a read that fails once and is repeated, arguments that the model wrote wrongly and is told so,
a second tool, what each request used, and why the run stopped.
"""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import loopspan
from loopspan import Cost, Retry, Usage, _config

_failed_reads = 0


@loopspan.tool(effect="read_only", retry=Retry(max_attempts=2, on=(ConnectionError,), wait=0.1))
def get_status(project: str) -> dict[str, str]:
    """Read the state of a project's build; the first read of the process fails."""
    global _failed_reads
    if not _failed_reads:
        _failed_reads += 1
        raise ConnectionError("temporary read failure")
    return {"project": project, "status": "red", "job": "lint"}


@loopspan.tool(effect="read_only")
def get_log(job: str, lines: int) -> str:
    """Read the last lines of a job's log."""
    return "\n".join([f"{job}: 1 error", "app.py:3: unused import"][:lines])


tools = loopspan.Toolbox(get_status, get_log)


def _asks(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": f"call_{name}_{len(arguments)}", "type": "function"}
    return {"role": "assistant", "tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]}


SCRIPT = [
    _asks("get_status", '{"project": "demo"}'),
    _asks("get_log", '{"job": "lint", "lines": "a few'),
    _asks("get_log", '{"job": "lint", "lines": 2}'),
    {"role": "assistant", "content": "The build is red: app.py imports something that it does not use."},
]
"""What the model answers, turn by turn; the second answer breaks off in the middle of its arguments."""


@loopspan.model_request(provider="scripted", model="script-1")
def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand in for a chat completion, in OpenAI's form."""
    turn = sum(message["role"] == "assistant" for message in messages)
    message = SCRIPT[turn]
    usage = {"prompt_tokens": 90 + 60 * turn, "completion_tokens": 20, "total_tokens": 110 + 60 * turn}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return {"id": f"answer-{turn}", "model": "script-1", "usage": usage,
            "choices": [{"message": message, "finish_reason": finish}]}  # fmt: skip


@loopspan.agent_loop(name="build-watch", max_steps=8)
def watch(task: str) -> str:
    """The loop: ask the model, run what it asks for, tell it what came of it, until it has an answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    while True:
        message = ask(messages)["choices"][0]["message"]
        messages.append(message)
        if "tool_calls" not in message:
            return str(message["content"])
        for call in message["tool_calls"]:
            function = call["function"]
            result = tools.call(function["name"], function["arguments"], call_id=call["id"], on_error="return")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})


def price(provider: str | None, model: str | None, usage: Usage) -> Cost:
    """A made-up price, and marked as such: 1 USD for a million tokens."""
    return Cost(Decimal(usage.total_tokens or 0) / 1_000_000, source="simulated")


def traced(file: Path | None) -> tuple[Path, str]:
    """Run the loop with its spans going to `file`, else to a new temporary one. Returns the file and the run's id."""
    path = file or Path(tempfile.mkdtemp(prefix="loopspan-demo-")) / "spans.jsonl"
    loopspan.setup(service_name="loopspan-demo", file=path)
    _config.change(log_sinks=())
    with loopspan.configure(prices=price), loopspan.context(goal="find out why the build is red") as facts:
        watch("Why is the build of demo red?")
    loopspan.flush()
    return path, str(facts.run_id)
