"""A loop that touches every metric, and what a reader of metrics sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

import loopspan
from loopspan import Approval, Cost, Decision, Reconciled, Retry, Usage

Series = frozenset[tuple[str, Any]]

USED = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 8},
}


class Busy(Exception):
    """The provider's."""


class Metric(NamedTuple):
    """One metric as it is exported."""

    kind: str
    unit: str
    description: str
    points: dict[Series, Any]

    @property
    def keys(self) -> set[frozenset[str]]:
        """The sets of attribute names that its series have."""
        return {frozenset(key for key, _ in series) for series in self.points}


@contextmanager
def metered(**settings: Any) -> Iterator[Any]:
    """Metrics of the block go to a reader of their own; gives a function that reads them all by name."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], Resource({}), shutdown_on_exit=False)
    with loopspan.configure(meter_provider=provider, **settings):
        yield lambda: read(reader)
    provider.shutdown()


def read(reader: InMemoryMetricReader) -> dict[str, Metric]:
    """All metrics by name."""
    data = reader.get_metrics_data()
    found = {}
    for resource in data.resource_metrics if data else ():
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            points = {frozenset((point.attributes or {}).items()): point for point in metric.data.data_points}
            kind = type(metric.data).__name__.lower()
            found[metric.name] = Metric(kind, metric.unit, metric.description, points)
    return found


def series(metrics: dict[str, Metric]) -> set[tuple[str, Series]]:
    """Every series there is."""
    return {(name, point) for name, metric in metrics.items() for point in metric.points}


def price(provider: str, model: str, usage: Usage) -> Cost | None:
    """One model has a price."""
    return Cost(Decimal("0.25"), source="estimated", table="t-1") if model == "priced" else None


def everything() -> None:
    """Requests that fail, answer and keep silent; tools that work, fail, need a person, are unknown, do not exist."""
    busy = [Busy("once")]

    @loopspan.model_request(provider="openai", model="priced", retry=Retry(max_attempts=2, on=(Busy,)))
    def ask() -> dict[str, Any]:
        if busy:
            raise busy.pop()
        return {"usage": USED}

    ask()
    loopspan.model_request(provider="openai", model="unpriced")(lambda: {"usage": USED})()
    loopspan.model_request(provider="openai", model="silent")(lambda: {"text": "nothing said"})()
    _tools()
    with loopspan.human_wait("review") as waiting:
        waiting.decided(True, by="bob")


def _tools() -> None:
    tools = loopspan.Toolbox(
        loopspan.tool("works")(lambda: "fine"),
        loopspan.tool("fails")(lambda: 1 / 0),
        loopspan.tool("asks", approval=Approval(expires_in=60, decide=lambda call: Decision(True, by="bob")))(
            lambda: "done"
        ),
        loopspan.tool("vague", effect="reconcilable", reconcile=lambda call: Reconciled.committed("sent"))(
            lambda: 1 / 0
        ),
    )
    for number, name in enumerate(("works", "fails", "asks", "vague", "made-up")):
        with suppress(Exception):
            tools.call(name, {}, call_id=f"c{number}")


def run_everything() -> None:
    """The loop, once."""
    loopspan.agent_loop("agent")(everything)()
