"""Processors and exporters see every span once; what they raise stays where it is (M3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import loopspan
from loopspan import _guard, semconv
from loopspan.testing import CountingIds, TickingClock, capture
from projection.sample import everything
from projection.spans import described


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


HOOKS = ("on_start", "_on_ending", "on_end")
WORDS = ("invoke_agent", "step", "chat", "execute_tool", "attempt", "validate")
WHERE = [(hook, names) for hook in HOOKS for names in ((), *((word,) for word in WORDS))]


@pytest.mark.parametrize(("hook", "names"), WHERE)
def test_a_processor_that_raises_does_not_touch_the_run(faults: Counter[str], hook: str, names: tuple[str, ...]):
    with watched(failing(hook, names), strict=False):
        assert everything() == "built"
    assert faults["the span pipeline"] > 0
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize(("hook", "word"), [(hook, word) for hook in HOOKS for word in WORDS])
def test_a_processor_that_raises_for_one_kind_of_span_sees_the_others(hook: str, word: str):
    with watched(failing(hook, (word,)), strict=False) as processor:
        everything()
    ended = {span.name.split(" ")[0] for span in processor.of("on_end")} & set(WORDS)
    lost = set(WORDS) if (hook, word) == ("on_start", "invoke_agent") else {word}  # without its root a run has no spans
    assert ended - {word} == set(WORDS) - lost


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
