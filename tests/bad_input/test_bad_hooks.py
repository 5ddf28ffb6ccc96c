"""Hooks that raise or return nonsense: contained, counted and logged once a place; raised under `strict`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from refusals import ENTERED

import loopspan
from loopspan import Answer, Approval, Cost, Retry, StopReason, Usage, _clock, _guard
from loopspan.testing import Captured, TickingClock, capture

Hook = Callable[..., Any]
ANSWER = {
    "model": "m",
    "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    "choices": [{"message": {"content": "x"}}],
}


class Broken(Exception):
    """What the hooks raise."""


@pytest.fixture(autouse=True)
def faults(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The counter of contained faults, empty at the start of each test."""
    counter: Counter[str] = Counter()
    monkeypatch.setattr(_guard, "faults", counter)
    return counter


def body(amount: int = 5) -> str:
    """A tool's body."""
    ENTERED.append(amount)
    return "paid"


def failing(amount: int = 5) -> str:
    """A tool's body that fails."""
    ENTERED.append(amount)
    raise ConnectionError("gone")


def called(function: Hook = body, **options: Any) -> Any:
    """A run that calls one tool; what the tool returns."""
    return loopspan.agent_loop(loopspan.tool("pay", **options)(function))()


def approved(**options: Any) -> Any:
    return called(approval=Approval(expires_in=60, **{"decide": lambda request: True, **options}))


def asked(**options: Any) -> Any:
    """A run that makes one model request."""
    return loopspan.agent_loop(loopspan.model_request(lambda: ANSWER, **options))()


def asked_in_vain(**options: Any) -> Any:
    """A run whose request is answered with something that is not understood."""

    def request() -> None:
        raise ValueError("not understood")

    return loopspan.agent_loop(loopspan.model_request(**options)(request))()


def priced(hook: Hook) -> Any:
    with loopspan.configure(prices=hook):
        return asked()


@dataclass(frozen=True)
class Case:
    """A hook: where its faults are counted, a run that asks it, and how that run goes on without its answer."""

    place: str
    play: Callable[[Hook], Any]
    result: Any = "paid"
    error: type[BaseException] | None = None
    entered: int = 1
    asked: int = 1
    nonsense: tuple[Any, ...] = ()
    stop: tuple[StopReason, str | None] = (StopReason.SUCCESS, None)
    check: Callable[[Captured], bool] = field(default=lambda captured: True)


def answered(captured: Captured) -> bool:
    """The request is on record, its usage is not known."""
    usage = captured.runs[0].usage
    return usage is None or (usage.input_tokens is None and usage.incomplete)


CASES = {
    "permission": Case(
        "the permission= hook",
        lambda hook: called(permission=hook),
        error=loopspan.PermissionDenied,
        entered=0,
        stop=(StopReason.PERMISSION_DENIED, None),
    ),
    "failure": Case("the failure= hook", lambda hook: called(failure=hook)),
    "call": Case(
        "the call= hook",
        lambda hook: called(call=hook),
        nonsense=("pay", 5, ("pay", {})),
        check=lambda captured: [call.name for call in captured.runs[0].tool_calls] == ["pay"],
    ),
    "when": Case(
        "the when= hook",
        lambda hook: approved(when=hook, decide=lambda request: False),
        error=loopspan.ApprovalDenied,
        entered=0,
        stop=(StopReason.APPROVAL_DENIED, None),
    ),
    "resource": Case(
        "the resource= hook",
        lambda hook: approved(resource=hook),
        error=loopspan.ApprovalDenied,
        entered=0,
        asked=6,
        stop=(StopReason.APPROVAL_DENIED, None),
    ),
    "decide": Case(
        "the decide= hook",
        lambda hook: approved(decide=hook),
        error=loopspan.ApprovalDenied,
        entered=0,
        nonsense=("yes", 1, None, [True], {"approved": True}),
        stop=(StopReason.APPROVAL_DENIED, None),
    ),
    "reconcile": Case(
        "the reconcile= hook",
        lambda hook: called(failing, effect="reconcilable", reconcile=hook),
        error=loopspan.UnresolvedSideEffect,
        asked=3,
        nonsense=("committed", True, None),
        stop=(StopReason.UNRESOLVED_SIDE_EFFECT, None),
    ),
    "wait": Case(
        "the wait= function",
        lambda hook: called(failing, retry=Retry(max_attempts=3, wait=hook)),
        error=loopspan.RetryBudgetExhausted,
        entered=3,
        asked=2,
        nonsense=("soon", None, float("nan"), float("inf")),
        stop=(StopReason.RETRY_BUDGET_EXHAUSTED, None),
        check=lambda captured: [e.backoff_s for e in captured.entries if e.name == "tool_retry"] == [0.5, 1.0],
    ),
    "read": Case(
        "the read= hook",
        lambda hook: asked(read=hook),
        result=ANSWER,
        entered=0,
        nonsense=("text", 5, {"usage": {}}, Usage(input_tokens=1)),
        check=answered,
    ),
    "read_error": Case(
        "the read_error= hook",
        lambda hook: asked_in_vain(parse_errors=(ValueError,), read_error=hook),
        error=ValueError,
        entered=0,
        nonsense=("text", 5),
        stop=(StopReason.MODEL_FAILED, None),
        check=lambda captured: [step.outcome for step in captured.runs[0].steps] == ["parse_error"],
    ),
    "provider": Case("the provider= function", lambda hook: asked(provider=hook), result=ANSWER, entered=0),
    "model": Case("the model= function", lambda hook: asked(model=hook), result=ANSWER, entered=0),
    "prices": Case(
        "the prices= function",
        priced,
        result=ANSWER,
        entered=0,
        nonsense=(0.5, "free", True),
        check=lambda captured: captured.runs[0].cost.unpriced == 1 and not captured.runs[0].cost.amounts,
    ),
    "outcome": Case(
        "the outcome= hook",
        lambda hook: loopspan.agent_loop(outcome=hook)(body)(),
        nonsense=(
            None,
            "done",
            5,
            True,
            ("success", "nearly"),
            ("done", None),
            (),
            ("success",) * 3,
            "pending_approval",
        ),
        stop=(StopReason.LOOP_ERROR, "outcome_unmapped"),
    ),
}


def raising(*_: Any, **__: Any) -> Any:
    raise Broken("the hook is broken")


def play(case: Case, hook: Hook) -> Captured:
    """One run with `hook`, contained: it goes on as the case says, and nothing is left open."""
    with capture(strict=False, clock=TickingClock()) as captured:
        if case.error is None:
            assert case.play(hook) == case.result
        else:
            with pytest.raises(case.error):
                case.play(hook)
    (run,) = captured.runs
    assert (run.stop_reason, run.stop_detail) == case.stop
    assert len(ENTERED) == case.entered
    assert captured.open_spans() == []
    assert case.check(captured)
    return captured


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_hook_that_raises_is_contained(case: Case, faults: Counter[str], caplog: pytest.LogCaptureFixture) -> None:
    """The run goes on as if the hook had given the safe answer; each fault is counted, the first one is logged."""
    with caplog.at_level(logging.WARNING):
        play(case, raising)
    assert faults == {case.place: case.asked}
    (record,) = caplog.records
    assert (record.name, case.place in record.message, "Broken" in record.message) == ("loopspan", True, True)


NONSENSE = [
    pytest.param(case, value, id=f"{name}-{value!r}") for name, case in CASES.items() for value in case.nonsense
]


@pytest.mark.parametrize(("case", "value"), NONSENSE)
def test_a_hook_that_returns_nonsense_is_contained(case: Case, value: Any, faults: Counter[str]) -> None:
    """Likewise."""
    play(case, lambda *_, **__: value)
    assert faults == {case.place: case.asked}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_hook_that_raises_is_heard_under_strict(case: Case) -> None:
    """The very error of the hook; the run is closed and nothing is left open."""
    with capture(strict=True, clock=TickingClock()) as captured:
        with pytest.raises(Broken):
            case.play(raising)
        assert captured.open_spans() == []
    (run,) = captured.runs
    assert run.stop_reason is not None
    assert run.stop_reason is not StopReason.SUCCESS


@pytest.mark.parametrize(("case", "value"), NONSENSE)
def test_a_hook_that_returns_nonsense_is_heard_under_strict(case: Case, value: Any) -> None:
    """The error names the hook and what it may return."""
    with capture(strict=True, clock=TickingClock()) as captured:
        with pytest.raises((TypeError, ValueError)) as error:
            case.play(lambda *_, **__: value)
        assert captured.open_spans() == []
    assert type(error.value) in (TypeError, ValueError)


# what is no fault, but not a yes either


@pytest.mark.parametrize("answer", [False, None, 1, "yes", "", "only admins", [True], object()], ids=str)
def test_anything_but_true_refuses_a_permission(answer: Any, faults: Counter[str]) -> None:
    """A permission is True or it is none; a text is the reason of the refusal."""
    with capture() as captured, pytest.raises(loopspan.PermissionDenied) as error:
        called(permission=lambda arguments: answer)
    assert ENTERED == []
    reason = answer if isinstance(answer, str) and answer else "not permitted"
    assert reason in str(error.value)
    assert [entry.reason for entry in captured.entries if entry.name == "permission_denied"] == [reason]
    assert faults == {}


@pytest.mark.parametrize("said", ["http_500", 500, True, ["error"]], ids=repr)
def test_anything_true_is_a_failure(said: Any) -> None:
    """`failure=` gives the reason as text; whatever else is true has none."""
    with capture() as captured:
        assert called(failure=lambda result: said) == "paid", "what came back is the caller's"
    (call,) = captured.runs[0].tool_calls
    assert call.outcome == "failed"
    (closed,) = [entry for entry in captured.entries if entry.name == "tool_call_closed"]
    assert closed.error_type == (said if isinstance(said, str) else "reported_failure")


@pytest.mark.parametrize("name", [None, 5, "", object()], ids=str)
def test_a_provider_that_is_no_name_is_none(name: Any) -> None:
    """What is no text is a fault of the function, contained, and no name."""
    with capture(strict=False) as captured:
        assert asked(provider=lambda: name, model=lambda: name) == ANSWER
    (chat,) = [span for span in captured.spans if span.name.startswith("chat")]
    assert chat.attributes is not None
    assert chat.attributes.get("gen_ai.provider.name") in (None, "5", "")


def test_a_person_who_may_not_approve_does_not(faults: Counter[str]) -> None:
    with capture(), pytest.raises(loopspan.ApprovalDenied):
        approved(approvers=["alice"], decide=lambda request: loopspan.Decision(True, by="al"))
    assert ENTERED == []
    assert faults == {}


def test_a_cancel_while_the_remote_side_is_asked_is_raised_untouched() -> None:
    """It is no fault of the hook; the effect stays unknown."""
    stop = KeyboardInterrupt()

    def reconcile(intent: Any) -> Any:
        raise stop

    with capture() as captured, pytest.raises(KeyboardInterrupt) as error:
        called(failing, effect="reconcilable", reconcile=reconcile)
    assert error.value is stop
    assert captured.runs[0].stop_reason is StopReason.UNRESOLVED_SIDE_EFFECT
    assert captured.open_spans() == []


def test_a_reader_that_builds_an_impossible_answer_is_contained(faults: Counter[str]) -> None:
    """The error says what is wrong; the loop has its answer."""

    def read(answer: Any) -> Answer:
        return Answer(usage=answer["usage"], cost=Cost("cheap"))

    with capture(strict=False):
        assert asked(read=read) == ANSWER
    assert faults == {"the read= hook": 1}


@pytest.fixture
def quiet() -> Iterator[None]:
    """Nobody listens, and nobody waits."""
    with _clock.installed(TickingClock(), None), loopspan.configure(enabled=False, strict=False):
        yield


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.usefixtures("quiet")
def test_a_hook_that_raises_decides_the_same_where_nobody_listens(case: Case) -> None:
    """What is refused with a record is refused without one."""
    if case.error is None:
        assert case.play(raising) == case.result
    else:
        with pytest.raises(case.error):
            case.play(raising)
    assert len(ENTERED) == case.entered
