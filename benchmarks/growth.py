"""Cost growth: CPU per event at step 10,000 of one run, whose messages grow with each step, against step 10."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import loopspan
from benchmarks._measure import ROUNDS, Figure, Row, cpu
from benchmarks._twin import Counting, sdk
from benchmarks._work import ask_model, ask_on, endless_loop, toolbox

EARLY, LATE = 10, 10_000
STEPS = 100
"""Steps that are measured at a time; each has the same number of events."""


def ratio(options: Any) -> list[Row]:
    """With call ids in the messages, and without."""
    with loopspan.configure(tracer_provider=sdk(Counting())):
        return [_row(ids=True), _row(ids=False)]


def _row(*, ids: bool) -> Row:
    start = loopspan.agent_loop("watch-builds")(endless_loop(ask_model(ask_on), toolbox.call, ids=ids))
    late = _at(start, LATE)
    gc.collect()
    gc.freeze()  # the loop's own messages: walking through them again and again is no cost of ours
    try:
        figure = Figure.of(_round(start, late) for _ in range(ROUNDS))
    finally:
        gc.unfreeze()
    what = f"CPU of an event at step {LATE:,} against step {EARLY}, messages {'with' if ids else 'without'} ids"
    return Row(what, figure, 1.1, 1.0)


def _at(start: Callable[[], Iterator[int]], step: int) -> Iterator[int]:
    """A run that has done `step` steps."""
    run = start()
    while next(run) < step:
        pass
    return run


def _round(start: Callable[[], Iterator[int]], late: Iterator[int]) -> float:
    """A new run from step 10 on, and the old one, in turn."""
    early_s = late_s = 0.0
    for _ in range(3):
        early = _at(start, EARLY)
        early_s += cpu(lambda run=early: next(run), STEPS)  # type: ignore[misc]  # mypy does not infer such a lambda
        late_s += cpu(lambda: next(late), STEPS)
    return late_s / early_s
