"""What reading usage and recording metrics cost."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import loopspan
from benchmarks._measure import Figure, Row, in_turn
from benchmarks._twin import Counting, sdk
from benchmarks._work import TEXT, answer, decorated_loop
from loopspan._answers import read
from loopspan.usage import Usage

SIZE = 2048
"""Bytes of JSON of the answer that is read."""


def rows(options: Any) -> list[Row]:
    """Both."""
    return [*_extraction(), _metrics()]


def _extraction() -> list[Row]:
    response = answer(1, [])
    response["choices"][0]["message"]["content"] = TEXT * ((SIZE - len(json.dumps(response))) // len(TEXT) + 2)
    rounds = in_turn(lambda: read(response), lambda: Usage.parse(response["usage"]))
    whole, usage = (Figure.of(seconds[number] * 1e6 for seconds in rounds) for number in range(2))
    return [
        Row(f"CPU to read an answer, a dict of {SIZE} bytes", whole, 15, 10, "us"),
        Row("  its usage alone", usage, None, None, "us"),
    ]


def _metrics() -> Row:
    metered = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    spans, nothing = sdk(Counting()), NoOpMeterProvider()

    def with_metrics() -> None:
        with loopspan.configure(tracer_provider=spans, meter_provider=metered):
            decorated_loop("fix it")

    def without() -> None:
        with loopspan.configure(tracer_provider=spans, meter_provider=nothing):
            decorated_loop("fix it")

    rounds = in_turn(with_metrics, without)
    metered.shutdown()
    return Row("CPU of a run with metrics against one without", Figure.of(a / b for a, b in rounds), 1.25, 1.15)
