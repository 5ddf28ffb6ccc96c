"""An agent behind a web handler: whose child the run is, whose conversation it belongs to, which lines it logs."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import loopspan
from loopspan.testing import Captured

LOG = logging.getLogger("shop")
REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ANSWER = {"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}]}


@loopspan.model_request(provider="openai", model="gpt-4.1")
async def ask(messages: list[str]) -> dict[str, Any]:
    """A model that answers at once."""
    return ANSWER


@loopspan.tool
def price(item: str) -> int:
    """A tool that logs."""
    LOG.warning("looking up %s", item)
    return 3


@loopspan.agent_loop
async def shop(task: str) -> int:
    """A loop that logs."""
    await ask([task])
    LOG.warning("asked")
    return price("apple")


@loopspan.agent_loop
async def shop_in_pieces(task: str) -> AsyncIterator[str]:
    """A loop that streams."""
    await ask([task])
    yield str(price("apple"))


Next = Callable[[Request], Awaitable[Response]]


def web(captured: Captured) -> FastAPI:
    """An application with a span for each request and the conversation's id from a header, as middlewares make them."""
    app = FastAPI()
    tracer = captured.tracer_provider.get_tracer("web")

    @app.middleware("http")
    async def traced(request: Request, call_next: Next) -> Response:
        context = extract(request.headers)
        with tracer.start_as_current_span(request.url.path, context=context, kind=SpanKind.SERVER):
            return await call_next(request)

    @app.post("/chat/{parent}")
    async def chat(parent: str, request: Request) -> dict[str, Any]:
        conversation = request.headers.get("x-conversation")
        with loopspan.context(conversation_id=conversation, parent=parent) as facts:
            answer = await shop("How much?")
        LOG.warning("answered")
        return {"answer": answer, "run": facts.run_id}

    @app.post("/plain")
    def plain() -> dict[str, Any]:
        import asyncio

        return {"answer": asyncio.run(shop("How much?"))}

    @app.post("/remote")
    async def remote(request: Request) -> dict[str, Any]:
        parent = TraceContextTextMapPropagator().extract(request.headers)
        with loopspan.context(parent=parent):
            return {"answer": await shop("How much?")}

    @app.post("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(shop_in_pieces("How much?"))

    return app


@pytest.fixture
def client(loopspan_capture: Captured) -> Iterator[TestClient]:
    """A client of the application."""
    with TestClient(web(loopspan_capture)) as client:
        yield client


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, with loopspan's fields in front."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(loopspan.LogFilter())
    handler.setFormatter(logging.Formatter("%(run_id)s %(step)s %(call_id)s %(message)s"))
    LOG.addHandler(handler)
    yield stream
    LOG.removeHandler(handler)


def found(captured: Captured, name: str) -> Any:
    """The one span of this name."""
    (span,) = [span for span in captured.spans if span.name == name]
    return span


def own(captured: Captured) -> list[Any]:
    """The spans of runs."""
    return [span for span in captured.spans if "loopspan.run.id" in span.attributes]


def test_the_run_is_a_child_of_the_request(client: TestClient, loopspan_capture: Captured):
    answer = client.post("/chat/child").json()
    root, request = found(loopspan_capture, "invoke_agent shop"), found(loopspan_capture, "/chat/child")
    assert root.parent.span_id == request.context.span_id
    assert {span.context.trace_id for span in own(loopspan_capture)} == {request.context.trace_id}
    assert answer == {"answer": 3, "run": loopspan_capture.runs[0].run_id}


def test_the_run_is_a_child_of_the_request_in_a_handler_that_is_run_in_a_thread(
    client: TestClient, loopspan_capture: Captured
):
    assert client.post("/plain").json() == {"answer": 3}
    root, request = found(loopspan_capture, "invoke_agent shop"), found(loopspan_capture, "/plain")
    assert root.parent.span_id == request.context.span_id


def test_the_run_is_linked_to_the_request_where_that_is_asked_for(client: TestClient, loopspan_capture: Captured):
    client.post("/chat/link")
    root, request = found(loopspan_capture, "invoke_agent shop"), found(loopspan_capture, "/chat/link")
    assert root.parent is None
    assert [link.context for link in root.links] == [request.context]
    assert (
        {span.context.trace_id for span in own(loopspan_capture)}
        == {root.context.trace_id}
        != {request.context.trace_id}
    )


def test_the_run_is_alone_where_that_is_asked_for(client: TestClient, loopspan_capture: Captured):
    client.post("/chat/none")
    root, request = found(loopspan_capture, "invoke_agent shop"), found(loopspan_capture, "/chat/none")
    assert (root.parent, len(root.links)) == (None, 0)
    assert root.context.trace_id != request.context.trace_id


def test_the_run_is_a_child_of_the_context_that_is_given(client: TestClient, loopspan_capture: Captured):
    client.post("/remote", headers={"traceparent": REMOTE})
    root = found(loopspan_capture, "invoke_agent shop")
    assert f"{root.context.trace_id:032x}" == REMOTE.split("-")[1]
    assert f"{root.parent.span_id:016x}" == REMOTE.split("-")[2]


def test_the_trace_goes_on_that_the_caller_began(client: TestClient, loopspan_capture: Captured):
    client.post("/chat/child", headers={"traceparent": REMOTE})
    assert {f"{span.context.trace_id:032x}" for span in loopspan_capture.spans} == {REMOTE.split("-")[1]}


def test_a_run_that_is_streamed_ends_with_the_stream(client: TestClient, loopspan_capture: Captured):
    assert client.post("/stream").text == "3"
    (run,) = loopspan_capture.runs
    assert (run.agent_name, run.stop_reason) == ("shop_in_pieces", "success")
    assert loopspan_capture.open_spans() == []


@pytest.mark.parametrize("parent", ["child", "link", "none"])
def test_the_conversation_is_on_every_span_of_its_run_only(client: TestClient, loopspan_capture: Captured, parent: str):
    for conversation in ("c-1", "c-2"):
        client.post(f"/chat/{parent}", headers={"x-conversation": conversation})
    client.post(f"/chat/{parent}")
    said = {}
    for span in own(loopspan_capture):
        said.setdefault(span.attributes["loopspan.run.id"], []).append(span.attributes.get("gen_ai.conversation.id"))
    assert list(said.values()) == [["c-1"] * 5, ["c-2"] * 5, [None] * 5]
    assert "gen_ai.conversation.id" not in found_all(loopspan_capture, "gen_ai.invoke_agent.duration")


def found_all(captured: Captured, metric: str) -> set[str]:
    """The names of a metric's attributes."""
    points = captured.metric(metric).points
    assert points
    return {name for point in points for name in point.attributes}


def test_log_lines_carry_the_run_the_step_and_the_call(
    client: TestClient, loopspan_capture: Captured, lines: io.StringIO
):
    client.post("/chat/child")
    (run,) = loopspan_capture.runs
    (call,) = run.tool_calls
    assert lines.getvalue().splitlines() == [
        f"{run.run_id} 1 - asked",
        f"{run.run_id} 1 {call.call_id} looking up apple",
        "- - - answered",
    ]


def test_nothing_is_current_after_a_request(client: TestClient):
    client.post("/chat/child")
    assert not trace.get_current_span().get_span_context().is_valid
    with pytest.raises(loopspan.NoActiveRun):
        loopspan.current_run()
