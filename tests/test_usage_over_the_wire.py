"""Real clients over a real socket: usage on our spans, and our metrics at a collector."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

import loopspan
from loops import published
from loopspan import Usage
from loopspan.testing import capture

servers = published.load("_servers")

COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 30,
        "completion_tokens": 7,
        "total_tokens": 37,
        "prompt_tokens_details": {"cached_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
CHUNKS = [
    {**HEAD, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": None}]},
    {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {**HEAD, "choices": [], "usage": COMPLETION["usage"]},
]
SPOKEN = {"messages": [{"role": "user", "content": "hi"}], "model": "m-1"}


def completions(url: str, streamed: bool) -> None:
    """The openai SDK, chat completions."""
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        create = loopspan.model_request(provider="openai", model="m-1")(client.chat.completions.create)
        if streamed:
            list(create(**SPOKEN, stream=True, stream_options={"include_usage": True}))
        else:
            create(**SPOKEN)


def responses(url: str, streamed: bool) -> None:
    """The openai SDK, responses."""
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        create = loopspan.model_request(provider="openai", model="m-1")(client.responses.create)
        answer = create(model="m-1", input="hi", stream=streamed)
        if streamed:
            list(answer)


def messages(url: str, streamed: bool) -> None:
    """The anthropic SDK."""
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        create = loopspan.model_request(provider="anthropic", model="m-1")(client.messages.create)
        answer = create(**SPOKEN, max_tokens=9, stream=streamed)
        if streamed:
            list(answer)


def chunked(chunks: list[Any]) -> Any:
    """Chat completion chunks as server-sent events, which have no names there."""
    pieces = [f"data: {servers.json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return servers.Reply([*pieces, b"data: [DONE]\n\n"], streamed=True)


MESSAGE = servers.message(3, "ok")
MESSAGE["usage"].update(cache_read_input_tokens=40, cache_creation_input_tokens=5)
RESPONSE = servers.response(4, servers.output_text("ok"))
WIRE: list[tuple[Callable[..., None], bool, Any, Usage]] = [
    (completions, False, servers.whole(COMPLETION), Usage(30, 7, 20, None, 5)),
    (completions, True, chunked(CHUNKS), Usage(30, 7, 20, None, 5)),
    (messages, False, servers.whole(MESSAGE), Usage(148, 13, 40, 5)),
    (messages, True, servers.stream(servers.message_events(MESSAGE)), Usage(148, 13, 40, 5)),
    (responses, False, servers.whole(RESPONSE), Usage.parse(RESPONSE["usage"])),
    (responses, True, servers.stream(servers.response_events(RESPONSE)), Usage.parse(RESPONSE["usage"])),
]
NAMES = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read.input_tokens",
    "cache_write_tokens": "cache_write.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}


@pytest.mark.parametrize(
    ("client", "streamed", "reply", "usage"), WIRE, ids=lambda value: getattr(value, "__name__", None)
)
def test_usage_of_an_sdk_over_the_wire_is_on_our_spans(client: Any, streamed: bool, reply: Any, usage: Usage):
    with servers.Server([reply]) as server, capture() as captured:
        loopspan.agent_loop("agent")(client)(server.url, streamed)
    (span,) = [span for span in captured.spans if span.name == "chat m-1" and "loopspan.run.id" in span.attributes]
    for field, name in NAMES.items():
        expected = getattr(usage, field)
        assert span.attributes.get(f"gen_ai.usage.{name}") == expected
        assert captured.metric(f"gen_ai.client.inference.usage.{name}").sum == (expected or 0)
    assert captured.runs[0].usage == usage
    assert usage.total_tokens


LITELLM = """
import warnings
warnings.simplefilter("ignore")
import litellm, loopspan
from loopspan.testing import capture

with capture() as captured:
    ask = loopspan.model_request(provider="openai", model="gpt-4o")(litellm.completion)
    said = []
    hi = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "mock_response": "Hello."}
    loopspan.agent_loop("agent")(lambda: said.append(ask(**hi)))()
(run,) = captured.runs
usage = said[0].usage
assert usage.prompt_tokens > 0 and usage.completion_tokens > 0
assert (run.usage.input_tokens, run.usage.output_tokens) == (usage.prompt_tokens, usage.completion_tokens)
assert not run.usage.incomplete
"""


def program(code: str, *arguments: str, **environment: str) -> None:
    """Run it in a process of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "LOOPSPAN_"))}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_usage_of_litellm_is_on_record():
    pytest.importorskip("litellm")
    program(LITELLM, LITELLM_LOCAL_MODEL_COST_MAP="True")


class Collector(BaseHTTPRequestHandler):
    """Keeps the bodies of what is posted."""

    bodies: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        """Take one export."""
        self.bodies.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


EXPORTING = """
import sys, loopspan
loopspan.setup("wired", endpoint=sys.argv[1])
ask = loopspan.model_request(provider="p", model="m")(lambda: {"usage": {"prompt_tokens": 30, "completion_tokens": 7}})
loopspan.agent_loop("agent")(lambda: [ask(), ask()])()
assert loopspan.flush().complete
"""


def test_metrics_reach_a_collector():
    bodies: list[tuple[str, bytes]] = []
    handler = type("Handler", (Collector,), {"bodies": bodies})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        program(EXPORTING, f"http://127.0.0.1:{server.server_port}", OTEL_EXPORTER_OTLP_COMPRESSION="none")
        server.shutdown()
    export = ExportMetricsServiceRequest.FromString(next(body for path, body in bodies if path == "/v1/metrics"))
    (resource,) = export.resource_metrics
    assert "wired" in [item.value.string_value for item in resource.resource.attributes]
    (scope,) = [scope for scope in resource.scope_metrics if scope.scope.name == "loopspan"]
    metrics = {metric.name: metric for metric in scope.metrics}
    tokens = metrics["gen_ai.client.inference.usage.input_tokens"]
    assert (tokens.unit, [point.as_int for point in tokens.sum.data_points]) == ("{token}", [60])
    duration = metrics["gen_ai.client.inference.duration"].histogram.data_points[0]
    assert duration.count == 2
    assert len(duration.explicit_bounds) == 14
    assert duration.exemplars[0].trace_id != b""
