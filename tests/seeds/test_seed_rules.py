"""Rules of the seed on the observable loop that its program does not show, each on a loop that crosses the boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from seed_scenarios import SIMULATED, pending_approval, resume_after_approval

import loopspan
from loopspan import Answer, Approval, Call, Cost, Decision, Reconciled, Retry, StopReason, SuspendReason, Usage
from loopspan.testing import Captured, CountingIds, TickingClock, capture

ENTERED: list[Any] = []


@pytest.fixture
def captured() -> Iterator[Captured]:
    ENTERED.clear()
    with capture(clock=TickingClock(), ids=CountingIds()) as recorded:
        yield recorded


def names(captured: Captured) -> list[str]:
    return [entry.name for entry in captured.entries]


def only(captured: Captured, name: str) -> list[Any]:
    return [entry for entry in captured.entries if entry.name == name]


def body(amount: int) -> str:
    ENTERED.append(amount)
    return "paid"


def lost(amount: int) -> str:
    ENTERED.append(amount)
    raise ConnectionError("the answer was lost")


def loop(function: Callable[..., Any] = body, *, run: dict[str, Any] | None = None, **options: Any) -> Any:
    """A run whose model asks for one call of `pay`, and which lets everything through."""
    tools = loopspan.Toolbox(loopspan.tool("pay", **options)(function))
    calls = [Call("pay", {"amount": 5}, "call_1")]
    asked = Answer(usage=Usage(input_tokens=6, output_tokens=4), cost=SIMULATED, tool_calls=calls)
    ask = loopspan.model_request(provider="p", model="m", read=lambda answer: asked)(lambda: "pay 5")

    @loopspan.agent_loop("payer", **(run or {}))
    def payer() -> Any:
        ask()
        return tools.call("pay", '{"amount": 5}', call_id="call_1")

    with loopspan.context(subject="alice", goal="pay the bill"):
        return payer()


def test_every_event_says_where_it_belongs(captured: Captured):
    """Without trace id, call id, status and order nothing could be replayed."""
    loop(retry=Retry(wait=0))
    entries = captured.entries
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
    assert len({entry.trace_id for entry in entries}) == 1
    assert {entry.run_id for entry in entries} == {captured.runs[0].run_id}
    assert {entry.step for entry in entries if not entry.name.startswith("run_")} == {1}
    of_the_call = [entry for entry in entries if entry.name.startswith(("tool_", "validation_"))]
    assert {entry.call_id for entry in of_the_call} == {"call_1"}


def test_the_log_tells_what_was_proposed_entered_repeated_approved_and_why_it_ended(captured: Captured):
    """The questions that a person asks of a run, each answered by an event."""
    failures = [ConnectionError("once")]

    def flaky(amount: int) -> str:
        if failures:
            raise failures.pop()
        return body(amount)

    approval = Approval(expires_in=60, decide=lambda request: Decision(True, by="bob"))
    loop(flaky, retry=Retry(on=ConnectionError, wait=0), approval=approval)
    (proposed,), (decided,), (retry,) = (
        only(captured, name) for name in ("tool_call_proposed", "approval_decision_received", "tool_retry")
    )
    assert (proposed.tool, proposed.call_id, proposed.arguments) == ("pay", "call_1", {"amount": 5})
    assert (decided.approved, decided.decided_by) == (True, "bob")
    assert (retry.error_type, retry.attempt) == ("ConnectionError", 1)
    assert [entry.outcome for entry in only(captured, "tool_span_closed")] == ["failed", "ok"]
    assert only(captured, "run_trace_closed")[0].stop_reason == "success"


def test_the_trace_is_bound_to_subject_goal_and_ends(captured: Captured):
    loop()
    root = captured.spans[-1]
    attributes = dict(root.attributes or {})
    assert (attributes["loopspan.run.subject"], attributes["loopspan.run.goal"]) == ("alice", "pay the bill")
    assert attributes["loopspan.run.stop_reason"] == "success"
    assert root.start_time == captured.entries[0].time
    assert root.end_time == captured.entries[-1].time


def test_every_operation_has_a_span_with_start_end_status_and_parent(captured: Captured):
    """Request, validation, waiting, attempt: each is one span; a retry is one more attempt in the same call."""
    with pytest.raises(loopspan.RetryBudgetExhausted):
        loop(lost, retry=Retry(max_attempts=2, wait=0), approval=Approval(expires_in=60, decide=lambda request: True))
    words = ("validate", "approval", "validate", "attempt", "attempt")
    call = ("execute_tool pay", [(f"{word} pay", []) for word in words])
    assert captured.span_tree()[0] == (
        "invoke_agent payer",
        [("step", [("chat m", []), call]), ("approval_wait pay", [])],
    )
    assert all((span.start_time or 0) <= (span.end_time or -1) for span in captured.spans)
    assert [span.status.status_code.name for span in captured.spans if span.name == "attempt pay"] == ["ERROR"] * 2


def test_calls_and_attempts_are_counted_apart_and_always_alike(captured: Captured):
    """Spans are no count of retries: one call, one number for every entry into the body."""
    with pytest.raises(loopspan.RetryBudgetExhausted):
        loop(lost, retry=Retry(max_attempts=3, wait=0))
    assert len(ENTERED) == 3
    assert [entry.attempt for entry in only(captured, "tool_started")] == [1, 2, 3]
    (run,) = captured.runs
    assert [len(call.attempts) for call in run.tool_calls] == [3]
    assert run.summary()["cost_metric"]["tool_attempts"] == 3
    assert [entry.attempts for entry in only(captured, "tool_call_closed")] == [3]


def test_cost_says_where_it_is_from(captured: Captured):
    """An estimate is no bill: every amount has its source, and only what is simulated counts as the seed's figure."""
    with loopspan.agent_loop("payer") as run:
        for cost in (Cost(0, source="simulated"), Cost("0.5", source="estimated", table="list-2026"), Cost("0.25")):
            with loopspan.model_request(model="m") as request:
                request.answer(Answer(usage=Usage(input_tokens=8, output_tokens=2), cost=cost))
        run.succeed()
    (recorded,) = captured.runs
    assert {key: str(amount) for key, amount in recorded.cost.amounts.items()} == {
        ("USD", "simulated"): "0",
        ("USD", "estimated"): "0.5",
        ("USD", "provider"): "0.25",
    }
    assert recorded.summary()["cost_metric"]["estimated_tokens"] == 10
    assert recorded.usage.total_tokens == 30


DENIED, LATE = Approval(expires_in=60, decide=lambda _: False), Approval(expires_in=0.001, decide=lambda _: True)
NOT_ALLOWED = {"permission": lambda arguments: False}
REFUSALS: dict[str, tuple[dict[str, Any], type[BaseException], StopReason]] = {
    "permission denied": (NOT_ALLOWED, loopspan.PermissionDenied, StopReason.PERMISSION_DENIED),
    "approval denied": ({"approval": DENIED}, loopspan.ApprovalDenied, StopReason.APPROVAL_DENIED),
    "approval expired": ({"approval": LATE}, loopspan.ApprovalExpired, StopReason.APPROVAL_EXPIRED),
}


@pytest.mark.parametrize(("options", "error", "reason"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_is_no_failure_and_is_not_repeated(captured: Captured, options: Any, error: Any, reason: StopReason):
    """Each has a reason of its own; the body is entered zero times, also where a retry was allowed."""
    with pytest.raises(error):
        loop(retry=Retry(on=Exception, wait=0), **options)
    assert ENTERED == []
    recorded = names(captured)
    assert recorded.count(reason.value) == 1
    assert not {"tool_started", "tool_failed", "tool_retry"} & set(recorded)
    assert ("approval_requested" in recorded) == ("approval" in options)
    assert captured.runs[0].stop_reason is reason


def test_a_refusal_that_the_loop_handles_closes_nothing(captured: Captured):
    """Only an explicit stop reason closes a run: the refusal by itself does not."""
    denied = loopspan.tool("pay", permission=lambda arguments: False)(body)

    @loopspan.agent_loop
    def forgiving() -> str:
        with pytest.raises(loopspan.PermissionDenied):
            denied(5)
        return "did without"

    assert forgiving() == "did without"
    assert captured.runs[0].stop_reason is StopReason.SUCCESS


def test_waiting_is_a_span_of_its_own_and_no_work(captured: Captured):
    """With its expiry; the wait counts as waiting, not as active time."""
    clock = TickingClock(step=0)

    def decide(request: Any) -> bool:
        clock.advance(30)
        return True

    with capture(clock=clock) as recorded:
        loop(approval=Approval(expires_in=60, decide=decide))
    (requested,) = only(recorded, "approval_requested")
    assert requested.expires_at - requested.requested_at == 60 * 10**9
    (wait,) = [span for span in recorded.spans if span.name == "approval_wait pay"]
    assert wait.end_time - wait.start_time == 30 * 10**9
    (closed,) = only(recorded, "run_trace_closed")
    assert (closed.waiting_s, closed.active_s) == (30.0, 0.0)


def test_an_approval_is_looked_at_again_and_closes_nothing(captured: Captured):
    """After the yes: recheck, validation anew, then the attempt; the run ends for a reason of its own."""
    loop(approval=Approval(expires_in=60, decide=lambda request: True), permission=lambda arguments: True)
    wanted = {"validation_passed", "approval_recheck", "tool_started", "run_trace_closed", "approval_decision_received"}
    assert [name for name in names(captured) if name in wanted] == [
        "validation_passed",
        "approval_decision_received",
        "approval_recheck",
        "validation_passed",
        "tool_started",
        "run_trace_closed",
    ]
    assert [entry.stage for entry in only(captured, "validation_passed")] == ["proposal", "recheck"]


def changing(what: str) -> dict[str, Any]:
    """Options of a tool of which `what` changes while a person decides for the first time."""
    facts = {"version": 1, "allowed": True}

    def decide(request: Any) -> bool:
        if what == "arguments" and request.arguments["amount"] == 5:
            request.arguments["amount"] = 5000
        facts["version"] += what == "resource" and facts["version"] == 1
        facts["allowed"] = what != "permission"
        return True

    approval = Approval(expires_in=60, decide=decide, resource=lambda arguments: facts["version"])
    return {"approval": approval, "permission": lambda arguments: facts["allowed"]}


@pytest.mark.parametrize("what", ["arguments", "resource"])
def test_what_changed_while_a_person_decided_is_asked_for_anew(captured: Captured, what: str):
    """The first yes is superseded; what is executed is what the second one was given for."""
    loop(**changing(what))
    assert [entry.reason for entry in only(captured, "approval_superseded")] == [what]
    assert len(only(captured, "approval_requested")) == 2
    assert (what, *ENTERED) in (("arguments", 5000), ("resource", 5))
    (started,) = only(captured, "tool_started")
    assert started.digest == only(captured, "approval_requested")[1].digest


def test_a_permission_that_is_gone_after_the_approval_refuses(captured: Captured):
    with pytest.raises(loopspan.PermissionDenied):
        loop(**changing("permission"))
    assert ENTERED == []
    assert [entry.stage for entry in only(captured, "permission_denied")] == ["recheck"]


def test_a_suspended_run_has_neither_end_nor_stop_reason(captured: Captured):
    """The approval's span is closed, the run's is not; the decision does not close it either."""
    run = pending_approval()
    assert "approval pay" in [span.name for span in captured.spans]
    assert "invoke_agent seed" not in [span.name for span in captured.spans]
    (view,) = captured.runs
    assert (view.stop_reason, view.suspend_reason) == (None, SuspendReason.PENDING_APPROVAL)
    resume_after_approval(run)
    assert captured.runs[0].stop_reason is None


TRUTHS: dict[str, tuple[list[Any], int, type[BaseException] | None]] = {
    "committed: the result is reused": ([Reconciled.committed("paid before")], 1, None),
    "not committed: another attempt is safe": ([Reconciled.not_committed()], 2, None),
    "unknown: a person would have to say": ([Reconciled.unknown()] * 3, 1, loopspan.UnresolvedSideEffect),
}


@pytest.mark.parametrize(("truths", "entries", "error"), TRUTHS.values(), ids=TRUTHS.keys())
def test_an_unknown_effect_is_asked_for_before_anything_else(captured: Captured, truths: Any, entries: int, error: Any):
    """It is neither a failure nor worth a retry by itself; what may follow is what the remote side says."""
    keys = []

    def pay(amount: int) -> str:
        keys.append(loopspan.current_tool_call().idempotency_key)
        return lost(amount) if len(ENTERED) == 0 else body(amount)

    options = {"effect": "reconcilable", "reconcile": lambda intent: truths.pop(0), "retry": Retry(wait=0)}
    if error is None:
        assert loop(pay, **options) == ("paid before" if entries == 1 else "paid")
    else:
        with pytest.raises(error):
            loop(pay, **options)
    assert (len(ENTERED), len(set(keys))) == (entries, 1)
    recorded = names(captured)
    assert "tool_failed" not in recorded
    assert ("tool_retry" in recorded, "tool_result_reused" in recorded) == (
        entries == 2,
        error is None and entries == 1,
    )
    assert recorded.index("unknown_side_effect") < recorded.index("reconcile_requested")


def test_whether_to_repeat_is_no_matter_of_the_count_alone(captured: Captured):
    """Class of the error, the run's budget and its deadline stop a retry as well as the number does."""
    with pytest.raises(loopspan.ToolFailed):
        loop(lost, retry=Retry(max_attempts=9, on=TimeoutError, wait=0))
    with pytest.raises(loopspan.RetryBudgetExhausted):
        loop(lost, retry=Retry(max_attempts=9, wait=0), run={"retry_budget": 1})
    with pytest.raises(loopspan.DeadlineExceeded):
        loop(lost, retry=Retry(max_attempts=9, wait=3600), run={"deadline": 60})
    assert [run.stop_reason for run in captured.runs] == ["tool_failed", "retry_budget_exhausted", "timeout"]
    assert [len(run.tool_calls[0].attempts) for run in captured.runs] == [1, 2, 1]


def test_a_retry_says_error_number_wait_and_key(captured: Captured):
    with pytest.raises(loopspan.RetryBudgetExhausted):
        loop(lost, retry=Retry(max_attempts=2, wait=3), effect="idempotent")
    (retry,) = only(captured, "tool_retry")
    assert (retry.error_type, retry.attempt, retry.backoff_s) == ("ConnectionError", 1, 3.0)
    assert [entry.backoff_s for entry in only(captured, "tool_started")] == [None, 3.0]


def test_a_keyed_effect_is_sent_again_with_the_same_key_of_which_a_digest_is_on_record(captured: Captured):
    with pytest.raises(loopspan.UnresolvedSideEffect):
        loop(lost, retry=Retry(max_attempts=2, wait=0), effect="keyed")
    first, second = only(captured, "tool_started")
    assert first.key_digest == second.key_digest
    assert [entry.outcome for entry in only(captured, "reconcile_resolved")] == ["same_key"]


def test_a_success_counts_what_the_remote_side_has_only_accepted(captured: Captured):
    """A success does not say that every effect is confirmed."""

    def order(amount: int) -> str:
        loopspan.current_tool_call().accepted("order-7")
        return "ordered"

    loop(order)
    (run,) = captured.runs
    assert run.stop_reason is StopReason.SUCCESS
    assert run.tool_calls[0].outcome == "accepted"
    assert run.summary()["unconfirmed"] == 1


def test_what_models_and_tools_say_is_on_record_only_where_it_may_be():
    """The log keeps digests and sizes; words leave the process only where content is switched on."""
    secret = "s3cret-of-the-customer"
    for content in (False, True):
        with capture(content=content) as recorded:
            tools = loopspan.Toolbox(loopspan.tool("note")(lambda text: text))
            loopspan.agent_loop("scribe")(lambda tools=tools: tools.call("note", {"text": secret}))()
        exported = "".join(span.to_json() for span in recorded.spans)
        assert (secret in exported) == content
        (opened,) = only(recorded, "tool_call_opened")
        assert opened.digest
