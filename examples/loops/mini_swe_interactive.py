"""mini-swe-agent's interactive agent as published, wrapped from outside: a person confirms what it does.

`pip install mini-swe-agent`; its own scripted model and real bash, nothing needs the network. The agent asks through
one method and raises for a no, so that a rejected action never reaches the environment. Waiting for the person is not
working. `python mini_swe_interactive.py [directory]`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
os.environ.setdefault("MSWEA_GLOBAL_CONFIG_DIR", tempfile.mkdtemp())  # it keeps what people type; else in their home

from minisweagent.agents import interactive
from minisweagent.agents.interactive import InteractiveAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.exceptions import FormatError, Submitted, UserInterruption
from minisweagent.models.test_models import DeterministicModel, make_output

import loopspan
from loopspan import Answer, Call, Cost, End, StopReason, Usage


# hooks
def why(end: End) -> StopReason:
    """The loop returns for every ending, with a status of its own."""
    names = {"Submitted": "success", "LimitsExceeded": "max_steps", "TimeExceeded": "timeout"}
    return StopReason(names.get(end.result["exit_status"], "model_failed"))


def read(message: dict[str, Any]) -> Answer:
    """An answer in the package's own form."""
    of, calls = message["extra"], [Call("bash", action) for action in message["extra"]["actions"]]
    return Answer(usage=Usage.parse(of["usage"]), cost=Cost(of["cost"]), finish_reasons=of["ends"], tool_calls=calls)


def bash(action: dict[str, Any], *_: Any, **__: Any) -> Call:
    """Which call an action is."""
    return Call("bash", {"command": action["command"]})


def ask(agent: InteractiveAgent) -> tuple[Callable[..., str], Callable[[list[str]], None]]:
    """The agent's way to ask anything, and to ask for actions: what is rejected is a call that was denied."""
    prompt, confirm = agent._prompt_and_handle_slash_commands, agent._ask_confirmation_or_interrupt
    rejected = loopspan.tool(call=bash, permission=lambda action: "the person said no")(agent.env.execute)

    def asked(text: str, **options: Any) -> str:
        with loopspan.human_wait("approval" if "Execute" in text else "input") as wait:
            said = prompt(text, **options)
            wait.decided(said.strip() in ("", "/y"), by="user")
        return said

    def confirmed(commands: list[str]) -> None:
        try:
            confirm(commands)
        except UserInterruption:
            for command in commands:
                with contextlib.suppress(loopspan.PermissionDenied):
                    rejected({"command": command})
            raise

    return asked, confirmed


# wrapper
def instrument(agent: InteractiveAgent) -> None:
    """The model, the person, the environment, and the loop."""
    billed = {"parse_errors": (FormatError,), "read_error": lambda error: read(error.messages[0])}
    known = {"provider": "scripted", "model": "scripted-1"}
    agent.model.query = loopspan.model_request(read=read, **known, **billed)(agent.model.query)
    agent._prompt_and_handle_slash_commands, agent._ask_confirmation_or_interrupt = ask(agent)
    agent.env.execute = loopspan.tool(
        call=bash,
        failure=lambda output: f"exit status {output['returncode']}" if output["returncode"] else None,
        control_flow=(Submitted,),
    )(agent.env.execute)
    agent.run = loopspan.agent_loop("mini-swe-interactive", outcome=why)(agent.run)


# end


SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat answer"


def says(content: str, *commands: str, end: str = "stop") -> dict[str, Any]:
    """A scripted answer that was billed."""
    message = make_output(content, [{"command": command} for command in commands], cost=0.01)
    message["extra"] |= {"usage": {"prompt_tokens": 100, "completion_tokens": 20}, "ends": [end]}
    return message


class ScriptedModel(DeterministicModel):
    """The package's test model; an answer without a command cannot be parsed, after it was billed."""

    def query(self, messages: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
        """Answer the next scripted message."""
        message = super().query(messages, **options)
        if not message["extra"]["actions"]:
            raise FormatError({"role": "user", "content": "Please give exactly one action.", "extra": message["extra"]})
        return message


class Person:
    """Who sits in front of the terminal: takes a moment, then says the next thing; an exception is raised."""

    def __init__(self, *words: str | BaseException, think: Callable[[], None]) -> None:
        self.words = list(words)
        self.think = think

    def __call__(self, *_: Any, **__: Any) -> str:
        """What the package's prompt returns."""
        self.think()
        said = self.words.pop(0)
        if isinstance(said, BaseException):
            raise said
        return said


def build(directory: Path, *answers: dict[str, Any], **options: Any) -> InteractiveAgent:
    """An agent as the package's users build it, then wrapped."""
    interactive.console.quiet = True
    agent = InteractiveAgent(
        ScriptedModel(outputs=list(answers)),
        LocalEnvironment(cwd=str(directory)),
        **{
            "system_template": "You are a helpful assistant.",
            "instance_template": "{{task}}",
            "cost_limit": 0,
            **options,
        },
    )
    instrument(agent)
    return agent


def main(directory: Path) -> None:
    """One run: an action is rejected, the next two are confirmed, and the end as well."""
    loopspan.setup(service_name="mini-swe-agent", file=directory / "spans.jsonl")
    interactive.prompt_session.prompt = Person("not that one", "", "", "", think=lambda: time.sleep(0.05))
    agent = build(
        directory,
        says("clean up first", "rm -f answer"),
        says("write it", "echo 42 > answer"),
        says("hand it in", SUBMIT),
    )
    assert agent.run("write 42 into the file answer")["submission"].strip() == "42"
    loopspan.flush()

    (run,) = loopspan.read_runlog(directory / "spans.jsonl").runs
    assert run.stop_reason == StopReason.SUCCESS
    assert [(call.name, call.outcome, call.entries) for call in run.tool_calls] == [
        ("bash", "denied", 0),
        ("bash", "ok", 1),
        ("bash", "ok", 1),
    ]
    (closing,) = [entry.event for entry in run.log if entry.name == "run_trace_closed"]
    assert closing.waiting_s >= 4 * 0.05
    assert (run.usage.input_tokens, run.usage.output_tokens) == (300, 60)
    print(run.summary())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
