"""Runs written by hand: events on spans, as entries and as OTLP-JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from loopspan import _journal, semconv
from loopspan import events as e
from loopspan._journal import Entry

START = 1_700_000_000_000_000_000
TICK = 1_000_000
ROOT = "root"


def value(given: Any) -> dict[str, Any]:
    """An OTLP value; integers are text, as protobuf's JSON has them."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, list | tuple):
        return {"arrayValue": {"values": [value(item) for item in given]}}
    return {} if given is None else {"stringValue": given}


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    """OTLP attributes."""
    return [{"key": key, "value": value(item)} for key, item in given.items()]


def export(spans: Iterable[dict[str, Any]], scope: str = "loopspan") -> dict[str, Any]:
    """An ExportTraceServiceRequest."""
    resource = {"attributes": attributes({"service.name": "tests"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def line(spans: Iterable[dict[str, Any]], scope: str = "loopspan") -> str:
    """An export as a line of a file."""
    return json.dumps(export(spans, scope), separators=(",", ":"), ensure_ascii=False) + "\n"


def write(path: Path, *lines: str) -> Path:
    """A file with these lines."""
    path.write_text("".join(lines), "utf-8")
    return path


def foreign_span(number: int = 1) -> dict[str, Any]:
    """A span of somebody else."""
    return {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "GET", "attributes": attributes({"a": 1})}


class Written:
    """One run: `add` puts an event on a span, which is made at its first event."""

    def __init__(self, run_id: str = "run-1", *, agent: str = "build-watch", trace: int = 1, at: int = START) -> None:
        self.run_id = run_id
        self.agent = agent
        self.trace = trace
        self.now = at
        self.entries: list[Entry] = []
        self._spans: dict[str, dict[str, Any]] = {}

    def add(self, event: e.Event, span: str = ROOT, parent: str = ROOT) -> Written:
        """The next event, on a span below `parent`."""
        self.now += TICK
        found = self._spans.get(span) or self._open(span, None if span == ROOT else self._spans[parent]["spanId"])
        seq = len(self.entries) + 1
        self.put(span, event.name, _journal.encode(event, seq))
        place = (int(found["traceId"], 16), int(found["spanId"], 16), int(found["parentSpanId"] or "0", 16) or None)
        self.entries.append(Entry(self.run_id, seq, self.now, event, *place))
        return self

    def put(self, span: str, name: str, own: dict[str, Any]) -> Written:
        """A span event with any attributes."""
        event = {"timeUnixNano": str(self.now), "name": name, "attributes": attributes(own)}
        self._spans[span]["events"].append(event)
        self._spans[span]["endTimeUnixNano"] = str(self.now)
        return self

    def _open(self, span: str, parent: str | None) -> dict[str, Any]:
        self._spans[span] = {
            "traceId": f"{self.trace:032x}",
            "spanId": f"{self.trace * 1000 + len(self._spans) + 1:016x}",
            "parentSpanId": parent or "",
            "name": span,
            "startTimeUnixNano": str(self.now),
            "attributes": attributes({semconv.RUN_ID: self.run_id, semconv.AGENT: self.agent}),
            "events": [],
        }
        return self._spans[span]

    def below(self, other: Written, span: str) -> Written:
        """Hang the run's root below a span of another run."""
        self._spans[ROOT] = {}
        opened = self._open(ROOT, other.span(span)["spanId"])
        opened["spanId"] = f"{self.trace * 1000 + 900:016x}"
        return self

    def span(self, name: str) -> dict[str, Any]:
        """One span, as OTLP has it."""
        return self._spans[name]

    def spans(self, *, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """The spans, children first, as they are exported."""
        return [span for name, span in reversed(self._spans.items()) if name not in without]

    def line(self, *, without: tuple[str, ...] = ()) -> str:
        """The spans as a line of a file."""
        return line(self.spans(without=without))

    # what most tests need

    def started(self, **fields: Any) -> Written:
        """The run begins."""
        return self.add(e.RunStarted(agent=self.agent, **fields))

    def step(self, number: int) -> Written:
        """A step begins."""
        return self.add(e.StepStarted(step=number), f"step {number}")

    def asked(self, step: int, *, attempt: int = 1, model: str = "m-1", request: str | None = None) -> Written:
        """A model request is made."""
        made = e.ModelRequested(step=step, request_id=request or f"r{step}", attempt=attempt, operation="chat",
                                provider="openai", model=model)  # fmt: skip
        return self.add(made, f"chat {step}.{attempt}{request or ''}", f"step {step}")

    def answered(
        self,
        step: int,
        used: dict[str, Any] | None = None,
        *,
        attempt: int = 1,
        request: str | None = None,
        **said: Any,
    ) -> Written:
        """The model has answered; `used` are the fields of the observation, None where it said nothing."""
        where = {"step": step, "request_id": request or f"r{step}", "attempt": attempt}
        span = f"chat {step}.{attempt}{request or ''}"
        if used is not None:
            self.add(e.UsageObserved(**where, **used), span)
        return self.add(e.ModelResponded(**where, usage_known=used is not None, **said), span)

    def opened(self, step: int, call_id: str, tool: str = "get_status", *, period: int = 1, **fields: Any) -> Written:
        """A tool call begins."""
        event = e.ToolCallOpened(**call(step, call_id, tool), **fields)
        return self.add(event, f"call {call_id}.{period}", f"step {step}")

    def attempt(self, step: int, call_id: str, number: int, outcome: str = "ok", *, tool: str = "get_status",
                period: int = 1, error: str = "ConnectionError", backoff: float | None = None) -> Written:  # fmt: skip
        """The body is entered and left."""
        where, span = {**call(step, call_id, tool), "attempt": number}, f"attempt {call_id}.{number}"
        self.add(e.ToolStarted(**where, backoff_s=backoff), span, f"call {call_id}.{period}")
        if outcome in ("ok", "accepted"):
            self.add(e.ToolSucceeded(**where, outcome=outcome), span)
        elif outcome == "unknown":
            self.add(e.UnknownSideEffect(**where, error_type=error), span)
        else:
            self.add(e.ToolFailed(**where, outcome=outcome, error_type=error), span)
        return self.add(e.ToolSpanClosed(**where, outcome=outcome), span)

    def closed_call(self, step: int, call_id: str, outcome: str = "ok", attempts: int = 1, *, tool: str = "get_status",
                    period: int = 1, **fields: Any) -> Written:  # fmt: skip
        """The tool call is over."""
        event = e.ToolCallClosed(**call(step, call_id, tool), outcome=outcome, attempts=attempts, **fields)
        return self.add(event, f"call {call_id}.{period}")

    def closed_step(self, number: int, outcome: str = "ok", **totals: Any) -> Written:
        """The step is over."""
        return self.add(e.StepClosed(step=number, outcome=outcome, **totals), f"step {number}")

    def closed(self, reason: str = "success", **fields: Any) -> Written:
        """The run is over."""
        return self.add(e.RunTraceClosed(stop_reason=reason, **fields))


def call(step: int, call_id: str, tool: str = "get_status", ordinal: int = 1) -> dict[str, Any]:
    """The fields that name a call."""
    return {"step": step, "call_id": call_id, "ordinal": ordinal, "tool": tool}


def retried(run_id: str = "run-1", **place: Any) -> Written:
    """Two steps; in the first a read that fails once and is repeated."""
    run = Written(run_id, **place).started()
    run.step(1).asked(1).answered(1, {"input_tokens": 100, "output_tokens": 20}, finish_reasons=["tool_calls"])
    run.opened(1, "call_1", effect="read_only")
    run.attempt(1, "call_1", 1, "failed").attempt(1, "call_1", 2, backoff=0.5)
    run.closed_call(1, "call_1", attempts=2)
    run.add(e.ToolResultBackfilled(**call(1, "call_1"), started=run.now), "backfill", "step 1")
    run.closed_step(1, input_tokens=100, output_tokens=20)
    run.step(2).asked(2).answered(2, {"input_tokens": 150, "output_tokens": 30, "cache_read_tokens": 90})
    run.closed_step(2, input_tokens=150, output_tokens=30)
    return run.closed(steps=2, model_calls=2, tool_attempts=2, input_tokens=250, output_tokens=50, cache_read_tokens=90)
