"""CPU of the record alone: events made, accepted by the lifecycle and written as spans, against the spans by hand.

What a loop pays on top is what it asked for: reading answers, checking arguments, digests (see `spans`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, set_span_in_context

import loopspan
from benchmarks._measure import Figure, Row, in_turn
from benchmarks._twin import Counting, by_hand, kept_run, sdk
from benchmarks._work import decorated_loop
from benchmarks.spans import without_fast_span
from loopspan import _config, semconv
from loopspan._journal import Entry
from loopspan._runtime import Recorder
from loopspan.events import Event
from loopspan.telemetry._attributes import ENDS, INSTANT
from loopspan.telemetry._spans import Place


class Said(NamedTuple):
    """One event of the run, and what is done with it."""

    verb: str
    cls: type[Event]
    fields: dict[str, Any]
    span: int
    parent: int | None


def fast(options: Any) -> list[Row]:
    """The way that the SDK's own tracer gets."""
    return [_row("fast span", must=1.0, aim=0.7)]


def public(options: Any) -> list[Row]:
    """The way through OpenTelemetry's public API."""
    with without_fast_span():
        return [_row("public API", must=1.8, aim=1.5)]


def _row(way: str, must: float, aim: float) -> Row:
    kept = kept_run(lambda: decorated_loop("fix it"))
    replay, script = by_hand(kept), _script()
    ours, hand = Counting(), Counting()
    tracer = sdk(hand).get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL)
    with loopspan.configure(tracer_provider=sdk(ours)):
        rounds = in_turn(lambda: _record(script), lambda: replay(tracer))
    if ours.ended % len(kept.ended):
        raise RuntimeError(f"{ours.ended} spans were recorded, which is no multiple of {len(kept.ended)}")
    ratio = Figure.of(recorded / written for recorded, written in rounds)
    return Row(f"CPU of recording a run's events as spans, against its spans by hand, {way}", ratio, must, aim)


def _script() -> list[Said]:
    entries: list[Entry] = []
    with loopspan.configure(tracer_provider=sdk(Counting())), _config.change(log_sinks=(entries.append,)):
        decorated_loop("fix it")
    seen: set[int] = set()
    return [_said(entry, seen) for entry in entries]


def _said(entry: Entry, seen: set[int]) -> Said:
    cls = type(entry.event)
    fields = {name: getattr(entry.event, name) for name in cls.field_names}
    verb = "instant" if cls in INSTANT else "end" if cls in ENDS else "add" if entry.span_id in seen else "open"
    seen.add(entry.span_id)
    return Said(verb, cls, fields, entry.span_id, entry.parent_id)


def _record(script: list[Said]) -> None:
    """The same calls of the recorder as live, each with an event that is made for it."""
    settings, started = _config.current(), script[0]
    recorder = Recorder("0" * 32, settings)
    begin: Callable[[Any], Any] = lambda root: started.cls(**started.fields)  # noqa: E731  # a callback, not a name
    recorder.begin(begin, Place(INVALID_SPAN, Context()), [], settings)
    handles = {started.span: recorder.root}
    places: dict[int | None, Place] = {}
    for verb, cls, fields, span, parent in script[1:]:
        event = cls(**fields)
        if verb == "add":
            recorder.add(event, handles[span])
        elif verb == "end":
            recorder.end(event, handles[span])
        else:
            place = places.get(parent)
            if place is None:
                above = handles[parent or 0].span
                place = places[parent] = Place(above, set_span_in_context(above, Context()))
            if verb == "instant":
                recorder.instant(event, place)
            else:
                handles[span] = recorder.open(event, place)
