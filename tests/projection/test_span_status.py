"""Status follows from outcome, and events are on the narrowest span (telemetry.md, *RunLog events*, lifecycle.md)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

import loopspan
from loopspan import Approval, NoEffect, Reconciled, Retry, StopReason, semconv
from loopspan.errors import LoopspanError
from loopspan.testing import Captured, CountingIds, TickingClock, capture
from projection.sample import everything
from projection.spans import of, word

OK, FAILED = (StatusCode.UNSET, None), StatusCode.ERROR


def said(span: ReadableSpan) -> tuple[StatusCode, Any]:
    """Status and error.type of a span; a status of ours has no description."""
    assert span.status.description is None
    return span.status.status_code, span.attributes.get(semconv.ERROR_TYPE)


def in_a_run(body: Callable[[], Any]) -> Captured:
    """What is captured of a loop that does nothing but `body`, and survives it."""
    with capture(clock=TickingClock(), ids=CountingIds()) as captured, loopspan.agent_loop("agent") as run:
        with contextlib.suppress(LoopspanError, OSError, asyncio.CancelledError):
            body()
        run.succeed()
    return captured


# --- runs


@pytest.mark.parametrize("reason", StopReason)
def test_a_run_has_failed_unless_it_succeeded_or_was_cancelled(loopspan_capture: Captured, reason: StopReason):
    with loopspan.agent_loop("agent") as run:
        run.stop(reason)
    (root,) = loopspan_capture.spans
    assert root.attributes[semconv.STOP_REASON] == reason
    unset = reason in (StopReason.SUCCESS, StopReason.CANCELLED)
    assert said(root) == (OK if unset else (FAILED, reason))


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (OSError(), "loop_error", None),
        (asyncio.CancelledError(), "cancelled", "task_cancelled"),
        (KeyboardInterrupt(), "cancelled", "keyboard_interrupt"),
        (SystemExit(), "cancelled", "shutdown"),
    ],
)
def test_a_run_that_is_left_by_an_exception(loopspan_capture: Captured, error: Any, reason: str, detail: str | None):
    with pytest.raises(type(error)), loopspan.agent_loop("agent"):
        raise error
    (root,) = loopspan_capture.spans
    assert root.attributes[semconv.STOP_REASON] == reason
    assert root.attributes.get(semconv.STOP_DETAIL) == detail
    assert said(root) == ((FAILED, "OSError") if reason == "loop_error" else OK)


# --- calls and attempts


def raising(error: BaseException, **options: Any) -> Callable[[], Any]:
    """A call of a tool that raises."""

    @loopspan.tool("act", **options)
    def act() -> None:
        raise error

    return act


def answering(answer: Any, **options: Any) -> Callable[[], Any]:
    """A call of a tool that returns, through a Toolbox."""
    return lambda: loopspan.Toolbox(loopspan.tool("act", **options)(lambda: answer)).call("act", "{}")


def asking(decide: Callable[[Any], Any]) -> Callable[[], Any]:
    """A call that needs an approval."""
    return answering(1, approval=Approval(expires_in=60, decide=decide))


def late(request: Any) -> bool:
    """A decision that comes too late."""
    loopspan.current_run().recorder.anchor.clock.advance(100)
    return True


CALLS = {
    "ok": (answering(1), OK, OK),
    "accepted": (lambda: loopspan.tool("act")(lambda: loopspan.current_tool_call().accepted("ref"))(), OK, OK),
    "failed": (raising(OSError()), (FAILED, "OSError"), (FAILED, "OSError")),
    "reported": (answering(1, failure=lambda result: "quota"), (FAILED, "quota"), (FAILED, "quota")),
    "cancelled": (raising(asyncio.CancelledError()), OK, OK),
    "no effect": (
        raising(NoEffect(), effect="unsafe"),
        (FAILED, "loopspan.errors.NoEffect"),
        (FAILED, "loopspan.errors.NoEffect"),
    ),
    "unknown": (raising(OSError(), effect="unsafe"), (FAILED, "OSError"), (FAILED, "OSError")),
    "committed": (
        raising(OSError(), effect="reconcilable", reconcile=lambda intent: Reconciled.committed(1)),
        OK,
        (FAILED, "OSError"),
    ),
    "rejected": (lambda: loopspan.Toolbox().call("act", "{}"), (FAILED, "unknown_tool"), None),
    "misfit": (
        lambda: loopspan.Toolbox(loopspan.tool("act")(lambda: 1)).call("act", "[]"),
        (FAILED, "validation_error"),
        None,
    ),
    "not permitted": (answering(1, permission=lambda arguments: "no"), OK, None),
    "denied": (asking(lambda request: False), OK, None),
    "expired": (asking(late), OK, None),
    "approved": (asking(lambda request: True), OK, OK),
}
"""A call, and status and error.type of its span and of its attempt's; None where its body was not entered."""


@pytest.mark.parametrize("case", CALLS)
def test_the_status_of_a_call_and_of_its_attempt(case: str):
    body, call, attempt = CALLS[case]
    captured = in_a_run(body)
    assert [said(span) for span in of(captured.spans, "execute_tool")] == [call]
    assert [said(span) for span in of(captured.spans, "attempt")] == ([] if attempt is None else [attempt])


def test_a_call_that_was_denied_has_no_error_type(loopspan_capture: Captured):
    with loopspan.agent_loop("agent") as run:
        with pytest.raises(loopspan.PermissionDenied):
            answering(1, permission=lambda arguments: "not today")()
        run.succeed()
    (call,) = of(loopspan_capture.spans, "execute_tool")
    (check,) = of(loopspan_capture.spans, "validate")
    assert call.attributes[semconv.TOOL_OUTCOME] == "denied"
    assert check.attributes[semconv.VALIDATION_OUTCOME] == "rejected"
    assert check.attributes[semconv.VALIDATION_REASON] == "not today"


def test_a_repeated_failure_marks_its_attempt_and_neither_the_call_nor_the_run():
    failures = [OSError(), OSError()]

    @loopspan.tool("act", retry=Retry(max_attempts=3, on=(OSError,)))
    def act() -> None:
        if failures:
            raise failures.pop()

    captured = in_a_run(act)
    assert [said(span)[0] for span in of(captured.spans, "attempt")] == [FAILED, FAILED, StatusCode.UNSET]
    rest = [span for span in captured.spans if word(span) != "attempt"]
    assert {said(span) for span in rest} == {OK}


def test_a_failure_that_the_loop_handles_marks_neither_the_step_nor_the_run():
    captured = in_a_run(raising(OSError()))
    marked = {word(span) for span in captured.spans if span.status.status_code is StatusCode.ERROR}
    assert marked == {"execute_tool", "attempt"}


# --- requests and steps


@pytest.mark.parametrize(
    ("error", "outcome", "expected"),
    [
        (None, "ok", OK),
        (OSError(), "failed", (FAILED, "OSError")),
        (asyncio.CancelledError(), "cancelled", OK),
        (ValueError(), "ok", OK),
    ],
)
def test_the_status_of_a_model_request(error: Any, outcome: str, expected: Any):
    """An answer that was not understood was answered and billed all the same."""

    @loopspan.model_request(parse_errors=(ValueError,))
    def ask() -> None:
        if error is not None:
            raise error

    def body() -> None:
        with contextlib.suppress(ValueError):
            ask()

    captured = in_a_run(body)
    (chat,) = of(captured.spans, "chat")
    assert chat.attributes[semconv.REQUEST_OUTCOME] == outcome
    assert said(chat) == expected


@pytest.mark.parametrize(
    ("error", "outcome", "status"),
    [
        (None, "ok", StatusCode.UNSET),
        (OSError(), "error", FAILED),
        (asyncio.CancelledError(), "cancelled", StatusCode.UNSET),
    ],
)
def test_the_outcome_of_the_step_in_which_a_run_ends(error: Any, outcome: str, status: StatusCode):
    survived = contextlib.suppress(OSError, asyncio.CancelledError)
    with capture() as captured, survived, loopspan.agent_loop("agent") as run:
        next(run.steps())
        if error is not None:
            raise error
        run.succeed()
    (step,) = of(captured.spans, "step")
    assert step.attributes[semconv.STEP_OUTCOME] == outcome
    assert step.status.status_code is status


def test_a_step_whose_answer_was_not_understood_is_a_parse_error_and_no_failure():
    captured = in_a_run(lambda: next(loopspan.current_run().steps()).parse_error("{", feedback="again"))
    (step,) = of(captured.spans, "step")
    assert step.attributes[semconv.STEP_OUTCOME] == "parse_error"
    assert said(step) == OK


# --- events

EVENTS = {
    "invoke_agent": {"run_started", "run_trace_closed"},
    "step": {"step_started", "model_retry", "tool_call_proposed", "model_final", "step_closed"},
    "chat": {"model_requested", "usage_observed", "model_responded", "model_failed"},
    "execute_tool": {
        "tool_call_opened",
        "approval_recheck",
        "tool_result_reused",
        "tool_result",
        "tool_call_closed",
    },
    "validate": {"validation_passed", "validation_rejected"},
    "approval": {"approval_requested", "approval_span_closed"},
    "approval_wait": {"approval_decision_received", "human_wait"},
    "attempt": {
        "tool_started",
        "tool_failed",
        "tool_retry",
        "tool_succeeded",
        "unknown_side_effect",
        "tool_span_closed",
    },
    "reconcile": {"reconcile_requested", "reconcile_resolved", "reconcile_span_closed"},
    "backfill": {"tool_result_backfilled", "backfill_missing"},
}


@pytest.fixture
def sample() -> Captured:
    """The run of `projection.sample`."""
    with capture(clock=TickingClock(), ids=CountingIds()) as captured:
        everything()
    return captured


def test_every_event_is_on_the_narrowest_span(sample: Captured):
    found: dict[str, set[str]] = {}
    for span in sample.spans:
        found.setdefault(word(span), set()).update(event.name for event in span.events)
    assert found == EVENTS


def test_an_event_ends_with_its_number_and_version_and_lies_within_its_span(sample: Captured):
    for span in sample.spans:
        seqs = [event.attributes[semconv.EVENT_SEQ] for event in span.events]
        assert seqs == sorted(seqs)
        assert seqs
        for event in span.events:
            assert list(event.attributes)[-2:] == [semconv.EVENT_SEQ, semconv.EVENT_VERSION]
            assert all(key.startswith(semconv.PREFIX) for key in event.attributes)
            assert span.start_time <= event.timestamp <= span.end_time


def test_no_event_attribute_has_a_key_that_backends_take_for_the_name(sample: Captured):
    keys = {key for span in sample.spans for event in span.events for key in event.attributes}
    assert not keys & {"event", "name", "message"}
