"""What the events of one run say, decoded as far as somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from loopspan import events as e
from loopspan._journal import Entry
from loopspan.lifecycle import Lifecycle, StopReason, SuspendReason
from loopspan.trajectory import reading, totals
from loopspan.trajectory.fold import Folded, fold
from loopspan.trajectory.parts import CallView, RequestView, StepView
from loopspan.trajectory.records import RawRun, Record
from loopspan.trajectory.totals import Observed
from loopspan.usage import CostTotals, Usage, total

_LIFECYCLE = {e.RunSuspended.name: Lifecycle.SUSPENDED, e.RunResumed.name: Lifecycle.RUNNING}


class RunFacts:
    """A run as its events tell it.

    What the events do not say is None. Where entries are missing (`gaps`), totals are those that the run itself stated
    when it closed.
    """

    def __init__(self, raw: RawRun, children: Callable[[str], Sequence[RunFacts]]) -> None:
        self.run_id = raw.run_id
        self._raw = raw
        self._children = children
        self._entries: dict[int, Entry] = {}

    # the entries

    @cached_property
    def _records(self) -> list[Record]:
        """In order, each once; those from spans before those from logs, since they know the parent."""
        ordered = sorted([*self._raw.records, *self._raw.logged], key=itemgetter(0))
        return [record for place, record in enumerate(ordered) if place == 0 or record[0] != ordered[place - 1][0]]

    def _entry(self, place: int) -> Entry:
        entry = self._entries.get(place)
        if entry is None:
            entry = self._entries[place] = reading.entry_of(self.run_id, self._records[place])
        return entry

    def _named(self, *kinds: type[e.Event]) -> list[Entry]:
        names = [kind.name for kind in kinds]
        return [self._entry(place) for place, record in enumerate(self._records) if record[2] in names]

    @cached_property
    def log(self) -> list[Entry]:
        """Every entry in order, those that this version does not know included."""
        return [self._entry(place) for place in range(len(self._records))]

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """The missing sequence numbers, as (first, last); a root that is not exported yet is no gap."""
        found, expected = [], 2 if self.root_pending else 1
        for record in self._records:
            if record[0] > expected:
                found.append((expected, record[0] - 1))
            expected = record[0] + 1
        return found

    @cached_property
    def root_pending(self) -> bool:
        """Whether the run's root span is not exported yet: the run is open, and its start is known from elsewhere."""
        return not any(record[2] in (e.RunStarted.name, e.RunTraceClosed.name) for record in self._records)

    @cached_property
    def opening(self) -> Entry | None:
        """The entry of `run_started`."""
        return next(iter(self._named(e.RunStarted)), None)

    @cached_property
    def closing(self) -> Entry | None:
        """The entry of `run_trace_closed`."""
        return next(iter(self._named(e.RunTraceClosed)), None)

    @property
    def problems(self) -> list[str]:
        """What is missing or could not be read; decodes every entry."""
        return list(_problems(self, self._raw))

    # who and why

    @property
    def agent_name(self) -> str | None:
        """The name of the loop."""
        name: str | None = reading.value(self.opening, "agent") or self._raw.agent
        return name

    @property
    def parent_run_id(self) -> str | None:
        """The run that started this one as a sub-agent."""
        parent: str | None = reading.value(self.opening, "parent_run_id")
        return parent

    @property
    def children(self) -> Sequence[RunFacts]:
        """The sub-agents' runs in the same RunLog, in order of start."""
        return self._children(self.run_id)

    @property
    def trace_ids(self) -> list[str]:
        """The traces that the run is in, in order, as hexadecimal text."""
        found = dict.fromkeys(record[4][0] for record in self._records)
        return list(dict.fromkeys(reading.hex_id(trace_id, 32) for trace_id in found))

    @property
    def _turn(self) -> Record | None:
        """The last record that suspended or resumed the run."""
        return next((record for record in reversed(self._records) if record[2] in _LIFECYCLE), None)

    @property
    def lifecycle(self) -> Lifecycle:
        """running, suspended or closed."""
        if self.closing is not None:
            return Lifecycle.CLOSED
        return Lifecycle.RUNNING if self._turn is None else _LIFECYCLE[self._turn[2]]

    @property
    def resumed(self) -> bool:
        """Whether the run goes on after a suspension."""
        return self.closing is None and self._turn is not None and self._turn[2] == e.RunResumed.name

    @property
    def stop_reason(self) -> StopReason | str | None:
        """Why the run ended; a reason that this version does not know is text, None is an open run."""
        reason: StopReason | str | None = _known(StopReason, reading.value(self.closing, "stop_reason"))
        return reason

    @property
    def stop_detail(self) -> str | None:
        """What the stop reason leaves open."""
        detail: str | None = reading.value(self.closing, "stop_detail")
        return detail

    @property
    def suspend_reason(self) -> SuspendReason | str | None:
        """Why the run waits; None for one that does not."""
        if self.lifecycle is not Lifecycle.SUSPENDED:
            return None
        entry = self._named(e.RunSuspended)[-1]
        reason: SuspendReason | str | None = _known(SuspendReason, reading.value(entry, "reason"))
        return reason

    # what it did

    @cached_property
    def _folded(self) -> Folded:
        return fold(self.log, gaps=bool(self.gaps))

    @property
    def steps(self) -> list[StepView]:
        """The turns, by number."""
        return sorted(self._folded.steps.values(), key=lambda step: step.number)

    @property
    def requests(self) -> list[RequestView]:
        """The logical model requests, side requests included."""
        return list(self._folded.requests.values())

    @property
    def tool_calls(self) -> list[CallView]:
        """The logical tool calls, by steps and within a step in the order in which the model asked for them."""
        loose = [call for call in self._folded.calls.values() if call.step is None]
        return loose + [call for step in self.steps for call in step.tool_calls]

    def tool_calls_named(self, name: str) -> list[CallView]:
        """The calls of one tool."""
        return [call for call in self.tool_calls if call.name == name]

    @property
    def loose(self) -> list[Entry]:
        """The entries that belong to the run as a whole, and those that are not understood."""
        return self._folded.loose

    # what it used

    @cached_property
    def observed(self) -> Observed:
        """What is known of the run's own use."""
        found = self._named(e.UsageObserved, e.ModelResponded)
        events = [event for entry in found if (event := reading.understood(entry)) is not None]
        closing = None if self.closing is None else reading.understood(self.closing)
        silent = (
            len(events) < len(found)
            or self._unanswered() > 0
            or any(isinstance(event, e.ModelResponded) and not event.usage_known for event in events)
        )
        observations = [event for event in events if isinstance(event, e.UsageObserved)]
        return Observed(observations, closing, silent, bool(self.gaps))

    def _unanswered(self) -> int:
        """How many attempts of model requests have no end."""
        names = [record[2] for record in self._records]
        return names.count(e.ModelRequested.name) - names.count(e.ModelResponded.name) - names.count(e.ModelFailed.name)

    @property
    def usage(self) -> Usage:
        """The run's own tokens; `incomplete` where something that is counted is unknown."""
        return self.observed.usage

    @property
    def cost(self) -> CostTotals:
        """The run's own cost."""
        return self.observed.cost

    @property
    def usage_with_descendants(self) -> Usage:
        """The run's tokens and those of its sub-agents, and of theirs."""
        children = self.children
        if not children and (stated := reading.value(self.closing, "descendants")):
            return self.usage + totals.stated_usage(stated)
        return total([self.usage, *(child.usage_with_descendants for child in children)])

    # as a whole

    @property
    def started(self) -> int | None:
        """Nanoseconds since the epoch of the first entry; of what is known, where the root is pending."""
        return self._records[0][1] if self._records else None

    @property
    def ended(self) -> int | None:
        """Nanoseconds since the epoch when the run closed."""
        return None if self.closing is None else self.closing.time

    @property
    def names(self) -> list[str]:
        """The names of all events, in order."""
        return [record[2] for record in self._records]


def _known(enum: type[StopReason] | type[SuspendReason], value: str | None) -> Any:
    try:
        return None if value is None else enum(value)
    except ValueError:
        return value


def _problems(run: RunFacts, raw: RawRun) -> Iterator[str]:
    where = f"run {run.run_id}: "
    for first, last in run.gaps:
        events = f"event {first} is" if first == last else f"events {first} to {last} are"
        yield f"{where}{events} missing"
    if raw.dropped:
        yield f"{where}the limit of events dropped {raw.dropped} (OTEL_SPAN_EVENT_COUNT_LIMIT)"
    for entry in run.log:
        text = reading.problem(entry)
        if text is not None:
            yield f"{where}{text}"
    yield from (f"{where}{text}" for text in _contradictions(run, [*raw.records, *raw.logged]))


def _contradictions(run: RunFacts, records: Sequence[Record]) -> Iterator[str]:
    """Two different events with one number."""
    if len(records) == len(run.log):
        return
    entries = {entry.seq: entry for entry in run.log}
    for record in records:
        kept = entries[record[0]]
        other = reading.entry_of(run.run_id, record)
        if (kept.name, kept.event) != (other.name, other.event):
            yield f"event {record[0]} is there twice and differs: {kept.name} and {other.name}; the first is kept"
