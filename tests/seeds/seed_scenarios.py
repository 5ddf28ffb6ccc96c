"""The seed's scenarios on loopspan: its loop decorated, its waiting traces as events, its unresolved one end to end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opentelemetry.trace import set_span_in_context

import loopspan
from loopspan import Answer, Call, Cost, Reconciled, Retry, Usage, _config
from loopspan import events as e
from loopspan._journal import Entry
from loopspan._runtime import Recorder
from loopspan._scopes.ambient import parent_place
from loopspan.telemetry._spans import Handle, Place

SIMULATED = Cost(0, source="simulated")
NAMES = {"run_failed": "run_trace_closed"}
"""Events that the seed's text calls otherwise than its program and loopspan do."""


def names(entries: Iterable[Entry], like: Iterable[str]) -> list[str]:
    """The names of the events, only those that the seed's trace has."""
    wanted = {NAMES.get(name, name) for name in like}
    return [entry.name for entry in entries if entry.name in wanted]


def told(expected: dict[str, Any]) -> dict[str, Any]:
    """What the seed's summary tells: its traces that are written by hand count neither requests nor attempts."""
    out = dict(expected)
    if not out["cost_metric"]["model_calls"]:
        del out["cost_metric"]
    return out


def as_the_seed(summary: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """A run's summary with the keys, and of the events the names, that the seed's has."""
    out = {key: summary[key] for key in told(expected)}
    out["events"] = [name for name in summary["events"] if name in set(expected["events"])]
    if "cost_metric" in out:
        out["cost_metric"] = {key: summary["cost_metric"][key] for key in expected["cost_metric"]}
    return out


def read(decision: dict[str, Any]) -> Answer:
    """What the seed's scripted model answers: ten simulated tokens, a call or a final text."""
    call = Call(decision.get("name", "?"), decision.get("arguments"), decision.get("call_id"))
    calls = [] if decision["kind"] == "final" else [call]
    return Answer(usage=Usage(input_tokens=6, output_tokens=4), cost=SIMULATED, tool_calls=calls)


def run_agent(seed: Any, model: Any, tool: Any, *, told: bool = False) -> str:
    """The seed's `run_agent` with loopspan in the place of its Trace. `told`: the loop says itself what it fills in."""
    handles: list[Any] = []

    @loopspan.tool(retry=Retry(max_attempts=2, on=(seed.RetryableError,), wait=0))
    def get_status(project: str) -> dict[str, str]:
        handles.append(loopspan.current_tool_call())
        result: dict[str, str] = tool.run({"project": project})
        return result

    tools = loopspan.Toolbox(get_status)
    generate = loopspan.model_request(read=read)(model.generate)

    @loopspan.agent_loop("observable", max_steps=3)
    def loop() -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "check demo"}]
        while True:
            decision = generate(messages)
            if decision["kind"] == "final":
                return str(decision["text"])
            result = tools.call(decision["name"], decision["arguments"], call_id=decision["call_id"])
            messages.append({"role": "tool", "tool_call_id": decision["call_id"], "content": result})
            if told:
                loopspan.current_step().backfill(handles[-1], str(result))

    with loopspan.context(run_id="run-demo"):
        return loop()


def unresolved() -> None:
    """A side effect of which the remote side cannot say whether it happened."""

    @loopspan.tool(effect="reconcilable", reconcile=lambda intent: Reconciled.unknown())
    def pay(amount: int) -> None:
        raise ConnectionError("the answer was lost")

    @loopspan.agent_loop("payer")
    def payer() -> None:
        pay(5)

    with loopspan.context(run_id="run-unresolved"):
        payer()


class Fed:
    """A run that is made of events only: accepted by the lifecycle, then projected like those of a loop."""

    def __init__(self, run_id: str, *, effect: str | None = None, needs_approval: bool = False) -> None:
        self.recorder = Recorder(run_id, _config.current())
        self.call = {"step": 1, "call_id": "call_1", "ordinal": 1, "tool": "pay"}
        self.attempt = {**self.call, "attempt": 1}
        place, links = parent_place()
        self.recorder.begin(lambda root: e.RunStarted(agent="seed"), place, links, _config.current())
        self.step = self.open(e.StepStarted(step=1), self.recorder.root)
        opened = e.ToolCallOpened(**self.call, effect=effect, needs_approval=needs_approval, digest="d")
        self.span = self.open(opened, self.step)
        self.instant(e.ValidationPassed(**self.call, started=self.now()), self.span)

    def now(self) -> int:
        return self.recorder.anchor.now()

    def open(self, event: e.Event, parent: Handle) -> Handle:
        return self.recorder.open(event, _place(parent))

    def instant(self, event: e.Event, parent: Handle) -> None:
        self.recorder.instant(event, _place(parent))

    def cut(self, outcome: str, attempts: int) -> None:
        """The suspension ends the spans of the call and the step."""
        self.recorder.end(e.ToolCallClosed(**self.call, outcome=outcome, attempts=attempts), self.span)
        self.recorder.end(e.StepClosed(step=1, outcome=outcome), self.step)


def _place(parent: Handle) -> Place:
    return Place(parent.span, set_span_in_context(parent.span))


def pending_approval() -> Fed:
    """A call waits for a person: suspended, nothing executed."""
    run = Fed("run-approval", needs_approval=True)
    record, asked_at = run.recorder, run.now()
    asked = {**run.call, "approval_id": "a1"}
    span = run.open(
        e.ApprovalRequested(**asked, requested_at=asked_at, expires_at=asked_at + 60 * 10**9, digest="d"), run.span
    )
    record.add(e.CheckpointSaved(), span)
    record.end(e.ApprovalSpanClosed(**asked), span)
    record.add(e.RunSuspended(reason="pending_approval"), run.step)
    run.cut("suspended", attempts=0)
    return run


def resume_after_approval(run: Fed) -> None:
    """The person said yes, everything is looked at again, the run goes on."""
    asked = {**run.call, "approval_id": "a1"}
    root = run.recorder.root
    decided = e.ApprovalDecisionReceived(**asked, approved=True, started=run.now(), decided_by="bob")
    run.instant(decided, root)
    run.recorder.add(e.ApprovalRecheck(**asked, outcome="ok", digest="d"), root)
    run.recorder.add(e.RunResumed(), root)


def unknown_side_effect() -> Fed:
    """Nobody knows whether the effect happened, the remote side neither: a person is called."""
    run = Fed("run-unknown", effect="reconcilable")
    record = run.recorder
    attempt = run.open(e.ToolStarted(**run.attempt), run.span)
    record.add(e.UnknownSideEffect(**run.attempt, error_type="ConnectionError"), attempt)
    record.end(e.ToolSpanClosed(**run.attempt, outcome="unknown"), attempt)
    record.add(e.RunSuspended(reason="unknown_side_effect"), run.step)
    asking = run.open(e.ReconcileRequested(**run.attempt), run.span)
    record.add(e.ReconcileUnresolved(**run.attempt), asking)
    record.add(e.ManualIntervention(**run.attempt), asking)
    record.end(e.ReconcileSpanClosed(**run.attempt, outcome="unknown"), asking)
    record.add(e.RunSuspended(reason="manual_intervention"), run.step)
    run.cut("unknown", attempts=1)
    return run
