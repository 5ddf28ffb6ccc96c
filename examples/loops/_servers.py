"""A loopback HTTP server that plays a script of answers in the wire formats of Anthropic and OpenAI.

It stands for the provider, so that the SDKs are used as they are: sockets, JSON, server-sent events, status codes.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

PAUSE_S = 0.004
"""Seconds before the first piece of an answer and before its last one, so that durations are more than nothing."""


@dataclass(frozen=True)
class Reply:
    """One answer: its pieces, and how many of them are sent before the connection breaks (None: all of them)."""

    pieces: list[bytes]
    status: int = 200
    streamed: bool = False
    breaks_after: int | None = None


@dataclass
class Served:
    """One request that was served; `seconds` from its arrival until its last piece was about to be sent."""

    path: str
    body: Json
    seconds: float = 0.0


@dataclass
class Server:
    """`with Server(replies) as server:` answers each request with the next reply, at `server.url`."""

    replies: list[Reply]
    served: list[Served] = field(default_factory=list)
    hold: threading.Event | None = None
    """If there is one, the last piece of a reply waits for it."""

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"script": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The base of its addresses."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def take(self, served: Served) -> Reply:
        """The next reply."""
        self.served.append(served)
        return self.replies.pop(0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Server

    def do_POST(self) -> None:
        """Answer with the next reply."""
        arrived = time.perf_counter()
        served = Served(self.path, json.loads(self.rfile.read(int(self.headers["content-length"]))))
        reply = self.script.take(served)
        try:
            self._head(reply)
            for piece in self._paced(reply, served, arrived):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.streamed else piece)
                self.wfile.flush()
            if reply.streamed and reply.breaks_after is None:
                self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True  # who asked has hung up

    def _head(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("content-type", "text/event-stream" if reply.streamed else "application/json")
        if reply.streamed:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(sum(map(len, reply.pieces))))
        self.end_headers()

    def _paced(self, reply: Reply, served: Served, arrived: float) -> Iterator[bytes]:
        last = len(reply.pieces) - 1
        for number, piece in enumerate(reply.pieces):
            if number == reply.breaks_after:
                self.close_connection = True
                return
            if number in (0, last):
                time.sleep(PAUSE_S)
            if number == last:
                if self.script.hold is not None:
                    self.script.hold.wait(10)
                served.seconds = time.perf_counter() - arrived
            yield piece

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name that http.server gives it
        """Say nothing."""


def whole(body: Json, status: int = 200) -> Reply:
    """An answer as one JSON document."""
    return Reply([json.dumps(body).encode()], status)


def stream(events: list[Json], breaks_after: int | None = None) -> Reply:
    """An answer as server-sent events, each with the name of its type."""
    pieces = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    return Reply(pieces, streamed=True, breaks_after=breaks_after)


# Anthropic


def tool_use(call_id: str, name: str, **arguments: Any) -> Json:
    """A block that asks for a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def message(number: int, *blocks: Json | str, stop: str | None = None) -> Json:
    """Answer `number`: text and tool_use blocks; its usage is 100 + number tokens in and 10 + number out."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    asks = any(block["type"] == "tool_use" for block in content)
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-test-20260101",
        "content": content,
        "stop_reason": stop or ("tool_use" if asks else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100 + number,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 10 + number,
        },
    }


def message_events(answer: Json) -> list[Json]:
    """The events that stream a message."""
    start = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(answer["content"]):
        empty, deltas = _block_deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    return [*events, {"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]


def _block_deltas(block: Json) -> tuple[Json, list[Json]]:
    if block["type"] == "text":
        half = len(block["text"]) // 2
        parts = (block["text"][:half], block["text"][half:])
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in parts]
    arguments = json.dumps(block["input"])
    parts = (arguments[:5], arguments[5:])
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def anthropic_error(kind: str = "api_error") -> Json:
    """The body of a failed request, and an event in the middle of a stream."""
    return {"type": "error", "error": {"type": kind, "message": "as scripted"}}


# OpenAI responses


def function_call(call_id: str, name: str, **arguments: Any) -> Json:
    """An output item that asks for a function."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def output_text(text: str) -> Json:
    """An output item that says something."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "item_text", "role": "assistant", "status": "completed", "content": [part]}


def refusal(text: str) -> Json:
    """An output item that refuses."""
    part = {"type": "refusal", "refusal": text}
    return {"type": "message", "id": "item_refusal", "role": "assistant", "status": "completed", "content": [part]}


def response(number: int, *items: Json, incomplete: str | None = None) -> Json:
    """Answer `number`: output items; its usage is 200 + number tokens in and 20 + number out."""
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed" if incomplete is None else "incomplete",
        "error": None,
        "incomplete_details": None if incomplete is None else {"reason": incomplete},
        "instructions": None,
        "metadata": {},
        "model": "gpt-test-2026-01-01",
        "output": list(items),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": 200 + number,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20 + number,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 220 + 2 * number,
        },
    }


def response_events(answer: Json) -> list[Json]:
    """The events that stream a response."""
    begun = {**answer, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[Json] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(answer["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        inside = _call_events(item, place) if item["type"] == "function_call" else _part_events(item, place)
        empty = {**item, "status": "in_progress", "arguments" if "arguments" in item else "content": _nothing(item)}
        added = {"type": "response.output_item.added", "output_index": index, "item": empty}
        events += [added, *inside, {"type": "response.output_item.done", "output_index": index, "item": item}]
    events.append({"type": f"response.{answer['status']}", "response": answer})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _nothing(item: Json) -> Any:
    return "" if "arguments" in item else []


def _call_events(item: Json, place: Json) -> list[Json]:
    arguments, kind = item["arguments"], "response.function_call_arguments"
    deltas = [{"type": f"{kind}.delta", **place, "delta": part} for part in (arguments[:4], arguments[4:])]
    return [*deltas, {"type": f"{kind}.done", **place, "name": item["name"], "arguments": arguments}]


def _part_events(item: Json, place: Json) -> list[Json]:
    (part,) = item["content"]
    name = "text" if part["type"] == "output_text" else "refusal"
    where, kind = {**place, "content_index": 0}, "response.output_text" if name == "text" else "response.refusal"
    logs = {"logprobs": []} if name == "text" else {}
    return [
        {"type": "response.content_part.added", **where, "part": {**part, name: ""}},
        {"type": f"{kind}.delta", **where, "delta": part[name], **logs},
        {"type": f"{kind}.done", **where, name: part[name], **logs},
        {"type": "response.content_part.done", **where, "part": part},
    ]


def openai_error(message: str = "as scripted") -> Json:
    """The body of a failed request."""
    return {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
