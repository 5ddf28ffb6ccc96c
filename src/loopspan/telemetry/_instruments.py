"""The metric instruments: names, units, boundaries, and descriptions that say how each number counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from loopspan import _guard, semconv

SECONDS = tuple(0.01 * 2**power for power in range(14))
RUN_SECONDS = tuple(0.1 * 2**power for power in range(13))
TOKENS = tuple(4.0**power for power in range(14))
WAITS = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 172800.0, 604800.0)
COUNTS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)

CURRENT = "genai-0.1"
FORMER = "1.41"


class Spec(NamedTuple):
    """One instrument: a counter, or a histogram where it has boundaries."""

    unit: str
    description: str
    boundaries: Sequence[float] | None = None


_PROVIDER = "Counted once an attempt, as the provider reported it; an attempt that reported nothing is not counted."

GENAI: dict[str, Spec] = {
    semconv.M_INFERENCE_DURATION: Spec("s", "Duration of each attempt of a model request, as on its span.", SECONDS),
    semconv.M_USAGE + "input_tokens": Spec("{token}", f"Input tokens, cached ones included. {_PROVIDER}"),
    semconv.M_USAGE + "output_tokens": Spec("{token}", f"Output tokens, reasoning included. {_PROVIDER}"),
    semconv.M_USAGE + "cache_read.input_tokens": Spec("{token}", f"Input tokens read from a cache. {_PROVIDER}"),
    semconv.M_USAGE + "cache_write.input_tokens": Spec("{token}", f"Input tokens written to a cache. {_PROVIDER}"),
    semconv.M_USAGE + "reasoning.output_tokens": Spec("{token}", f"Output tokens used to reason. {_PROVIDER}"),
    semconv.M_OPERATION_INPUT: Spec("{token}", f"Input tokens of one attempt. {_PROVIDER}", TOKENS),
    semconv.M_OPERATION_OUTPUT: Spec("{token}", f"Output tokens of one attempt. {_PROVIDER}", TOKENS),
    semconv.M_EXECUTE_TOOL_DURATION: Spec("s", "Duration of each tool call, as on its span.", SECONDS),
    semconv.M_INVOKE_AGENT_DURATION: Spec("s", "Duration of each run, as on its span; waiting included.", RUN_SECONDS),
    semconv.M_INVOKE_AGENT_INFERENCE_CALLS: Spec(
        "{call}", "Model requests of a run, without sub-agents; retries are no requests of their own.", COUNTS
    ),
    semconv.M_INVOKE_AGENT_TOOL_CALLS: Spec(
        "{call}", "Tool calls of a run, without sub-agents; retries are no calls of their own.", COUNTS
    ),
}
"""What only semconv="genai-0.1" and "both" emit, where the former version has a name for the same."""

FORMER_NAMES: dict[str, Spec] = {
    semconv.M_141_TOKEN_USAGE: Spec("{token}", f"Tokens of one attempt, by type. {_PROVIDER}", TOKENS),
    semconv.M_141_OPERATION_DURATION: Spec(
        "s", "Duration of each attempt of a model request, as on its span.", SECONDS
    ),
}

OWN: dict[str, Spec] = {
    semconv.M_RUN_STARTED: Spec("{run}", "Runs whose loop was entered, sub-agents too."),
    semconv.M_RUN_CLOSED: Spec("{run}", "Runs that have a stop reason, sub-agents too."),
    semconv.M_RUN_ACTIVE: Spec("s", "Time that a run was at work, without waiting for people.", RUN_SECONDS),
    semconv.M_RUN_WAITING: Spec("s", "Time that a run waited, each wait once, when it is over.", WAITS),
    semconv.M_STEP_DURATION: Spec("s", "Duration of each step, as on its span.", SECONDS),
    semconv.M_STEP_TOKENS: Spec("{token}", "Tokens that a step added, by type; unknown ones are not counted.", TOKENS),
    semconv.M_TOOL_CALLS: Spec("{call}", "Tool calls by outcome, refused ones too; an unlisted tool has no name."),
    semconv.M_TOOL_ATTEMPTS: Spec("{attempt}", "Entries into tools' bodies by outcome."),
    semconv.M_APPROVAL_WAIT: Spec("s", "Time from the request for an approval to its end, by how it ended.", WAITS),
    semconv.M_UNKNOWN: Spec("{effect}", "Side effects that were unknown, by how they were resolved."),
    semconv.M_COST: Spec(
        "{currency}", "Cost of model requests by source: billed by the provider, estimated from prices, or simulated."
    ),
    semconv.M_COST_UNPRICED: Spec("{request}", "Attempts whose usage is known and whose model has no price."),
    semconv.M_CONCURRENCY: Spec("{attempt}", "The most tool attempts of a run that were in flight at once.", COUNTS),
    semconv.M_USAGE_UNKNOWN: Spec(
        "{request}", "Answers that did not say what they used; they count in no token metric."
    ),
    semconv.M_PRODUCED: Spec("{item}", "RunLog events that were accepted, counted when a run closes."),
}


class RequestAttributes(NamedTuple):
    """The attributes of a request's metrics: all, those of token counters, and those without the operation."""

    whole: dict[str, Any]
    spent: dict[str, Any]
    named: dict[str, Any]


class Instruments:
    """The instruments of one meter. `record(name, value, attributes, context)` ignores what the version leaves out."""

    def __init__(self, meter: Meter, version: str) -> None:
        self._record: dict[str, Callable[..., None]] = {}
        self.known: dict[str, set[str]] = {}
        self.requests: dict[tuple[Any, ...], RequestAttributes] = {}
        specs = dict(OWN)
        specs.update({**GENAI, **({} if version == CURRENT else FORMER_NAMES)} if version != FORMER else FORMER_NAMES)
        for name, spec in specs.items():
            self._record[name] = _instrument(meter, name, spec)
        meter.create_observable_counter(
            semconv.M_FAULTS, [_faults], "{fault}", "Faults of loopspan's own telemetry and of hooks, all contained."
        )

    def record(self, name: str, value: float, attributes: dict[str, Any], context: Any = None) -> None:
        """Add to a counter, or record into a histogram."""
        write = self._record.get(name)
        if write is not None:
            write(value, attributes, context)


def _instrument(meter: Meter, name: str, spec: Spec) -> Callable[..., None]:
    if spec.boundaries is None:
        return meter.create_counter(name, spec.unit, spec.description).add
    return meter.create_histogram(
        name, spec.unit, spec.description, explicit_bucket_boundaries_advisory=spec.boundaries
    ).record


def _faults(options: CallbackOptions) -> Iterable[Observation]:
    return [Observation(number, {semconv.KIND: place}) for place, number in _guard.faults.items()]
