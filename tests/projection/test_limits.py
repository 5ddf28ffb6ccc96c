"""What a span is and how it ended survives whatever users add, within the limits that the SDK was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits
from opentelemetry.trace import StatusCode

import loopspan
from loopspan import semconv
from loopspan.telemetry import _fast_span
from loopspan.testing import CountingIds, TickingClock, capture
from projection.spans import pipeline, word

OUTCOMES = {
    "invoke_agent": {semconv.STOP_REASON: "success", semconv.LIFECYCLE: "closed", semconv.OPERATION: "invoke_agent"},
    "step": {semconv.STEP_OUTCOME: "ok", semconv.STEP_NUMBER: 1},
    "chat": {semconv.REQUEST_OUTCOME: "failed", semconv.OPERATION: "chat", semconv.ERROR_TYPE: "OSError"},
    "execute_tool": {semconv.TOOL_OUTCOME: "failed", semconv.TOOL_NAME: "act", semconv.ERROR_TYPE: "OSError"},
    "attempt": {semconv.ATTEMPT_OUTCOME: "failed", semconv.ATTEMPT_NUMBER: 1, semconv.ERROR_TYPE: "OSError"},
}
"""What must be on each span at its end."""


@pytest.fixture(params=["fast", "public"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of writing spans."""
    if request.param == "public":
        monkeypatch.setattr(_fast_span, "usable", lambda tracer, root: False)
    return str(request.param)


@contextmanager
def recording(limits: SpanLimits | None = None) -> Iterator[list[ReadableSpan]]:
    """The spans of what is done inside, by a provider with these limits."""
    provider, exporter = pipeline(span_limits=limits)
    spans: list[ReadableSpan] = []
    with capture(clock=TickingClock(), ids=CountingIds(), tracer_provider=provider):
        yield spans
    spans.extend(exporter.get_finished_spans())


def crowded(add: Callable[[trace.Span], None]) -> None:
    """A run that adds to the current span at every place where users' code runs; request and tool fail."""

    @loopspan.model_request
    def ask() -> None:
        add(trace.get_current_span())
        raise OSError

    def act() -> None:
        with loopspan.tool_call("act", {}) as call:
            add(trace.get_current_span())
            with call.attempt():
                add(trace.get_current_span())
                raise OSError

    with loopspan.context(conversation_id="c-1"), loopspan.agent_loop("agent") as run:
        add(trace.get_current_span())
        add(next(run.steps()).handle.span)
        for function in (ask, act):
            with suppress(OSError):
                function()
        run.succeed()


def attributes(span: trace.Span) -> None:
    """400 attributes."""
    for number in range(200):
        span.set_attribute(f"user.{number}", number)
    span.set_attributes({f"user.{number}": "text" for number in range(200, 400)})


def events(span: trace.Span) -> None:
    """300 events."""
    for number in range(300):
        span.add_event("user.event", {"number": number})


def check(spans: list[ReadableSpan]) -> None:
    """Every span says which run, agent, conversation it is part of, and how it ended."""
    assert {word(span) for span in spans} == set(OUTCOMES)
    for span in spans:
        assert span.attributes[semconv.RUN_ID] == f"{1:032x}"
        assert (span.attributes[semconv.AGENT], span.attributes[semconv.CONVERSATION]) == ("agent", "c-1")
        assert OUTCOMES[word(span)].items() <= span.attributes.items()
        failed = semconv.ERROR_TYPE in OUTCOMES[word(span)]
        assert span.status.status_code is (StatusCode.ERROR if failed else StatusCode.UNSET)


def test_400_attributes_push_out_neither_identity_nor_outcome():
    with recording() as spans:
        crowded(attributes)
    check(spans)
    for span in spans:
        assert len(span.attributes) == 128
        assert span.attributes["user.399"] == "text"
        assert span.dropped_attributes > 0


def test_attributes_that_are_set_through_the_run_do_not_either():
    with recording() as spans, loopspan.agent_loop("agent") as run:
        for number in range(400):
            run.set_attribute(f"user.{number}", number)
        run.succeed()
    assert spans[0].attributes[semconv.RUN_ID] == f"{1:032x}"
    assert spans[0].attributes[semconv.STOP_REASON] == "success"
    assert spans[0].attributes["user.399"] == 399


def test_attributes_that_are_given_to_every_span_push_out_neither():
    facts = loopspan.context(
        attributes={**{f"user.{number}": number for number in range(400)}, semconv.RUN_ID: "other"}
    )
    with recording() as spans, facts:
        crowded(lambda span: None)
    check(spans)
    assert {span.attributes["user.399"] for span in spans} == {399}


def test_what_users_set_under_our_names_does_not_last():
    ours = {semconv.RUN_ID: "another", semconv.AGENT: "another", semconv.STEP_OUTCOME: "another"}
    with recording() as spans, loopspan.agent_loop("agent") as run:
        next(run.steps()).handle.span.set_attributes(ours)
        trace.get_current_span().set_attributes(ours)
        run.succeed()
    step = spans[0]
    assert {key: step.attributes[key] for key in ours} == {
        semconv.RUN_ID: f"{1:032x}",
        semconv.AGENT: "agent",
        semconv.STEP_OUTCOME: "ok",
    }
    assert spans[1].attributes[semconv.RUN_ID] == f"{1:032x}"


def test_300_events_leave_the_last_ones_of_ours():
    with recording() as spans:
        crowded(events)
    check(spans)
    for span in spans:
        assert len(span.events) == 128
        assert semconv.EVENT_SEQ in span.events[-1].attributes
        assert span.dropped_events > 170
    closing = {word(span): span.events[-1].name for span in spans}
    assert closing == {
        "invoke_agent": "run_trace_closed",
        "step": "step_closed",
        "chat": "model_failed",
        "execute_tool": "tool_call_closed",
        "attempt": "tool_span_closed",
    }


@pytest.mark.parametrize("length", [5, 12])
def test_text_is_cut_where_the_limit_says(length: int):
    limits = SpanLimits(max_attribute_length=length)
    with recording(limits) as spans:
        crowded(lambda span: span.set_attributes({"user.text": "x" * 100, "user.texts": ["y" * 100]}))
    for span in spans:
        values = [value for event in (span, *span.events) for value in event.attributes.values()]
        texts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
        assert max(len(text) for text in texts if isinstance(text, str)) == length


def test_text_inside_of_lists_is_cut_too():
    facts = loopspan.context(attributes={"tags": ["long text"]})
    with recording(SpanLimits(max_attribute_length=5)) as spans, facts, loopspan.agent_loop("agent") as run:
        next(run.steps())
        run.succeed()
    assert [span.attributes["tags"] for span in spans] == [("long ",), ("long ",)]


@pytest.mark.parametrize("most", [0, 1, 6, 12])
@pytest.mark.parametrize("add", [attributes, lambda span: None])
def test_no_span_has_more_attributes_than_the_limit_says(most: int, add: Any):
    with recording(SpanLimits(max_span_attributes=most)) as spans:
        crowded(add)
    assert len(spans) == 5
    assert all(len(span.attributes) <= most for span in spans)


def test_identity_and_outcome_are_the_last_to_go():
    with recording(SpanLimits(max_span_attributes=6)) as spans:
        crowded(attributes)
    for span in spans:
        assert span.attributes[semconv.RUN_ID] == f"{1:032x}"
        assert next(iter(OUTCOMES[word(span)])) in span.attributes


@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("add", [events, lambda span: None])
def test_no_span_has_more_events_than_the_limit_says(most: int, add: Any):
    with recording(SpanLimits(max_events=most)) as spans:
        crowded(add)
    assert len(spans) == 5
    assert all(len(span.events) <= most for span in spans)


@pytest.mark.parametrize("most", [0, 2, 4])
def test_an_event_keeps_its_number_where_its_attributes_are_limited(most: int):
    with recording(SpanLimits(max_event_attributes=most)) as spans:
        crowded(lambda span: None)
    for event in (event for span in spans for event in span.events):
        assert len(event.attributes) <= most
        assert most < 2 or {semconv.EVENT_SEQ, semconv.EVENT_VERSION} <= event.attributes.keys()


def test_limits_from_the_environment_hold(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "40")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "40")
    monkeypatch.setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "10")
    with recording() as spans:
        crowded(lambda span: (attributes(span), events(span), span.set_attribute("user.text", "x" * 100)))
    check(spans)
    for span in spans:
        assert (len(span.attributes), len(span.events)) == (40, 10)
        assert span.attributes["user.text"] == "x" * 40


@pytest.mark.parametrize(("value", "exported"), [("lone \ud800", "lone ?"), (2**70, str(2**70)), (["\ud800"], ("?",))])
def test_what_is_set_through_the_run_can_be_encoded(value: Any, exported: Any):
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    with recording() as spans, loopspan.agent_loop("agent") as run:
        run.set_attribute("user.value", value)
        run.succeed()
    assert spans[0].attributes["user.value"] == exported
    assert b"user.value" in encode_spans(spans).SerializeToString()
