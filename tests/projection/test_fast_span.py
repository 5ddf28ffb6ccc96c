"""The fast span is the SDK's span: equal to what the public API writes, for processors as for exporters."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, Tracer, TracerProvider
from opentelemetry.trace import SpanContext, StatusCode, TraceFlags

import loopspan
from loopspan import semconv
from loopspan.telemetry import _fast_span
from loopspan.telemetry._fast_span import FastSpan
from loopspan.testing import CountingIds, TickingClock, capture
from projection.sample import everything
from projection.spans import described, of, pipeline, tracer_of

Settings = dict[str, Any]


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Switches to the public API."""
    return lambda: monkeypatch.setattr(_fast_span, "usable", lambda tracer, root: False)


def spans_of(program: Callable[[], Any], **options: Any) -> list[ReadableSpan]:
    """The spans of a program that does the same each time, by a provider with these options."""
    provider, exporter = pipeline(id_generator=(ids := CountingIds()), **options)
    with capture(clock=TickingClock(), ids=ids, tracer_provider=provider):
        program()
    return list(exporter.get_finished_spans())


def whole(span: ReadableSpan) -> dict[str, Any]:
    """All that is exported of a span, what users added included; SDKs count what was dropped in their own way."""
    dropped = bool(span.dropped_attributes), span.dropped_events, span.dropped_links
    attributes = [(key, value, type(value)) for key, value in span.attributes.items()]
    events = [(event.name, event.timestamp, list(event.attributes.items())) for event in span.events]
    return {
        **described(span),
        "dropped": dropped,
        "attributes": sorted(attributes),
        "events": events,
        "dropped of events": [bool(event.dropped_attributes) for event in span.events],
    }


def users(span: trace.Span) -> None:
    """All that users do to a span of ours that is open."""
    span.set_attribute("user.text", "x" * 50)
    span.set_attributes({"user.list": ["a" * 50, "b"], "user.number": 1, semconv.AGENT: "another"})
    span.add_event("user.event", {"user.text": "y" * 50, "n": 1}, timestamp=1_700_000_000_000_000_000)
    span.add_link(SpanContext(1, 2, True, TraceFlags(1)), {"user.text": "z" * 50})
    span.add_link(SpanContext(0, 0, True))
    span.set_status(StatusCode.ERROR, "said by the user")


def crowded() -> None:
    """A run whose user adds to the span at every place where their code runs."""

    @loopspan.model_request(provider="p", model="m", read=lambda said: said)
    def ask(messages: list[Any]) -> loopspan.Answer:
        users(trace.get_current_span())
        trace.get_current_span().update_name("renamed by the user")
        return loopspan.Answer(finish_reasons=("stop", "a long reason"), content=["text" * 20], model="m-2026")

    @loopspan.tool
    def act(path: str) -> str:
        users(trace.get_current_span())
        trace.get_current_span().record_exception(KeyError("found by the user"), timestamp=1_700_000_000_000_000_000)
        return "result " * 10

    @loopspan.agent_loop("agent")
    def loop() -> None:
        users(trace.get_current_span())
        ask([])
        users(loopspan.current_step().handle.span)
        act("a long path" * 3)

    with loopspan.context(attributes={"tags": ["a long tag", "b"]}):
        loop()


LIMITS: dict[str, Settings] = {
    "default": {},
    "text": {"max_attribute_length": 8},
    "span text": {"max_span_attribute_length": 8},
    "attributes": {"max_span_attributes": 9},
    "few attributes": {"max_span_attributes": 2},
    "no attributes": {"max_span_attributes": 0},
    "events": {"max_events": 2},
    "one event": {"max_events": 1},
    "no events": {"max_events": 0},
    "attributes of events": {"max_event_attributes": 4},
    "links": {"max_links": 1, "max_link_attributes": 0},
    "none": dict.fromkeys(("max_attributes", "max_events", "max_links", "max_span_attributes"), SpanLimits.UNSET),
    "all": {"max_attributes": 7, "max_events": 3, "max_attribute_length": 5},
}


# --- equal spans


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("program", [everything, crowded])
def test_both_ways_write_equal_spans(public: Callable[[], Any], program: Callable[[], Any], limits: str):
    fast = spans_of(program, span_limits=SpanLimits(**LIMITS[limits]))
    public()
    slow = spans_of(program, span_limits=SpanLimits(**LIMITS[limits]))
    assert sum(type(span) is FastSpan for span in fast) == len(fast) - len(of(fast, "invoke_agent"))
    assert not [span for span in slow if type(span) is FastSpan]
    assert [whole(span) for span in fast] == [whole(span) for span in slow]


def test_a_span_that_has_ended_takes_nothing_more(caplog: pytest.LogCaptureFixture):
    kept: list[trace.Span] = []

    @loopspan.agent_loop("agent")
    def loop() -> None:
        loopspan.model_request(lambda: kept.append(trace.get_current_span()))()

    (chat, *_) = spans_of(loop, span_limits=SpanLimits(max_span_attributes=4))
    before = whole(chat)
    with caplog.at_level(logging.ERROR):
        users(kept[0])
        kept[0].update_name("too late")
        kept[0].end()
    assert chat is kept[0]
    assert whole(chat) == before
    assert not chat.is_recording()


def test_what_threads_add_to_one_span_is_all_there():
    def loop() -> None:
        with loopspan.agent_loop("agent") as run:
            step = next(run.steps())

            def add(thread: int) -> None:
                for number in range(20):
                    step.handle.span.set_attribute(f"user.{thread}.{number}", number)
                    step.handle.span.add_event(f"user.{thread}", {"n": number})

            threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(20):
                step.parse_error("{", feedback="again")
            for thread in threads:
                thread.join()
            run.succeed()

    (step, _) = spans_of(loop)
    names = Counter(event.name for event in step.events)
    assert names == {"step_started": 1, "response_parse_error": 20, "step_closed": 1} | {
        f"user.{number}": 20 for number in range(4)
    }
    assert len([key for key in step.attributes if key.startswith("user.")]) == 80


# --- the self-check


@contextmanager
def root_of(provider: TracerProvider) -> Iterator[tuple[Tracer, trace.Span]]:
    """Our tracer and a span of it."""
    tracer = tracer_of(provider)
    span = tracer.start_span("root")
    yield tracer, span
    span.end()


def test_the_sdk_as_it_is_passes_the_check():
    with root_of(pipeline()[0]) as (tracer, span):
        assert _fast_span.usable(tracer, span)


def test_a_tracer_or_a_span_that_is_not_the_sdks_fails_the_check():
    class OtherTracer(Tracer):
        """An application's own."""

    with root_of(pipeline()[0]) as (tracer, span):
        other = object.__new__(OtherTracer)
        vars(other).update(vars(tracer))
        assert not _fast_span.usable(other, span)
        assert not _fast_span.usable(tracer, trace.NonRecordingSpan(span.get_span_context()))
        assert not _fast_span.usable(trace.ProxyTracerProvider().get_tracer("x"), span)


@pytest.mark.parametrize("change", [lambda fields: fields.update(_more=1), lambda fields: fields.pop("_links")])
def test_a_span_of_another_shape_fails_the_check(change: Callable[[dict[str, Any]], Any]):
    provider, _ = pipeline()
    tracer = tracer_of(provider)
    span = tracer.start_span("root")
    change(vars(span))
    assert not _fast_span.usable(tracer, span)


def test_an_sdk_that_counts_its_spans_fails_the_check_and_counts_all_of_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", "true")
    meters = MeterProvider(shutdown_on_exit=False)
    provider, exporter = pipeline(meter_provider=meters)
    with capture(clock=TickingClock(), tracer_provider=provider):
        everything()
    assert not [span for span in exporter.get_finished_spans() if type(span) is FastSpan]
    with root_of(provider) as (tracer, span):
        assert not _fast_span.usable(tracer, span)
    meters.shutdown()
