"""What a run consists of: steps, model requests, tool calls, and the attempts of both."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopspan import events as e
from loopspan._journal import Entry
from loopspan.trajectory.totals import Observed
from loopspan.usage import CostTotals, Usage


@dataclass(slots=True)
class AttemptView:
    """One attempt of a model request or of a tool call; times are nanoseconds since the epoch, None where unknown."""

    number: int
    outcome: str | None = None
    error_type: str | None = None
    message: str | None = None
    backoff_s: float | None = None
    started: int | None = None
    ended: int | None = None


@dataclass(slots=True)
class Part:
    """Begins and ends, and has its own entries (`log`), in the order of their numbers."""

    log: list[Entry] = field(default_factory=list, repr=False)
    started: int | None = None
    ended: int | None = None

    @property
    def seq(self) -> int:
        """The number of its first entry."""
        return self.log[0].seq if self.log else 0


@dataclass(slots=True)
class RequestView(Part):
    """One logical model request; `model` is the requested one, else the served one."""

    request_id: str = ""
    step: int | None = None
    provider: str | None = None
    model: str | None = None
    response_model: str | None = None
    operation: str | None = None
    side: bool = False
    finish_reasons: list[str] = field(default_factory=list)
    attempts: list[AttemptView] = field(default_factory=list)
    first_chunk_s: float | None = None
    observed: Observed = field(default_factory=lambda: Observed([]), repr=False)

    @property
    def usage(self) -> Usage:
        """What all attempts used."""
        return self.observed.usage

    @property
    def cost(self) -> CostTotals:
        """What all attempts cost."""
        return self.observed.cost


@dataclass(slots=True)
class CallView(Part):
    """One logical tool call: step, call id and the ordinal among equals name it.

    `outcome` is one of lifecycle.md, None while the call is open. `known` is False for a tool that is not in the
    allowlist.
    """

    step: int | None = None
    call_id: str = ""
    ordinal: int = 1
    name: str = ""
    outcome: str | None = None
    error_type: str | None = None
    effect: str | None = None
    id_source: str | None = None
    digest: str | None = None
    known: bool = True
    attempts: list[AttemptView] = field(default_factory=list)

    @property
    def entries(self) -> int:
        """How often the tool's body was entered."""
        return sum(entry.name == e.ToolStarted.name for entry in self.log)

    def has(self, event: type[e.Event]) -> bool:
        """Whether an event of this kind is on record for the call."""
        return any(entry.name == event.name for entry in self.log)


@dataclass(slots=True)
class StepView(Part):
    """One turn of the loop.

    `outcome` is `ok`, `parse_error`, `suspended`, `cancelled`, `unknown` or `error`, None while the step is open.
    `message` and `observation` are the answer that was not understood and the prompt that asks to mend it, where
    content is on record. `tool_calls` are in the order in which the model asked for them.
    """

    number: int = 0
    outcome: str | None = None
    message: str | None = None
    observation: str | None = None
    unobserved: int = 0
    requests: list[RequestView] = field(default_factory=list)
    tool_calls: list[CallView] = field(default_factory=list)
    observed: Observed = field(default_factory=lambda: Observed([]), repr=False)

    @property
    def usage(self) -> Usage:
        """What this step added; a count that nobody stated is None."""
        return self.observed.usage

    @property
    def cost(self) -> CostTotals:
        """What this step added."""
        return self.observed.cost
