"""CPU per span, against the same spans, attributes and events written by hand on the bare SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import loopspan
from benchmarks._measure import Figure, Row, in_turn
from benchmarks._twin import Counting, by_hand, kept_run, sdk
from benchmarks._work import decorated_loop, plain_loop
from loopspan import semconv
from loopspan.telemetry import _fast_span


def fast(options: Any) -> list[Row]:
    """The way that the SDK's own tracer gets."""
    return _rows("fast span", must=1.0, aim=0.7)


def public(options: Any) -> list[Row]:
    """The way through OpenTelemetry's public API, for every other provider."""
    with without_fast_span():
        return _rows("public API", must=1.8, aim=1.5)


@contextmanager
def without_fast_span() -> Iterator[None]:
    """The self-check of the fast span fails inside the block."""
    usable = _fast_span.usable
    _fast_span.usable = lambda tracer, root: False
    try:
        yield
    finally:
        _fast_span.usable = usable


def _rows(way: str, must: float, aim: float) -> list[Row]:
    kept = kept_run(lambda: decorated_loop("fix it"))
    size = f"{len(kept.ended)} spans, {sum(len(span.events) for span in kept.ended)} events"
    rounds = _measured(by_hand(kept))
    raw = Figure.of(ours / hand for ours, hand, _ in rounds)
    added = Figure.of((ours - loop) / hand for ours, hand, loop in rounds)
    return [
        Row(f"CPU of a run against its spans by hand, {way} ({size})", raw, must, aim),
        Row("  the same without the CPU of the undecorated loop", added, must, aim),
    ]


def _measured(replay: Callable[[Any], None]) -> list[list[float]]:
    ours, hand = Counting(), Counting()
    tracer = sdk(hand).get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL)
    with loopspan.configure(tracer_provider=sdk(ours)):
        return in_turn(lambda: decorated_loop("fix it"), lambda: replay(tracer), lambda: plain_loop("fix it"))
