"""smolagents' agents: every request, every call under its step, and why the run ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from smolagents import ActionStep, AgentError

from loops import published
from loops.outlines import durations, outline
from loopspan.testing import Captured, TickingClock, capture

agents = published.load("smolagents_agents")
TOO_LATE = "I would say 7."


def read(run: Any) -> Any:
    """The answer of a run that is streamed."""
    return list(run)[-1].output


def test_parallel_calls_are_siblings_under_their_step(loopspan_capture: Captured):
    assert agents.tool_calling(agents.both(), agents.final()).run("Both?") == 7
    assert outline(loopspan_capture) == (
        "invoke_agent ToolCallingAgent success\n"
        "  step 1\n"
        "    chat scripted-1 100 20 tool_calls\n"
        "    execute_tool price c1 matched\n"
        "      attempt price\n"
        "    execute_tool price c2 matched\n"
        "      attempt price\n"
        "  step 2\n"
        "    chat scripted-1 100 20 tool_calls\n"
        "    execute_tool final_answer c3 matched\n"
        "      attempt final_answer"
    )


def test_tools_in_code_are_under_the_call_of_the_interpreter(loopspan_capture: Captured):
    first, second = agents.code("total = price('apple') + price(item='pear')"), agents.code("final_answer(total)")
    assert agents.coding(first, second).run("Both?") == 7
    assert outline(loopspan_capture) == (
        "invoke_agent CodeAgent success\n"
        "  step 1\n"
        "    chat scripted-1 100 20 stop\n"
        "    execute_tool python_interpreter call_1\n"
        "      attempt python_interpreter\n"
        "        execute_tool price call_1_1 generated\n"
        "          attempt price\n"
        "        execute_tool price call_1_2 generated\n"
        "          attempt price\n"
        "  step 2\n"
        "    chat scripted-1 100 20 stop\n"
        "    execute_tool python_interpreter call_2\n"
        "      attempt python_interpreter\n"
        "        execute_tool final_answer call_2_1 generated\n"
        "          attempt final_answer"
    )
    prices = [span for span in loopspan_capture.spans if span.name == "execute_tool price"]
    arguments = [span.attributes["gen_ai.tool.call.arguments"] for span in prices]
    assert arguments == ['{"item":"apple"}', '{"item":"pear"}']


@pytest.mark.parametrize("pieces", [False, True])
def test_a_streamed_run_gives_the_same_trace(loopspan_capture: Captured, pieces: bool):
    agent = agents.tool_calling(agents.both(), agents.final(), stream_outputs=pieces)
    assert read(agent.run("Both?", stream=True)) == 7
    reason = "" if pieces else " tool_calls"  # which the pieces do not tell
    assert outline(loopspan_capture) == (
        "invoke_agent ToolCallingAgent success\n"
        "  step 1\n"
        f"    chat scripted-1 100 20{reason}\n"
        "    execute_tool price c1 matched\n"
        "      attempt price\n"
        "    execute_tool price c2 matched\n"
        "      attempt price\n"
        "  step 2\n"
        f"    chat scripted-1 100 20{reason}\n"
        "    execute_tool final_answer c3 matched\n"
        "      attempt final_answer"
    )


def test_what_fails_goes_back_to_the_model_and_is_on_record(loopspan_capture: Captured):
    unknown, missing = agents.call("c1", "weigh", "{}"), agents.call("c2", "price", '{"item": "plum"}')
    assert agents.tool_calling([unknown], [missing], agents.final()).run("Plums?") == 7
    assert outline(loopspan_capture) == (
        "invoke_agent ToolCallingAgent success\n"
        "  step 1\n"
        "    chat scripted-1 100 20 tool_calls\n"
        "    execute_tool weigh c1 matched failed\n"
        "      attempt weigh failed\n"
        "  step 2\n"
        "    chat scripted-1 100 20 tool_calls\n"
        "    execute_tool price c2 matched failed\n"
        "      attempt price failed\n"
        "  step 3\n"
        "    chat scripted-1 100 20 tool_calls\n"
        "    execute_tool final_answer c3 matched\n"
        "      attempt final_answer"
    )


def test_code_that_fails_marks_the_tool_and_the_interpreter(loopspan_capture: Captured):
    agent = agents.coding(agents.code("price('plum')"), "no code at all", agents.code("final_answer(0)"))
    assert agent.run("Plums?") == 0
    (run,) = loopspan_capture.runs
    outcomes = [[(call.name, call.outcome) for call in step.tool_calls] for step in run.steps]
    assert outcomes == [
        [("python_interpreter", "failed"), ("price", "failed")],
        [],
        [("python_interpreter", "ok"), ("final_answer", "ok")],
    ]


def test_the_last_request_of_a_run_that_is_cut_off_opens_no_step(loopspan_capture: Captured):
    agent = agents.tool_calling(agents.both(), agents.both(), TOO_LATE, max_steps=2)
    assert agent.run("Soon?") == TOO_LATE
    (run,) = loopspan_capture.runs
    assert [len(step.requests) for step in run.steps] == [1, 2]
    assert (run.usage.input_tokens, run.stop_reason) == (300, "max_steps")


def interrupted(agent: Any) -> None:
    """A person stops the agent after its first step."""
    agent.step_callbacks.register(ActionStep, lambda step, agent: agent.interrupt())
    with pytest.raises(AgentError, match="interrupted"):
        agent.run("Both?")


def offline(agent: Any) -> None:
    """The provider cannot be reached."""
    with pytest.raises(AgentError, match="no route"):
        agent.run("Both?")


def no_longer_read(agent: Any) -> None:
    """The reader of the stream goes away at the end of a step."""
    for item in agent.run("Both?", stream=True):
        if isinstance(item, ActionStep):
            break


def closed_inside_a_step(agent: Any) -> None:
    """The reader closes the stream in the middle of a step, which smolagents answers with another item."""
    stream = agent.run("Both?", stream=True)
    next(stream)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        stream.close()


ENDINGS: dict[str, tuple[Callable[[Any], Any], list[Any], str, str | None]] = {
    "answered": (lambda agent: agent.run("Both?"), ["first", "last"], "success", None),
    "cut off": (lambda agent: agent.run("Both?", max_steps=1), ["first", TOO_LATE], "max_steps", None),
    "cut off, streamed": (
        lambda agent: list(agent.run("Both?", max_steps=1, stream=True)),
        ["first", TOO_LATE],
        "max_steps",
        None,
    ),
    "interrupted": (interrupted, ["first", "last"], "cancelled", "requested"),
    "offline": (offline, ["first", ConnectionError("no route")], "model_failed", None),
    "no longer read": (no_longer_read, ["first", "last"], "cancelled", "consumer_stopped"),
    "closed inside a step": (closed_inside_a_step, ["first", "last"], "cancelled", "consumer_stopped"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["ToolCallingAgent", "CodeAgent"])
def test_a_run_says_why_it_ended(loopspan_capture: Captured, kind: str, ending: str):
    act, script, reason, detail = ENDINGS[ending]
    if kind == "CodeAgent":
        build, said = agents.coding, {"first": agents.code("price('apple')"), "last": agents.code("final_answer(7)")}
    else:
        build, said = agents.tool_calling, {"first": agents.both(), "last": agents.final()}
    act(build(*[said.get(answer, answer) if isinstance(answer, str) else answer for answer in script]))
    (run,) = loopspan_capture.runs
    assert (run.agent_name, run.stop_reason, run.stop_detail) == (kind, reason, detail)
    assert loopspan_capture.open_spans() == []


def test_an_agent_that_another_one_manages_is_a_run_of_its_own_under_the_call(loopspan_capture: Captured):
    helper = agents.tool_calling(agents.final(), name="helper", description="Knows prices.")
    ask = [agents.call("c9", "helper", '{"task": "What do both cost?"}')]
    assert agents.tool_calling(ask, agents.final(), managed_agents=[helper]).run("Both?") == 7
    parent, child = loopspan_capture.runs
    assert child.parent_run_id == parent.run_id
    assert [(call.name, call.call_id) for call in parent.tool_calls] == [("helper", "c9"), ("final_answer", "c3")]
    assert (parent.usage.input_tokens, parent.usage_with_descendants.input_tokens) == (200, 300)


def test_agents_may_share_their_tools(loopspan_capture: Captured):
    for _ in range(2):
        agents.coding(agents.code("final_answer(price('apple'))")).run("How much?")
    for run in loopspan_capture.runs:
        assert [call.name for call in run.tool_calls] == ["python_interpreter", "price", "final_answer"]


def test_a_request_lasts_as_long_as_the_model_takes():
    clock = TickingClock()
    with capture(clock=clock) as captured:
        agent = agents.tool_calling(agents.final())
        agent.model.answers = Slowly(clock, agent.model.answers)
        agent.run("How long?")
    (duration,) = durations(captured, "chat scripted-1")
    assert 5 <= duration < 6


class Slowly(list[Any]):
    """A script whose answers take five seconds each."""

    def __init__(self, clock: TickingClock, answers: list[Any]) -> None:
        super().__init__(answers)
        self.clock = clock

    def pop(self, index: Any = -1) -> Any:
        self.clock.advance(5)
        return super().pop(index)


def test_the_program_runs(tmp_path: Path):
    assert "'stop_reason': 'max_steps'" in published.run("smolagents_agents", tmp_path)
