"""Cases, group coexistence: other instrumentations of the same client, and processors that are broken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor as OpenAIV2
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor

import loopspan
from loops import published
from loopspan import _guard
from loopspan.testing import Captured, capture

servers = published.load("_servers")
MESSAGES = [{"role": "user", "content": "What is six times seven?"}]
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
WHOLE = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_760_000_000,
    "model": "gpt-test-served",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "42"}}],
    "usage": USAGE,
}


def chunk(**fields: Any) -> bytes:
    """One server-sent event of a streamed answer."""
    body = {**WHOLE, "object": "chat.completion.chunk", "choices": [], "usage": None, **fields}
    return f"data: {json.dumps(body)}\n\n".encode()


def choice(finish_reason: str | None = None, **delta: Any) -> list[dict[str, Any]]:
    """What a chunk adds to the answer."""
    return [{"index": 0, "finish_reason": finish_reason, "delta": delta}]


CHUNKS = [
    chunk(choices=choice(role="assistant", content="4")),
    chunk(choices=choice(content="2")),
    chunk(choices=choice("stop")),
    chunk(usage=USAGE),
    b"data: [DONE]\n\n",
]

# M1: what others say of the same request


class Others:
    """The official instrumentation and OpenInference's, on every client of the process."""

    def __init__(self, captured: Captured) -> None:
        self.reader = InMemoryMetricReader()
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        OpenAIV2().instrument(tracer_provider=captured.tracer_provider, meter_provider=meters)
        OpenInference().instrument(tracer_provider=captured.tracer_provider)

    def remove(self) -> None:
        """Leave the client as it was."""
        OpenInference().uninstrument()
        OpenAIV2().uninstrument()

    def metrics(self) -> dict[str, float]:
        """The sums of what they measure."""
        sums: dict[str, float] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    sums[metric.name] = sum(point.sum for point in metric.data.data_points)
        return sums


@pytest.fixture
def others(loopspan_capture: Captured) -> Iterator[Others]:
    """Both of them."""
    found = Others(loopspan_capture)
    yield found
    found.remove()


def create(url: str, **options: Any) -> Any:
    """One request through a wrapped method of the SDK, read to its end."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        ask = loopspan.model_request(provider="openai")(client.chat.completions.create)
        answer = ask(model="gpt-test", messages=MESSAGES, **options)
        return list(answer) if options else answer


async def acreate(url: str, **options: Any) -> Any:
    """Likewise, awaited."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        ask = loopspan.model_request(provider="openai")(client.chat.completions.create)
        answer = await ask(model="gpt-test", messages=MESSAGES, **options)
        return [item async for item in answer] if options else answer


def once(function: Callable[..., Any], streamed: bool, *, run: bool = True) -> Any:
    """One request against a server of its own, in a run of its own or in none."""
    reply = servers.Reply(CHUNKS, streamed=True) if streamed else servers.whole(WHOLE)
    options = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
    with servers.Server([reply]) as server:
        ask = loopspan.agent_loop("loop")(function) if run else function
        answer = ask(server.url, **options)
        return asyncio.run(answer) if function is acreate else answer


def total(spans: list[Any], prefix: str) -> int:
    """The sum of an attribute over spans."""
    return sum(value for span in spans for name, value in span.attributes.items() if name.startswith(prefix))


CALLS = [(create, False), (create, True), (acreate, False), (acreate, True)]
each_call = pytest.mark.parametrize(("function", "streamed"), CALLS)


@each_call
def test_M1_our_tokens_and_metrics_are_there_once(
    others: Others, loopspan_capture: Captured, function: Callable[..., Any], streamed: bool
):
    once(function, streamed)
    ours = [span for span in loopspan_capture.spans if "loopspan.run.id" in span.attributes]
    theirs = [span for span in loopspan_capture.spans if span not in ours]
    assert [span.name for span in ours if span.name.startswith("chat")] == ["chat gpt-test"]
    assert total(ours, "gen_ai.usage.") == 120
    (run,) = loopspan_capture.runs
    assert (run.usage.input_tokens, run.usage.output_tokens, len(run.requests)) == (100, 20, 1)
    for name, tokens in (("input", 100), ("output", 20)):
        counted = loopspan_capture.metric(f"gen_ai.client.inference.usage.{name}_tokens")
        assert (counted.sum, len(counted.points)) == (tokens, 1)
    assert loopspan_capture.metric("gen_ai.client.inference.duration").count == 1
    chat = next(span for span in ours if span.name.startswith("chat"))
    assert {span.context.trace_id for span in theirs} == {chat.context.trace_id}
    inside = {chat.context.span_id} | {span.context.span_id for span in theirs}
    assert all(span.parent.span_id in inside for span in theirs), "theirs are inside of ours"


@each_call
def test_M1_what_doubles_is_what_the_documentation_says(
    others: Others, loopspan_capture: Captured, function: Callable[..., Any], streamed: bool
):
    once(function, streamed)
    official, inference, ours = (
        [span for span in loopspan_capture.spans if word in span.instrumentation_scope.name]
        for word in ("openai_v2", "openinference", "loopspan")
    )
    assert (len(official), len(inference)) == (1, 1)
    assert total(official, "gen_ai.usage.") == total(ours, "gen_ai.usage.") == 120
    assert total(inference, "gen_ai.usage.") == 0
    assert total(inference, "llm.token_count.total") == 120
    metrics = others.metrics()
    assert metrics.pop("gen_ai.client.operation.duration") > 0
    assert metrics == ({} if streamed else {"gen_ai.client.token.usage": 120})
    assert loopspan_capture.metric("gen_ai.client.token.usage").points == [], "the older names are not ours by default"


def test_M1_the_older_names_of_metrics_double_where_they_are_asked_for(others: Others):
    with capture(semconv="both") as captured:
        once(create, streamed=False)
    assert captured.metric("gen_ai.client.token.usage").sum == others.metrics()["gen_ai.client.token.usage"] == 120


@each_call
def test_M1_requests_outside_of_a_run_are_left_to_the_others(
    others: Others, loopspan_capture: Captured, function: Callable[..., Any], streamed: bool
):
    once(function, streamed, run=False)
    assert sorted(span.instrumentation_scope.name for span in loopspan_capture.spans) == [
        "openinference.instrumentation.openai",
        "opentelemetry.instrumentation.openai_v2",
    ]
    assert loopspan_capture.metric("gen_ai.client.inference.duration").points == []


# M3: what a broken processor raises


class Broken(SpanProcessor):
    """A processor that raises at the start of spans, at their end, or at both."""

    def __init__(self, *places: str) -> None:
        self.places = places
        self.raised = 0

    def _raise(self, place: str) -> None:
        if place in self.places:
            self.raised += 1
            raise RuntimeError(f"processor broken at {place}")

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._raise("start")

    def on_end(self, span: Any) -> None:
        self._raise("end")


@loopspan.model_request(model="m")
def stream(fails: BaseException | None = None) -> Iterator[dict[str, Any]]:
    """A streamed answer, which may break at its end."""
    yield {"model": "m", "choices": choice(content="42")}
    if fails is not None:
        raise fails
    yield {"model": "m", "choices": choice("stop"), "usage": USAGE}


@loopspan.tool
def work(fails: BaseException | None = None) -> str:
    """A tool that may fail."""
    if fails is not None:
        raise fails
    return "done"


BROKEN = [("start",), ("end",), ("start", "end")]


@pytest.fixture(params=BROKEN, ids="+".join)
def broken(request: pytest.FixtureRequest) -> Iterator[tuple[Captured, Broken]]:
    """A capture with a broken processor, which contains its own faults as it does outside of tests."""
    processor = Broken(*request.param)
    with capture(strict=False) as captured:
        captured.tracer_provider.add_span_processor(processor)
        yield captured, processor


def test_M3_a_finished_stream_reaches_its_reader(broken: tuple[Captured, Broken]):
    captured, processor = broken

    @loopspan.agent_loop("loop")
    def loop() -> tuple[int, str]:
        return len(list(stream())), work()

    assert loop() == (2, "done")
    assert processor.raised
    (run,) = captured.runs
    assert (run.stop_reason, run.usage.input_tokens) == ("success", 100)


def test_M3_a_loop_that_streams_reaches_its_reader(broken: tuple[Captured, Broken]):
    captured, processor = broken

    @loopspan.agent_loop("loop")
    def loop() -> Iterator[Any]:
        yield from stream()
        yield work()

    assert list(loop())[-1] == "done"
    assert processor.raised
    assert captured.runs[0].stop_reason == "success"


@pytest.mark.parametrize("place", [lambda error: list(stream(error)), work])
def test_M3_the_original_exception_reaches_its_catcher(
    broken: tuple[Captured, Broken], place: Callable[[BaseException], Any]
):
    captured, processor = broken
    error = ValueError("the real reason")

    @loopspan.agent_loop("loop")
    def loop() -> None:
        place(error)

    with pytest.raises(ValueError, match="the real reason") as caught:
        loop()
    assert caught.value is error
    assert caught.value.__context__ is None
    assert processor.raised
    assert captured.runs[0].stop_reason in ("model_failed", "tool_failed")


def test_M3_the_faults_are_counted_and_logged_once(broken: tuple[Captured, Broken], caplog: pytest.LogCaptureFixture):
    captured, processor = broken
    before = sum(_guard.faults.values())

    @loopspan.agent_loop("loop")
    def loop() -> str:
        return work()

    for _ in range(3):
        loop()
    assert sum(_guard.faults.values()) - before == processor.raised >= 3
    assert captured.metric("loopspan.telemetry.faults").sum == sum(_guard.faults.values())
    warnings = [record for record in caplog.records if record.name == "loopspan"]
    assert len(warnings) <= len(processor.places)
