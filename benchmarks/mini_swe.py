"""What the decorators add to a published loop: mini-swe-agent, scripted, with an environment that does nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import loopspan
from benchmarks._measure import Figure, Row, in_turn
from benchmarks._twin import Counting, sdk
from loopspan import Answer, Call, End, StopReason, Usage

STEPS = 20
MOST_US = 100
MOST_PERCENT = 3


def added(options: Any) -> list[Row]:
    """Microseconds of CPU a step, with all spans made and without an SDK; the bound is 100 us, or 3 % of the loop."""
    plain, ours = loop(), instrumented()
    with loopspan.configure(tracer_provider=sdk(Counting())):
        heard = in_turn(ours, plain)
    with loopspan.configure(tracer_provider=None):
        unheard = in_turn(ours, plain)
    own = Figure.of(alone / STEPS * 1e6 for _, alone in heard)
    most = max(MOST_US, own.median * MOST_PERCENT / 100)
    return [
        Row("CPU of a step of mini-swe-agent by itself", own, unit="us"),
        Row("  added with an SDK that makes the spans", _a_step(heard), most, most, "us"),
        Row("  added without an SDK", _a_step(unheard), most, most, "us"),
    ]


def _a_step(rounds: list[list[float]]) -> Figure:
    return Figure.of((ours - alone) / STEPS * 1e6 for ours, alone in rounds)


def loop() -> Callable[[], Any]:
    """The agent as its users build it; each call is one run of it."""
    agent = _agent()
    return lambda: _again(agent)


def instrumented() -> Callable[[], Any]:
    """The same, wrapped from outside."""
    agent = _agent()
    agent.model.query = loopspan.model_request(provider="scripted", read=_read)(agent.model.query)
    agent.env.execute = loopspan.tool(
        call=lambda action: Call("bash", {"command": action["command"]}),
        failure=lambda output: output["returncode"] or None,
        control_flow=_submitted(),
    )(agent.env.execute)
    agent.run = loopspan.agent_loop("mini-swe-agent", outcome=_why)(agent.run)
    return lambda: _again(agent)


def _again(agent: Any) -> Any:
    agent.model.current_index, agent.n_calls = -1, 0
    return agent.run("do nothing")


def _read(message: dict[str, Any]) -> Answer:
    said = message["extra"]
    calls = [Call("bash", {"command": action["command"]}) for action in said["actions"]]
    return Answer(usage=Usage.parse(said["usage"]), model="scripted-1", finish_reasons=["stop"], tool_calls=calls)


def _why(end: End) -> StopReason:
    return StopReason.SUCCESS if end.result["exit_status"] == "Submitted" else StopReason.LOOP_ERROR


def _agent() -> Any:
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    os.environ.setdefault("MSWEA_GLOBAL_CONFIG_DIR", tempfile.gettempdir())
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.models.test_models import DeterministicModel

    outputs = [_output(f"true {number}") for number in range(STEPS - 1)] + [_output("submit")]
    return DefaultAgent(
        DeterministicModel(outputs=outputs),
        _nothing(),
        system_template="You are a helpful assistant.",
        instance_template="{{task}}",
        cost_limit=0,
    )


def _output(command: str) -> dict[str, Any]:
    from minisweagent.models.test_models import make_output

    message: dict[str, Any] = make_output(f"I shall run {command}.", [{"command": command}], cost=0.01)
    message["extra"]["usage"] = {"prompt_tokens": 1000, "completion_tokens": 80}
    return message


def _submitted() -> tuple[type[BaseException], ...]:
    return (sys.modules["minisweagent.exceptions"].Submitted,)


def _nothing() -> Any:
    """An environment that does nothing, and says that the task is done when it is told to submit."""
    from minisweagent.environments.local import LocalEnvironment

    class Nothing(LocalEnvironment):  # type: ignore[misc]  # the package has no types of its own here
        def execute(self, action: dict[str, Any]) -> dict[str, Any]:
            submits = action["command"] == "submit"
            output = {
                "output": "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n" if submits else "",
                "returncode": 0,
                "exception_info": "",
            }
            self._check_finished(output)
            return output

    return Nothing()
