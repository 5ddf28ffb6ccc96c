"""gptme's chat loop as published, wrapped from outside: its tools are generators, its model is chosen for each request.

`pip install gptme`; its own offline provider is scripted, nothing needs the network. The loop returns None for every
ending and leaves what happened in the conversation whose directory it was given. `python gptme_chat.py [directory]`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("GPTME_TIKTOKEN_TIMEOUT", "0")  # or it looks for a tokenizer in the network

import gptme.chat
import gptme.llm
from gptme.constants import DECLINED_CONTENT, INTERRUPT_CONTENT
from gptme.llm import llm_mock
from gptme.logmanager import Log
from gptme.message import Message
from gptme.tools import ToolUse

import loopspan
from loopspan import Answer, Call, Cost, End, StopReason, Streamed, Usage


# hooks
def read(message: Message) -> Answer:
    """What an answer says; its calls stand in its text."""
    about = message.metadata or {}
    calls = [which(use) for use in ToolUse.iter_from_content(message.content)]
    cost = Cost(about["cost"]) if about.get("cost") else None
    return Answer(usage=Usage.parse(about.get("usage")), cost=cost, model=about.get("served_model"), tool_calls=calls)


def which(use: ToolUse, *_: Any, **__: Any) -> Call:
    """Which call a tool is asked for."""
    return Call(use.tool, use.kwargs or {"args": use.args, "content": use.content}, use.call_id)


def failure(result: Streamed) -> str | None:
    """A tool yields messages, and tells of its failure in one."""
    for message in result.chunks:
        if message.content in (DECLINED_CONTENT, "Declined by user"):
            return "declined"
        if message.content.startswith("Error"):
            return "tool_error"
    return None


def why(end: End) -> StopReason | tuple[StopReason, str]:
    """The loop returns None; the end of its conversation tells."""
    for message in reversed(Log.read_jsonl(end.arguments["logdir"] / "conversation.jsonl").messages):
        if (message.metadata or {}).get("max_steps_stop"):
            return StopReason.MAX_STEPS
        if message.content == INTERRUPT_CONTENT:
            return StopReason.CANCELLED, "keyboard_interrupt"
        if message.content == DECLINED_CONTENT:
            return StopReason.APPROVAL_DENIED
        if message.role != "system":
            break
    return StopReason.SUCCESS


# wrapper
def instrument() -> None:
    """The chat, what asks the model, and what runs a tool."""
    gptme.llm._reply_after_hooks = loopspan.model_request(  # hooks of its own may refuse a request before that
        provider=lambda messages, model, *_: model.split("/")[0],
        model=lambda messages, model, *_: model.split("/", 1)[1],
        read=read,
    )(gptme.llm._reply_after_hooks)
    ToolUse.execute = loopspan.tool(call=which, failure=failure)(ToolUse.execute)
    gptme.chat.chat = loopspan.agent_loop("gptme", outcome=why)(gptme.chat.chat)


# end


class Script:
    """What gptme's offline provider answers; an exception is raised, a function is called."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def chat(self, messages: list[Message], model: str, *_: Any, **__: Any) -> tuple[str, dict[str, Any]]:
        """A whole answer."""
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        answer = answer() if callable(answer) else answer
        usage = {"input_tokens": 100, "output_tokens": 20}
        return answer, {"model": model, "served_model": "mock-1", "usage": usage, "cost": 0.01}

    def stream(self, messages: list[Message], model: str, *_: Any, **__: Any) -> Iterator[str]:
        """The same in pieces."""
        answer, about = self.chat(messages, model)
        yield from answer.splitlines(keepends=True)
        return about


SCRIPT = Script()
llm_mock.chat, llm_mock.stream = SCRIPT.chat, SCRIPT.stream
TOOLS = ["save", "patch", "complete"]
SAVE = "I write it down.\n```save answer.txt\n42\n```\n"
DONE = "That is all.\n```complete\n```\n"


def talk(directory: Path, name: str, *answers: Any, prompts: tuple[str, ...] = ("Please.",), **options: Any) -> None:
    """A conversation as gptme's command line starts it, with nobody at the terminal."""
    SCRIPT.answers[:] = answers
    (directory / name).mkdir()
    (directory / name / "config.toml").write_text(f'[chat]\nname = "{name}"\n')
    asked = [Message("user", prompt) for prompt in prompts]
    started = [Message("system", "You are a helpful assistant.")]
    usual = {"stream": False, "no_confirm": True, "interactive": False, "tool_format": "markdown"}
    gptme.chat.chat(
        asked, started, directory / name, directory, "mock/static", tool_allowlist=TOOLS, **(usual | options)
    )


def main(directory: Path) -> None:
    """Three runs: a tool, two models in one conversation, and one that never ends."""
    loopspan.setup(service_name="gptme", file=directory / "spans.jsonl")
    instrument()
    talk(directory, "saves", SAVE, DONE)
    assert (directory / "answer.txt").read_text() == "42\n"
    talk(directory, "asks-two", "I am one.\n" + DONE, DONE, prompts=("Who?", "/model mock/echo", "Who?"))
    os.environ["GPTME_MAX_STEPS"] = "2"
    talk(directory, "never-ends", SAVE, SAVE, SAVE)
    loopspan.flush()

    saves, asks_two, never_ends = loopspan.read_runlog(directory / "spans.jsonl").runs
    assert [run.stop_reason for run in (saves, asks_two)] == [StopReason.SUCCESS] * 2
    assert never_ends.stop_reason == StopReason.MAX_STEPS
    assert [(call.name, call.outcome) for call in saves.tool_calls] == [("save", "ok"), ("complete", "ok")]
    assert [step.requests[0].model for step in asks_two.steps] == ["static", "echo"]
    assert [run.usage.input_tokens for run in (saves, asks_two, never_ends)] == [200] * 3
    for run in (saves, asks_two, never_ends):
        print(run.summary())


def isolate(directory: Path) -> None:
    """Let gptme keep its configuration and its conversations in `directory`."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        os.environ[variable] = str(directory / variable.lower())


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    isolate(folder)
    main(folder)
