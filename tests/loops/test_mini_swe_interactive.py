"""mini-swe-agent's interactive agent: what a person confirms, what they reject, and how long they take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loops import published
from loops.outlines import outline
from loopspan.testing import Captured, TickingClock, capture

agents = published.load("mini_swe_interactive")
says, SUBMIT = agents.says, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
HOUR = 3600.0


class Scene:
    """A terminal with a scripted person, who takes an hour for each answer."""

    def __init__(self, captured: Captured, clock: TickingClock, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.captured = captured
        self.waited = 0.0
        self._clock = clock
        self._folder = folder
        self._patch = patch

    def play(self, answers: list[Any], *words: str | BaseException, **options: Any) -> Any:
        """Run an agent that gives these answers in front of a person who says these words."""
        person = agents.Person(*words, think=self._wait)
        self._patch.setattr(agents.interactive.prompt_session, "prompt", person)
        result = agents.build(self._folder, *answers, **options).run("write 42 into the file answer")
        assert person.words == [], "all was asked for"
        return result

    def _wait(self) -> None:
        self.waited += HOUR
        self._clock.advance(HOUR)

    @property
    def run(self) -> Any:
        """The only run."""
        (run,) = self.captured.runs
        return run

    @property
    def closing(self) -> Any:
        """What the run said of itself when it closed."""
        (closing,) = [entry.event for entry in self.captured.entries if entry.event.name == "run_trace_closed"]
        return closing

    def calls(self) -> list[tuple[str, str, int]]:
        """Each call: how it ended, where its id is from, how often its body was entered."""
        return [(call.outcome, call.id_source, call.entries) for call in self.run.tool_calls]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A terminal, in a folder of its own."""
    clock = TickingClock()
    with capture(clock=clock) as captured:
        yield Scene(captured, clock, tmp_path, monkeypatch)
    assert captured.open_spans() == []


def test_confirmed_and_rejected_actions_and_waits_are_on_record(scene: Scene, tmp_path: Path):
    (tmp_path / "answer").write_text("41", "utf-8")
    answers = [
        says("clean up", "rm answer"),
        says("what was it?"),
        says("write", "echo 42 > answer", "cat missing"),
        says("done", agents.SUBMIT),
    ]
    result = scene.play(answers, "not that one", "", "", "")
    assert result["submission"].strip() == "42"
    assert outline(scene.captured) == (
        "invoke_agent mini-swe-interactive success\n"
        "  step 1\n"
        "    chat scripted-1 100 20 stop\n"
        "    execute_tool bash call_1_1 generated denied\n"
        "      validate bash\n"
        "  approval_wait\n"
        "  step 2\n"
        "    chat scripted-1 100 20 stop\n"
        "  step 3\n"
        "    chat scripted-1 100 20 stop\n"
        "    execute_tool bash call_3_1 generated\n"
        "      attempt bash\n"
        "    execute_tool bash call_3_2 generated failed\n"
        "      attempt bash failed\n"
        "  approval_wait\n"
        "  step 4\n"
        "    chat scripted-1 100 20 stop\n"
        "    execute_tool bash call_4_1 generated\n"
        "      attempt bash\n"
        "  approval_wait\n"
        "  approval_wait"
    )
    assert [step.outcome for step in scene.run.steps] == ["ok", "parse_error", "ok", "ok"]
    assert [(wait.kind, wait.approved, wait.decided_by) for wait in waits(scene)] == [
        ("approval", False, "user"),
        ("approval", True, "user"),
        ("approval", True, "user"),
        ("input", True, "user"),
    ]


def waits(scene: Scene) -> list[Any]:
    """The waits, in order."""
    return [entry.event for entry in scene.captured.entries if entry.event.name == "human_wait"]


def test_waiting_for_the_person_is_not_working(scene: Scene):
    scene.play([says("done", SUBMIT)], "", "")
    assert scene.closing.waiting_s >= 2 * HOUR
    assert scene.closing.active_s < HOUR
    lasted = [span.end_time - span.start_time for span in scene.captured.spans if span.name == "approval_wait"]
    assert min(lasted) >= HOUR * 1e9


def test_a_rejected_action_does_not_run_and_the_model_hears_why(scene: Scene, tmp_path: Path):
    agent_messages = scene.play([says("clean up", "touch here"), says("done", SUBMIT)], "not now", "", "")
    assert agent_messages["exit_status"] == "Submitted"
    assert not (tmp_path / "here").exists()
    assert scene.calls() == [("denied", "generated", 0), ("ok", "generated", 1)]
    reasons = [entry.event.reason for entry in scene.captured.entries if entry.event.name == "permission_denied"]
    assert reasons == ["the person said no"]


def test_a_person_who_trusts_the_agent_is_not_asked_again(scene: Scene):
    scene.play([says("one", "true"), says("two", "true"), says("done", SUBMIT)], "/y", "")
    assert [wait.kind for wait in waits(scene)] == ["approval", "input"]
    assert scene.calls() == [("ok", "generated", 1)] * 3


def test_a_person_who_asks_for_help_waits_once(scene: Scene):
    scene.play([says("done", SUBMIT)], "/h", "", "")
    assert scene.closing.waiting_s == pytest.approx(3 * HOUR, abs=60), "a question inside of another one counts once"


def test_what_the_person_does_themselves_opens_no_step_of_the_model(scene: Scene, tmp_path: Path):
    scene.play([says("write", "echo 41 > answer"), says("done", SUBMIT)], "/u", "echo 42 > answer", "/c", "", "")
    assert (tmp_path / "answer").read_text("utf-8") == "42\n"
    assert [[call.outcome for call in step.tool_calls] for step in scene.run.steps] == [["denied", "ok"], ["ok"]]


def test_an_interrupt_that_the_agent_handles_is_no_end(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    class Interrupted(agents.LocalEnvironment):
        def execute(self, action: dict[str, Any], *args: Any, **options: Any) -> dict[str, Any]:
            if action["command"] == "sleep":
                raise KeyboardInterrupt
            return super().execute(action, *args, **options)

    monkeypatch.setattr(agents, "LocalEnvironment", Interrupted)
    scene.play([says("wait", "sleep"), says("done", SUBMIT)], "", "go on", "", "")
    assert [call.outcome for call in scene.run.tool_calls] == ["cancelled", "ok"]
    assert scene.run.stop_reason == "success"


# the endings


def test_the_agents_own_limit_is_the_most_steps(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agents.InteractiveAgent, "_stdin_is_interactive", staticmethod(lambda: False))
    scene.play([says("again", "true")] * 3, "", "", step_limit=2)
    assert (scene.run.stop_reason, len(scene.run.steps)) == ("max_steps", 2)


def test_a_limit_that_the_person_lifts_is_no_end(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    numbers = ["2", "0"]
    monkeypatch.setattr(agents.InteractiveAgent, "_stdin_is_interactive", staticmethod(lambda: True))
    monkeypatch.setattr("builtins.input", lambda _: numbers.pop(0))
    scene.play([says("again", "true"), says("done", SUBMIT)], "", "", "", step_limit=1)
    assert (scene.run.stop_reason, len(scene.run.steps)) == ("success", 2)


def test_a_time_limit_is_a_timeout(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("minisweagent.agents.default.time", SimpleNamespace(time=lambda: scene.waited))
    scene.play([says("wait", "true"), says("late", "true")], "", wall_time_limit_seconds=60)
    assert (scene.run.stop_reason, len(scene.run.steps)) == ("timeout", 1)


def test_answers_that_nobody_can_parse_are_the_models_failure(scene: Scene):
    scene.play([says("no command")] * 3)
    assert (scene.run.stop_reason, [step.outcome for step in scene.run.steps]) == ("model_failed", ["parse_error"] * 3)
    assert scene.run.usage.input_tokens == 300, "all of them were billed"


def test_a_model_that_breaks_is_the_models_failure(scene: Scene):
    with pytest.raises(IndexError):
        scene.play([says("once", "true")], "")
    assert (scene.run.stop_reason, scene.run.steps[-1].requests[0].attempts[0].outcome) == ("model_failed", "failed")


def test_a_tool_that_breaks_is_the_tools_failure(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    def broken(self: Any, output: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(agents.LocalEnvironment, "_check_finished", broken)
    with pytest.raises(OSError, match="disk full"):
        scene.play([says("once", "true")], "")
    assert scene.run.stop_reason == "tool_failed"
    assert scene.calls() == [("failed", "generated", 1)]


def test_a_person_who_leaves_ends_the_run(scene: Scene):
    with pytest.raises(KeyboardInterrupt):
        scene.play([says("once", "true")], KeyboardInterrupt(), KeyboardInterrupt())
    assert (scene.run.stop_reason, scene.run.stop_detail) == ("cancelled", "keyboard_interrupt")
    assert [wait.approved for wait in waits(scene)] == [None, None]
    assert scene.run.tool_calls == []


def test_the_example_runs_as_a_program(tmp_path: Path):
    assert "'stop_reason': 'success'" in published.run("mini_swe_interactive", tmp_path)
