"""What the decorators add to a step where no SDK is configured, so that nobody listens."""

from __future__ import annotations

from typing import Any

import loopspan
from benchmarks._measure import Figure, Row, in_turn
from benchmarks._work import STEPS, decorated_loop, plain_loop


def added(options: Any) -> list[Row]:
    """Microseconds of CPU a step, one request and one tool call each."""
    with loopspan.configure(tracer_provider=None):
        rounds = in_turn(lambda: decorated_loop("fix it"), lambda: plain_loop("fix it"))
    figure = Figure.of((ours - loop) / STEPS * 1e6 for ours, loop in rounds)
    return [Row("CPU added to a step without an SDK", figure, 50, 25, "us")]
