"""OTLP in JSON: exports of spans and of log records, parsed or as the lines of a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import Any

from loopspan import semconv
from loopspan.trajectory.records import Found, Place

_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
_IDENTITY = frozenset({semconv.RUN_ID, semconv.AGENT, semconv.CONVERSATION})


def unwrapped(found: dict[str, Any]) -> Any:
    """A JSON object of OTLP in a shorter form: an attribute becomes a (key, value) pair, a typed value the value.

    The decoder calls it for every object, innermost first, while the object is at hand: that is quicker than a walk
    through the finished document, and keeps a tenth of the memory. Text is interned, since most of it repeats. What has
    an unexpected form stays as it is.
    """
    try:
        if "key" in found:
            return intern(found["key"]), found.get("value")
        if "stringValue" in found:
            return intern(found["stringValue"])
        if "intValue" in found:
            return int(found["intValue"])
        if len(found) < 2:
            return _rare(found)
    except _UNREADABLE:
        pass
    return found


def _rare(found: dict[str, Any]) -> Any:
    """Values that are seldom, and objects with nothing in them."""
    for kind, value in found.items():
        if kind in ("boolValue", "bytesValue"):
            return value
        if kind == "doubleValue":
            return float(value)
        if kind == "arrayValue":
            return tuple((value or {}).get("values") or ())
        if kind == "kvlistValue":
            return dict((value or {}).get("values") or ())
        return found
    return None


def shortened(document: Any) -> Any:
    """A parsed document in the form that `unwrapped` gives."""
    if isinstance(document, Mapping):
        return unwrapped({key: shortened(value) for key, value in document.items()})
    if isinstance(document, list | tuple):
        return [shortened(item) for item in document]
    return document


def read_spans(export: Any, found: Found) -> None:
    """An ExportTraceServiceRequest, `unwrapped`."""
    for resource in export["resourceSpans"] or ():
        for scope in resource.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                try:
                    _read_span(span, scope, found)
                except _UNREADABLE as error:
                    found.problem(f"a span cannot be read ({type(error).__name__}: {error})")


def _read_span(span: Any, scope: Any, found: Found) -> None:
    attributes = dict(span.get("attributes") or ())
    run_id = attributes.get(semconv.RUN_ID)
    if run_id is None:
        found.other((scope.get("scope") or {}).get("name"), span["traceId"], span["spanId"])
        return
    run = found.run(str(run_id), attributes)
    if "droppedEventsCount" in span:
        run.dropped += int(span["droppedEventsCount"])
    place = (span["traceId"], span["spanId"], span.get("parentSpanId"))
    keep = run.records.append
    for event in span.get("events") or ():
        attributes = dict(event.get("attributes") or ())
        seq = attributes.get(semconv.EVENT_SEQ)
        if seq is not None:
            keep((int(seq), int(event["timeUnixNano"]), intern(event["name"]), attributes, place))


def read_logs(export: Any, found: Found) -> None:
    """An ExportLogsServiceRequest, `unwrapped`: RunLog events as log records (`configure(events="log")`)."""
    for resource in export["resourceLogs"] or ():
        for scope in resource.get("scopeLogs") or ():
            for record in scope.get("logRecords") or ():
                try:
                    _read_log(record, found)
                except _UNREADABLE as error:
                    found.problem(f"a log record cannot be read ({type(error).__name__}: {error})")


def _read_log(record: Any, found: Found) -> None:
    attributes = dict(record.get("attributes") or ())
    run_id, seq = attributes.get(semconv.RUN_ID), attributes.get(semconv.EVENT_SEQ)
    if run_id is None or seq is None:
        return
    name = str(record["eventName"]).removeprefix(semconv.PREFIX)
    place: Place = (record.get("traceId"), record.get("spanId"), None)
    run = found.run(str(run_id), attributes)
    own = {key: value for key, value in attributes.items() if key not in _IDENTITY}
    run.logged.append((int(seq), int(record["timeUnixNano"]), name, own, place))


DOCUMENTS: dict[str, Callable[[Any, Found], None]] = {"resourceSpans": read_spans, "resourceLogs": read_logs}
"""Every kind of document that can be read, by the key at its top that tells it. Each reader gets it `unwrapped`."""


def read_document(document: Any, found: Found) -> bool:
    """Read an `unwrapped` document, or a list of them; False where it is of no kind that is known."""
    if isinstance(document, list):
        read_ones = [read_document(item, found) for item in document]
        return bool(read_ones) and all(read_ones)
    if isinstance(document, dict):
        for key, read in DOCUMENTS.items():
            if key in document:
                read(document, found)
                return True
    return False


_decoder = json.JSONDecoder(object_hook=unwrapped)


def read_file(path: Path, found: Found) -> None:
    """A file with a document in each line, or with one document in all. Raises OSError."""
    with path.open("rb") as file:
        understood = sum(_read_line(line, number, found) for number, line in enumerate(file, 1))
    if not understood:
        _read_whole(path, found)


def _read_line(line: bytes, number: int, found: Found) -> bool:
    text = line.decode("utf-8", "replace").strip("\ufeff\r\n\t ")
    if not text:
        return False
    try:
        document = _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        saved = _salvage(text, found)
        found.problem(f"{_damage(line, number, error)}; of its spans {saved} are whole and read")
        return saved > 0
    if read_document(document, found):
        return True
    found.problem(f"line {number} is JSON, but no export of spans: it has none of {', '.join(DOCUMENTS)} at its top")
    return False


def _damage(line: bytes, number: int, error: Exception) -> str:
    if not line.endswith(b"\n"):
        return f"line {number} is torn: the file ends in the middle of an export, after {len(line)} bytes of it"
    return f"line {number} cannot be read ({type(error).__name__}: {str(error)[:100]})"


def _read_whole(path: Path, found: Found) -> None:
    """One document over many lines, as tools write that make JSON readable."""
    try:
        document = _decoder.decode(path.read_text("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    if read_document(document, found):
        found.forget_problems()


_SPANS = re.compile(r'"spans"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


def _salvage(text: str, found: Found) -> int:
    """Read the whole spans of a damaged text: those before the tear, and an export that was appended to torn text."""
    saved = 0
    for start in _SPANS.finditer(text):
        for span in _whole_items(text, start.end()):
            read_spans({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, found)
            saved += 1
    return saved


def _whole_items(text: str, at: int) -> Iterator[Any]:
    """The items of an array that begins at `at`, up to its end or to the first item that is cut."""
    while True:
        between = _BETWEEN.match(text, at)
        try:
            item, at = _decoder.raw_decode(text, between.end() if between else at)
        except (ValueError, RecursionError):
            return
        yield item
