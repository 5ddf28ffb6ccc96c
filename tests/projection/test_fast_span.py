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
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, Tracer, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, StatusCode, TraceFlags

import loopspan
from loopspan import _guard, semconv
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
    with capture(tracer_provider=provider):
        everything()
    assert not [span for span in exporter.get_finished_spans() if type(span) is FastSpan]
    with root_of(provider) as (tracer, span):
        assert not _fast_span.usable(tracer, span)
    meters.shutdown()


# --- processors


class Watching(SpanProcessor):
    """Keeps what it is called with."""

    def __init__(self, act: Callable[[str, Any], Any] = lambda hook, span: None) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.contexts: dict[int, Any] = {}
        self.act = act

    def _called(self, hook: str, span: Any) -> None:
        self.calls.append((hook, span))
        self.act(hook, span)

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self.contexts[span.context.span_id] = parent_context
        self._called("on_start", span)

    def _on_ending(self, span: Span) -> None:
        self._called("_on_ending", span)

    def on_end(self, span: ReadableSpan) -> None:
        self._called("on_end", span)

    def of(self, hook: str) -> list[Any]:
        """The spans that a hook was called with."""
        return [span for name, span in self.calls if name == hook]


@contextmanager
def watched(act: Callable[[str, Any], Any] = lambda hook, span: None, **settings: Any) -> Iterator[Watching]:
    """A processor that sees what is recorded inside."""
    processor = Watching(act)
    with capture(clock=TickingClock(), ids=CountingIds(), **settings) as captured:
        captured.tracer_provider.add_span_processor(processor)
        yield processor


def test_processors_are_called_once_a_span_with_real_spans():
    with watched() as processor:
        everything()
    for hook in ("on_start", "_on_ending", "on_end"):
        ids = Counter(span.context.span_id for span in processor.of(hook))
        assert ids == dict.fromkeys(range(1, 28), 1)
    assert all(isinstance(span, Span) for span in processor.of("on_start"))
    assert all(isinstance(span, ReadableSpan) and span.end_time for span in processor.of("on_end"))


def test_processors_see_the_parent_in_the_context():
    with watched() as processor:
        everything()
    for span in processor.of("on_start"):
        parent = trace.get_current_span(processor.contexts[span.context.span_id]).get_span_context()
        assert (span.parent or trace.INVALID_SPAN_CONTEXT) == parent


def test_a_span_is_open_when_it_starts_and_over_when_it_ends():
    def check(hook: str, span: Any) -> None:
        states.append((hook, span.end_time is None))

    states: list[tuple[str, bool]] = []
    with watched(check):
        everything()
    assert set(states) == {("on_start", True), ("_on_ending", False), ("on_end", False)}


def test_what_a_processor_sets_at_the_start_is_exported():
    def mark(hook: str, span: Any) -> None:
        if hook == "on_start":
            span.set_attribute("baggage.user", "u-1")
            span.set_attribute(semconv.RUN_ID, "another")

    with watched(mark) as processor:
        everything()
    assert {span.attributes["baggage.user"] for span in processor.of("on_end")} == {"u-1"}
    assert {span.attributes[semconv.RUN_ID] for span in processor.of("on_end")} == {f"{1:032x}", f"{4:032x}"}
    assert all(isinstance(described(span)["attributes"], dict) for span in processor.of("on_end"))


# --- faults of processors and exporters (M3)


class Fault(Exception):
    """A processor's own."""


def failing(where: str, names: tuple[str, ...]) -> Callable[[str, Any], None]:
    """Raises in one hook, for spans of these names or for all."""

    def act(hook: str, span: Any) -> None:
        if hook == where and (not names or span.name.startswith(names)):
            raise Fault(span.name)

    return act


@pytest.fixture
def faults() -> Iterator[Counter[str]]:
    """The counted faults, from zero."""
    _guard.faults.clear()
    yield _guard.faults
    _guard.faults.clear()


WHERE = [
    (hook, names)
    for hook in ("on_start", "_on_ending", "on_end")
    for names in ((), ("invoke_agent",), ("step",), ("chat",), ("execute_tool",), ("attempt",), ("validate",))
]


@pytest.mark.parametrize(("hook", "names"), WHERE)
def test_a_processor_that_raises_changes_neither_the_run_nor_its_record(
    faults: Counter[str], hook: str, names: tuple[str, ...]
):
    with watched(failing(hook, names), strict=False) as processor:
        assert everything() == "built"
    assert faults["the span pipeline"] > 0
    ended = [span for span in processor.of("on_end") if not span.name.startswith(names or ("",))]
    expected = {"invoke_agent", "step", "chat", "execute_tool", "attempt", "validate"} - set(names or expected_none())
    assert {span.name.split(" ")[0] for span in ended} >= expected
    assert not trace.get_current_span().get_span_context().is_valid


def expected_none() -> tuple[str, ...]:
    """All words: a processor that always raises may leave nothing."""
    return ("invoke_agent", "step", "chat", "execute_tool", "attempt", "validate")


@pytest.mark.parametrize(("hook", "names"), WHERE)
def test_each_span_ends_itself_and_no_other_where_a_processor_raises(hook: str, names: tuple[str, ...]):
    with watched(failing(hook, names), strict=False) as processor:
        everything()
    ended = Counter(span.context.span_id for span in processor.of("on_end"))
    assert set(ended.values()) <= {1}
    for span in processor.of("on_end"):
        last = span.events[-1].name
        if span.name.startswith("invoke_agent"):
            assert last == "run_trace_closed"
        if span.name == "step":
            assert last == "step_closed"


def test_a_processor_that_raises_loses_no_event_of_the_run_log():
    with capture(strict=False, clock=TickingClock(), ids=CountingIds()) as captured:
        captured.tracer_provider.add_span_processor(Watching(failing("on_start", ("step", "attempt"))))
        everything()
    assert [entry.seq for entry in captured.entries if entry.run_id == f"{1:032x}"] == list(range(1, 60))


def test_a_fault_is_logged_once_a_place_and_counted(faults: Counter[str], caplog: pytest.LogCaptureFixture):
    with watched(failing("on_end", ()), strict=False):
        everything()
    assert faults["the span pipeline"] == 27
    assert [record.name for record in caplog.records if "span pipeline" in record.message] == ["loopspan"]


@pytest.mark.parametrize("hook", ["on_start", "_on_ending", "on_end"])
def test_a_fault_of_a_processor_is_raised_under_strict(hook: str):
    with watched(failing(hook, ("step",))), pytest.raises(Fault, match="step"):
        everything()


def test_the_original_exception_reaches_the_caller_past_a_processor_that_raises():
    error = OSError("the tool's own")

    @loopspan.agent_loop("agent")
    def loop() -> None:
        loopspan.tool("act")(act)()

    def act() -> None:
        raise error

    with watched(failing("on_end", ()), strict=False), pytest.raises(OSError, match="the tool's own") as caught:
        loop()
    assert caught.value is error


def test_an_exporter_that_raises_is_the_sdks_to_contain(faults: Counter[str], caplog: pytest.LogCaptureFixture):
    class Broken(SpanExporter):
        """Raises."""

        def export(self, spans: Any) -> SpanExportResult:
            raise Fault

    with capture(strict=False) as captured:
        captured.tracer_provider.add_span_processor(SimpleSpanProcessor(Broken()))
        with loopspan.agent_loop("agent") as run:
            run.succeed()
    assert len(captured.spans) == 1
    assert faults == {}
    assert caplog.records
