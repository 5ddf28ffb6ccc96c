"""Where RunLogs are read from: one function for every kind of source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from loopspan import semconv
from loopspan._journal import Entry
from loopspan.errors import ConfigurationError
from loopspan.trajectory import otlp
from loopspan.trajectory.records import Found
from loopspan.trajectory.runlog import RunLog

_WAYS = "give the path of an OTLP-JSON file, parsed OTLP, finished spans, or entries"


def read_runlog(source: Any) -> RunLog:
    """The runs that a source holds.

    `source`: the path of an OTLP-JSON file (one export a line, as `setup(file=...)` and the Collector's file exporter
    write it, or one document in all); a parsed export or a list of them; an iterable of finished spans of the SDK; an
    iterable of entries. Whatever cannot be read (a torn last line, a damaged line, a cut value) is told in `.problems`,
    all the rest is there.

    Raises ConfigurationError for a file that cannot be opened, and for a source of another kind.
    """
    found = Found()
    if isinstance(source, str | os.PathLike):
        _read_path(source, found)
    elif isinstance(source, Mapping):
        _read_parsed(source, found)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        for item in source:
            _read_item(item, found)
    else:
        raise ConfigurationError(f"read_runlog({_named(source)}): {_WAYS}")
    return RunLog(found)


def _read_path(source: str | os.PathLike[str], found: Found) -> None:
    try:
        otlp.read_file(Path(source), found)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"read_runlog({os.fspath(source)!r}): {why}; {_WAYS}") from error


def _read_item(item: Any, found: Found) -> None:
    if isinstance(item, Entry):
        place = (item.trace_id, item.span_id, item.parent_id)
        found.run(item.run_id, {}).records.append((item.seq, item.time, item.name, item, place))
    elif isinstance(item, Mapping):
        _read_parsed(item, found)
    elif hasattr(item, "get_span_context") and hasattr(item, "events"):
        _read_span(item, found)
    else:
        raise ConfigurationError(f"read_runlog([... {_named(item)} ...]): {_WAYS}")


def _read_parsed(document: Mapping[str, Any], found: Found) -> None:
    if not otlp.read_document(otlp.shortened(document), found):
        keys = ", ".join(map(str, list(document)[:5])) or "no keys"
        known = ", ".join(otlp.DOCUMENTS)
        raise ConfigurationError(
            f"read_runlog: a document with {keys} is none that is known: its top has one of {known}"
        )


def _read_span(span: Any, found: Found) -> None:
    """A finished span of the SDK."""
    context, attributes = span.get_span_context(), span.attributes or {}
    run_id = attributes.get(semconv.RUN_ID)
    if run_id is None:
        found.other(getattr(span.instrumentation_scope, "name", None), context.trace_id, context.span_id)
        return
    run = found.run(str(run_id), attributes)
    run.dropped += getattr(span, "dropped_events", 0) or 0
    place = (context.trace_id, context.span_id, span.parent.span_id if span.parent is not None else None)
    for event in span.events:
        attributes = event.attributes or {}
        if semconv.EVENT_SEQ in attributes:
            run.records.append((attributes[semconv.EVENT_SEQ], event.timestamp, event.name, attributes, place))


def _named(value: Any) -> str:
    return f"<{type(value).__name__}>"
