"""Where a run hangs, what hangs below it, and when: parents, facts around it, users' own spans, clocks, providers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, TraceState, set_span_in_context

import loopspan
from loopspan import Approval, semconv
from loopspan.testing import Captured, CountingIds, TickingClock, capture
from projection.spans import of, ours

REMOTE = SpanContext(0xABC, 0xDEF, True, TraceFlags(TraceFlags.SAMPLED), TraceState([("vendor", "1")]))


@contextmanager
def current(span: trace.Span) -> Iterator[None]:
    """`span` as the current span."""
    token = attach(set_span_in_context(span))
    try:
        yield
    finally:
        detach(token)


def user_tracer(captured: Captured) -> trace.Tracer:
    """A tracer of the application's own."""
    return captured.tracer_provider.get_tracer("application")


@loopspan.agent_loop("agent")
def run_once() -> None:
    """A loop that does nothing."""


def root(captured: Captured) -> ReadableSpan:
    """The root of the only run."""
    (found,) = of(captured.spans, "invoke_agent")
    return found


# --- the parent of a run


def test_a_run_inside_a_web_request_is_a_child_of_its_span(loopspan_capture: Captured):
    with user_tracer(loopspan_capture).start_as_current_span("GET /", kind=SpanKind.SERVER) as request:
        run_once()
    assert root(loopspan_capture).parent == request.get_span_context()
    assert root(loopspan_capture).context.trace_id == request.get_span_context().trace_id


def test_a_run_continues_the_trace_of_a_caller_in_another_process(loopspan_capture: Captured):
    with current(NonRecordingSpan(REMOTE)):
        run_once()
    found = root(loopspan_capture)
    assert found.parent == REMOTE
    assert found.parent.is_remote
    assert (found.context.trace_id, found.context.trace_state) == (REMOTE.trace_id, REMOTE.trace_state)
    started = loopspan_capture.entries[0]
    assert started.remote_parent
    assert (started.trace_flags, started.trace_state) == (1, "vendor=1")


def test_spans_below_a_run_keep_its_trace_state(loopspan_capture: Captured):
    with current(NonRecordingSpan(REMOTE)), loopspan.agent_loop("agent") as run:
        next(run.steps())
        run.succeed()
    (step,) = of(loopspan_capture.spans, "step")
    assert step.context.trace_state == REMOTE.trace_state
    assert not step.context.is_remote


def test_a_run_may_be_linked_to_the_current_span_in_a_trace_of_its_own(loopspan_capture: Captured):
    with user_tracer(loopspan_capture).start_as_current_span("job") as job, loopspan.context(parent="link"):
        run_once()
    found = root(loopspan_capture)
    assert found.parent is None
    assert found.context.trace_id != job.get_span_context().trace_id
    assert [link.context for link in found.links] == [job.get_span_context()]


def test_a_run_links_to_nothing_where_there_is_no_current_span(loopspan_capture: Captured):
    with loopspan.context(parent="link"):
        run_once()
    assert root(loopspan_capture).links == ()


def test_a_run_may_have_no_parent_at_all(loopspan_capture: Captured):
    with user_tracer(loopspan_capture).start_as_current_span("job") as job, loopspan.context(parent="none"):
        run_once()
    found = root(loopspan_capture)
    assert (found.parent, found.links) == (None, ())
    assert found.context.trace_id != job.get_span_context().trace_id


def test_a_run_may_be_given_its_parent_in_a_context(loopspan_capture: Captured):
    wanted = set_span_in_context(NonRecordingSpan(REMOTE), Context())
    with user_tracer(loopspan_capture).start_as_current_span("job"), loopspan.context(parent=wanted):
        run_once()
    assert root(loopspan_capture).parent == REMOTE


@pytest.mark.parametrize("parent", ["link", "none", "child"])
def test_a_sub_agent_stays_below_its_parent_whatever_is_said_about_new_runs(loopspan_capture: Captured, parent: str):
    with loopspan.context(parent=parent), loopspan.agent_loop("boss") as run:
        run_once()
        run.succeed()
    child, boss = loopspan_capture.spans
    assert child.parent == boss.context
    assert child.links == ()
    assert child.attributes[semconv.PARENT_RUN_ID] == boss.attributes[semconv.RUN_ID]


# --- facts around a run


def test_facts_are_on_the_run_and_what_identifies_it_on_every_span(loopspan_capture: Captured):
    facts = loopspan.context(
        conversation_id="c-1", subject="alice", goal="a build", attributes={"tenant": "t1"}, run_id="r-1"
    )
    with facts, loopspan.agent_loop("agent") as run:
        next(run.steps())
        run.succeed()
    step, found = loopspan_capture.spans
    assert facts.run_id == "r-1"
    for span in (step, found):
        said = {key: span.attributes.get(key) for key in (semconv.RUN_ID, semconv.CONVERSATION, "tenant")}
        assert said == {semconv.RUN_ID: "r-1", semconv.CONVERSATION: "c-1", "tenant": "t1"}
    assert (found.attributes[semconv.SUBJECT], found.attributes[semconv.GOAL]) == ("alice", "a build")
    assert semconv.SUBJECT not in step.attributes


def test_a_given_run_id_is_that_of_the_next_run_alone(loopspan_capture: Captured):
    with loopspan.context(run_id="r-1") as facts:
        run_once()
        first = facts.run_id
        run_once()
    ids = [span.attributes[semconv.RUN_ID] for span in of(loopspan_capture.spans, "invoke_agent")]
    assert ids[0] == first == "r-1"
    assert ids[1] == facts.run_id != "r-1"


def test_facts_say_more_inside_of_others(loopspan_capture: Captured):
    outer = loopspan.context(conversation_id="c-1", subject="alice", attributes={"tenant": "t1", "tier": 1})
    with outer, loopspan.context(subject="bob", attributes={"tier": 2}):
        run_once()
    attributes = root(loopspan_capture).attributes
    assert (attributes[semconv.CONVERSATION], attributes[semconv.SUBJECT]) == ("c-1", "bob")
    assert (attributes["tenant"], attributes["tier"]) == ("t1", 2)


@pytest.mark.parametrize(
    "said",
    [
        {"conversation_id": 1},
        {"run_id": b"r"},
        {"parent": "sibling"},
        {"attributes": {"deep": {"er": 1}}},
        {"attributes": {1: "number"}},
        {"attributes": {"mixed": [None]}},
    ],
)
def test_facts_of_other_types_are_refused_by_name(said: dict[str, Any]):
    with pytest.raises(loopspan.ConfigurationError, match=next(iter(said))):
        loopspan.context(**said)


# --- users' own spans


def test_a_span_of_the_users_own_is_a_child_of_the_narrowest_span(loopspan_capture: Captured):
    tracer = user_tracer(loopspan_capture)

    def mine(name: str) -> None:
        tracer.start_span(name).end()

    def decide(request: Any) -> bool:
        mine("in decide")
        return True

    @loopspan.tool(approval=Approval(expires_in=60, decide=decide))
    def act() -> None:
        mine("in a tool")

    @loopspan.model_request
    def ask() -> None:
        mine("in a request")

    @loopspan.agent_loop("agent")
    def loop() -> None:
        mine("in the loop")
        ask()
        act()

    loop()
    names = {span.context.span_id: span.name for span in loopspan_capture.spans}
    parents = {span.name: names[span.parent.span_id] for span in loopspan_capture.spans if span.name.startswith("in ")}
    assert parents == {
        "in the loop": "invoke_agent agent",
        "in a request": "chat",
        "in decide": "execute_tool act",
        "in a tool": "attempt act",
    }


def test_the_callers_current_span_is_restored(loopspan_capture: Captured):
    with user_tracer(loopspan_capture).start_as_current_span("GET /") as request:
        run_once()
        assert trace.get_current_span() is request
        with loopspan.agent_loop("agent") as run:
            inside = trace.get_current_span()
            run.succeed()
        assert trace.get_current_span() is request
    assert inside.get_span_context() == of(loopspan_capture.spans, "invoke_agent")[1].context
    assert not trace.get_current_span().get_span_context().is_valid


# --- clocks


class Stepping(TickingClock):
    """A clock whose wall time is set back by two seconds at every reading; its monotonic time ticks."""

    def __init__(self) -> None:
        super().__init__()
        self.set_back = 0

    def wall(self) -> int:
        """The wall clock, once more set back."""
        self.set_back += 2_000_000_000
        return super().monotonic() - self.set_back


def test_a_wall_clock_that_is_set_back_never_gives_a_negative_duration():
    @loopspan.tool(subagent=True)
    def delegate() -> None:
        run_once()

    with capture(clock=Stepping(), ids=CountingIds()) as captured, loopspan.agent_loop("boss") as run:
        delegate()
        run.succeed()
    spans = {span.context.span_id: span for span in captured.spans}
    assert len(spans) == 5
    for span in spans.values():
        assert span.end_time > span.start_time
        parent = spans.get(span.parent.span_id) if span.parent else None
        assert parent is None or parent.start_time < span.start_time < span.end_time < parent.end_time


# --- providers

NO_SDK = """
import sys
import loopspan
from opentelemetry import trace

@loopspan.tool
def act(): return 1

@loopspan.model_request
def ask(): return "answer"

@loopspan.agent_loop("agent", max_steps=2)
def loop(asks):
    for _ in range(asks):
        ask()
    act()
    kept.append(loopspan.current_run())
    return "done"

kept = []
assert loop(1) == "done"
assert kept[0].lifecycle == "closed" and kept[0].run_id
try:
    kept[0].stop("cancelled")
except loopspan.RunClosed as error:
    print(error.rule)
try:
    loop(3)
except loopspan.MaxStepsExceeded as error:
    print(error.stop_reason)
try:
    loopspan.Toolbox(act).call("rm", "{}")
except loopspan.UnknownTool:
    print("unknown_tool")
assert not trace.get_current_span().get_span_context().is_valid
"""


def test_without_an_sdk_nothing_is_recorded_and_the_rules_hold():
    code = NO_SDK + "print('opentelemetry.sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["closed", "max_steps", "unknown_tool", "False"]
    assert done.stderr == ""


LATE = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
assert loop(1) == "done"
print(*sorted(span.name.split()[0] for span in exporter.get_finished_spans()))
"""


def test_a_provider_that_is_set_after_the_first_runs_sees_the_next_one():
    done = subprocess.run([sys.executable, "-c", NO_SDK + LATE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "attempt chat execute_tool invoke_agent step"


def test_a_run_that_is_switched_off_records_nothing_and_the_rules_hold():
    with capture(enabled=False) as captured:
        with loopspan.agent_loop("agent", max_steps=1) as run:
            next(run.steps())
            with pytest.raises(loopspan.MaxStepsExceeded):
                next(run.steps())
            run.succeed()
        with pytest.raises(loopspan.RunClosed):
            run.succeed()
    assert (ours(captured), captured.entries, captured.logs) == ([], [], [])
