"""Reading back: runs from an OTLP-JSON file as `setup(file=...)` writes it, against `json.loads` of the same bytes."""

from __future__ import annotations

import gc
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import loopspan
from benchmarks._measure import Figure, Row, cpu
from benchmarks._twin import sdk
from benchmarks._work import Wanted, answer, make_loop, read_file
from loopspan._sdk import FileSpanExporter

RUNS, FULL = 5_000, 100_000
EVENTS = 20
RUNS_A_LINE = 64
"""As many as fill an export of the batch processor, roughly."""

ROUNDS = 3
_ID = re.compile(r'"(?:traceId|spanId|parentSpanId)":"([0-9a-f]+)"|"stringValue":"([0-9a-f]{32})"')


def ratio(options: Any) -> list[Row]:
    """All runs of a file, with the stop reason and the usage of each."""
    runs = FULL if options.full else RUNS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runs.jsonl")
        spans = _exported(Path(folder, "one.jsonl"))
        with path.open("w", encoding="utf-8") as file:
            file.writelines(_lines(spans, runs))
        rounds = [_round(path, runs) for _ in range(ROUNDS)]
        size = path.stat().st_size / 1e6
    what = f"{runs:,} runs of {EVENTS} events read back ({size:,.0f} MB) against json.loads"
    return [Row(what, Figure.of(rounds), 6, 3)]


def _round(path: Path, runs: int) -> float:
    ours = cpu(lambda: _read(path, runs))
    gc.collect()
    loads = cpu(lambda: _load(path))
    gc.collect()
    return ours / loads


def _read(path: Path, runs: int) -> None:
    found = [(run.stop_reason, run.usage.input_tokens) for run in loopspan.read_runlog(path).runs]
    if found != [("success", 2150)] * runs:
        raise RuntimeError(f"{len(found)} of {runs} runs were read back, or not all with what was written")


def _load(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def _exported(path: Path) -> str:
    """The spans of one run, as the file exporter writes them: a step with a tool call, and one with the answer."""
    script = {2: answer(0, [Wanted(None, "read_file", '{"path": "a.py"}')]), 4: answer(1, [])}
    read = loopspan.tool(effect="read_only")(read_file)
    ask = loopspan.model_request(provider="openai", model="gpt-4.1")(lambda messages: script[len(messages)])
    loop = loopspan.agent_loop("fix-build")(make_loop(ask, lambda name, arguments, call_id: read("a.py")))
    with loopspan.configure(tracer_provider=sdk(SimpleSpanProcessor(FileSpanExporter(path)))):
        loop("fix it")
    exports = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    spans = [span for export in exports for span in export["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    events = sum(len(span["events"]) for span in spans)
    if events != EVENTS:
        raise RuntimeError(f"the run has {events} events, not {EVENTS}")
    exports[0]["resourceSpans"][0]["scopeSpans"][0]["spans"] = spans
    return json.dumps(exports[0], separators=(",", ":"))


def _lines(export: str, runs: int) -> Iterator[str]:
    """Exports of many runs: copies of the one, with trace, span, run and request ids of their own."""
    ids = sorted({found for match in _ID.findall(export) for found in match if found})
    random = Random(0)
    head, spans, tail = _parted(export)
    for first in range(0, runs, RUNS_A_LINE):
        copies = []
        for _ in range(min(RUNS_A_LINE, runs - first)):
            copy = spans
            for former in ids:
                copy = copy.replace(former, f"{random.getrandbits(len(former) * 4):0{len(former)}x}")
            copies.append(copy)
        yield f"{head}{','.join(copies)}{tail}\n"


def _parted(export: str) -> tuple[str, str, str]:
    """What stands before the spans, the spans, and what stands after them."""
    start = export.index('"spans":[') + len('"spans":[')
    spans = json.loads(export)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    text = json.dumps(spans, separators=(",", ":"))[1:-1]
    return export[:start], text, export[start + len(text) :]
