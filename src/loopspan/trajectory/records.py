"""What a source holds: the entries of every run, raw; they are decoded when somebody looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopspan import semconv

Place = tuple[Any, Any, Any]
"""Trace id, span id, parent's span id: integers, or hexadecimal or base64 text, as the source has them."""

Record = tuple[int, int, str, Any, Place]
"""Sequence number, time in nanoseconds since the epoch, the event's name, its attributes (or its Entry), its span."""

MOST_PROBLEMS = 100
"""How many problems are told one by one; the others are counted."""


class RawRun:
    """One run as it was found: `records` of spans and `logged` records of logs, unsorted, with repetitions."""

    __slots__ = ("agent", "dropped", "logged", "records", "run_id")

    def __init__(self, run_id: str, agent: str | None) -> None:
        self.run_id = run_id
        self.agent = agent
        self.dropped = 0
        self.records: list[Record] = []
        self.logged: list[Record] = []

    def first(self) -> int:
        """The time of the record with the lowest sequence number; 0 where there is none."""
        records = self.records or self.logged
        return min(records, key=lambda record: record[0])[1] if records else 0


class Found:
    """All that was read so far."""

    def __init__(self) -> None:
        self.runs: dict[str, RawRun] = {}
        self._foreign: set[int] = set()
        self._nameless: set[int] = set()
        self._problems: list[str] = []
        self._untold = 0

    def run(self, run_id: str, attributes: Mapping[str, Any]) -> RawRun:
        """The run that a span or log record with these attributes belongs to."""
        run = self.runs.get(run_id)
        if run is None:
            run = self.runs[run_id] = RawRun(run_id, attributes.get(semconv.AGENT))
        return run

    def other(self, scope: Any, trace_id: Any, span_id: Any) -> None:
        """A span without a run id: somebody else's, or one of ours that a limit took its attributes from."""
        spans = self._nameless if scope == semconv.SCOPE else self._foreign
        spans.add(hash((trace_id, span_id)))

    @property
    def foreign(self) -> int:
        """The number of spans that are not loopspan's; one that was exported twice counts once."""
        return len(self._foreign)

    def problem(self, text: str) -> None:
        """Something could not be read."""
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(text)
        else:
            self._untold += 1

    def forget_problems(self) -> None:
        """It could be read after all, in another way."""
        self._problems.clear()
        self._untold = 0

    def problems(self) -> list[str]:
        """What could not be read."""
        told = list(self._problems)
        if self._untold:
            told.append(f"and {self._untold} more problems of this kind")
        if self._nameless:
            told.append(
                f"spans of loopspan without {semconv.RUN_ID}: {len(self._nameless)}; their events belong to no run, "
                "raise the limit of attributes (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT)"
            )
        return told
