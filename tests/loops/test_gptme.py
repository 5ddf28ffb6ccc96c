"""gptme's chat loop: every request with the model that was chosen for it, every call under its step, why it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loops import published
from loops.outlines import durations, outline
from loopspan.testing import Captured, TickingClock, capture

Talk = Callable[..., None]


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The wrapped package, with a home of its own. It can be set up once in a process, and changes the directory."""
    directory, variables = Path.cwd(), dict(os.environ)
    module = published.load("gptme_chat")
    module.isolate(tmp_path_factory.mktemp("home"))
    kept = module.gptme.llm._reply_after_hooks, module.ToolUse.execute, module.gptme.chat.chat
    module.instrument()
    yield module
    module.gptme.llm._reply_after_hooks, module.ToolUse.execute, module.gptme.chat.chat = kept
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)


@pytest.fixture
def talk(chats: Any, tmp_path: Path) -> Talk:
    """`talk(*answers, prompts=…)` is a conversation; each test begins with the same model."""
    from gptme.llm.models import set_default_model

    set_default_model("mock/static")
    return lambda *answers, **options: chats.talk(tmp_path, "talk", *answers, **options)


@pytest.fixture
def declining(chats: Any) -> Iterator[None]:
    """A person who refuses whatever is to be run."""
    from gptme.hooks import HookType, register_hook, unregister_hook
    from gptme.hooks.confirm import ConfirmationResult

    def decline(*_: Any, **__: Any) -> ConfirmationResult:
        return ConfirmationResult.skip(chats.DECLINED_CONTENT)

    register_hook("decline", HookType.TOOL_CONFIRM, decline, priority=1000)
    yield
    unregister_hook("decline")


def test_tools_are_under_their_step(talk: Talk, chats: Any, loopspan_capture: Captured):
    talk(chats.SAVE, chats.DONE)
    assert outline(loopspan_capture) == (
        "invoke_agent gptme success\n"
        "  step 1\n"
        "    chat static 100 20\n"
        "    execute_tool save call_1_1 generated\n"
        "      attempt save\n"
        "  step 2\n"
        "    chat static 100 20\n"
        "    execute_tool complete call_2_1 generated\n"
        "      attempt complete"
    )
    (run,) = loopspan_capture.runs
    assert run.steps[0].requests[0].provider == "mock"


def test_calls_that_have_an_id_keep_it(talk: Talk, chats: Any, loopspan_capture: Captured):
    both = """@save(call-7): {"path": "a.txt", "content": "1"}\n\n@save(call-8): {"path": "b.txt", "content": "2"}"""
    talk(both, "@complete(call-9): {}", tool_format="tool")
    assert outline(loopspan_capture) == (
        "invoke_agent gptme success\n"
        "  step 1\n"
        "    chat static 100 20\n"
        "    execute_tool save call-7\n"
        "      attempt save\n"
        "    execute_tool save call-8\n"
        "      attempt save\n"
        "    backfill save\n"
        "    backfill save\n"
        "  step 2\n"
        "    chat static 100 20\n"
        "    execute_tool complete call-9\n"
        "      attempt complete"
    )


def test_the_model_is_the_one_that_was_chosen_for_the_request(talk: Talk, chats: Any, loopspan_capture: Captured):
    talk("I am one.\n" + chats.DONE, chats.DONE, prompts=("Who?", "/model mock/echo", "Who?"))
    (run,) = loopspan_capture.runs
    assert [(request.provider, request.model) for request in run.requests] == [("mock", "static"), ("mock", "echo")]


def test_a_streamed_answer_gives_the_same_trace(talk: Talk, chats: Any, loopspan_capture: Captured):
    talk(chats.SAVE, chats.DONE, stream=True)
    (run,) = loopspan_capture.runs
    assert [(call.name, call.outcome) for call in run.tool_calls] == [("save", "ok"), ("complete", "ok")]
    assert (run.usage.input_tokens, str(run.cost.amounts["USD", "provider"])) == (200, "0.02")


def test_a_failure_that_is_told_in_a_message_is_a_failure(talk: Talk, chats: Any, loopspan_capture: Captured):
    patch = "```patch missing.txt\n<<<<<<< ORIGINAL\na\n=======\nb\n>>>>>>> UPDATED\n```\n"
    talk(patch, chats.DONE)
    (run,) = loopspan_capture.runs
    assert [(call.name, call.outcome) for call in run.tool_calls] == [("patch", "failed"), ("complete", "ok")]
    assert [span.attributes["error.type"] for span in loopspan_capture.spans if span.name == "execute_tool patch"] == [
        "tool_error"
    ]


def test_a_request_lasts_as_long_as_the_model_takes(talk: Talk, chats: Any):
    clock = TickingClock()

    def slowly() -> str:
        clock.advance(5)
        return chats.DONE

    with capture(clock=clock) as captured:
        talk(slowly)
    (duration,) = durations(captured, "chat static")
    assert 5 <= duration < 6


# why it ended


def test_a_chat_that_completes_has_succeeded(talk: Talk, chats: Any, loopspan_capture: Captured):
    talk(chats.DONE)
    assert [(run.stop_reason, run.stop_detail) for run in loopspan_capture.runs] == [("success", None)]


def test_a_limit_that_stands_in_the_conversation_is_the_reason(
    talk: Talk, chats: Any, loopspan_capture: Captured, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GPTME_MAX_STEPS", "2")
    monkeypatch.setenv("GPTME_AUTO_REPLY", "0")
    talk(chats.SAVE, chats.SAVE, chats.SAVE)
    (run,) = loopspan_capture.runs
    assert (run.stop_reason, len(run.steps)) == ("max_steps", 2)


def test_a_provider_that_cannot_be_reached_is_the_reason(talk: Talk, loopspan_capture: Captured):
    with pytest.raises(ConnectionError, match="no route"):
        talk(ConnectionError("no route"))
    (run,) = loopspan_capture.runs
    assert (run.stop_reason, run.requests[0].attempts[0].outcome) == ("model_failed", "failed")


def test_an_interruption_that_the_loop_survives_is_the_reason(talk: Talk, chats: Any, loopspan_capture: Captured):
    talk(chats.SAVE, KeyboardInterrupt())
    (run,) = loopspan_capture.runs
    assert (run.stop_reason, run.stop_detail) == ("cancelled", "keyboard_interrupt")
    assert [request.attempts[0].outcome for request in run.requests] == ["ok", "cancelled"]


def test_a_person_who_declines_is_the_reason(talk: Talk, chats: Any, declining: None, loopspan_capture: Captured):
    talk(chats.SAVE)
    (run,) = loopspan_capture.runs
    assert run.stop_reason == "approval_denied"
    (call,) = run.tool_calls
    assert call.outcome == "failed"
    assert loopspan_capture.open_spans() == []


def test_the_program_runs(tmp_path: Path):
    assert "'stop_reason': 'max_steps'" in published.run("gptme_chat", tmp_path)
