"""Events of the run and of its steps."""

from __future__ import annotations

from loopspan.events.base import Event, Json, Totals, event


@event
class RunStarted(Event):
    """The loop's body is about to be entered."""

    agent: str
    conversation_id: str | None = None
    subject: str | None = None
    goal: str | None = None
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    loop_version: str | None = None
    max_steps: int | None = None
    deadline_s: float | None = None
    retry_budget: int | None = None
    budget: Json = None
    attributes: Json = None
    trace_flags: int = 0
    trace_state: str | None = None
    remote_parent: bool = False
    content_in_events_only: bool = False
    durable: bool = False


@event
class RunSuspended(Event):
    """The run waits, for a person or for the truth about a side effect."""

    reason: str


@event
class RunResumed(Event):
    """The wait is over: decided and rechecked, or reconciled."""


@event
class RunTraceClosed(Totals):
    """The run has its stop reason; nothing follows. Totals are the run's own, those of its sub-agents apart.

    `delivered` is what the accepted answers used, where others were billed too.
    """

    stop_reason: str
    stop_detail: str | None = None
    error_type: str | None = None
    message: str | None = None
    actor: str | None = None
    steps: int = 0
    model_calls: int = 0
    tool_attempts: int = 0
    estimated_tokens: int | None = None
    descendants: Json = None
    delivered: Json = None
    active_s: float = 0.0
    waiting_s: float = 0.0
    periods: int = 1
    concurrency_peak: int = 0
    pending_calls: Json = None
    unconfirmed: int = 0
    open_children: int = 0
    last_response_model: str | None = None
    events_dropped: int = 0


@event
class CheckpointSaved(Event):
    """All that a resume needs is stored."""


@event
class TransitionRefused(Event):
    """The lifecycle refused an event; the state is as before."""

    refused: str
    rule: str
    message: str


@event
class CancelRequested(Event):
    """Somebody asked for the run to end."""

    by: str | None = None


@event
class OwnerChanged(Event):
    """Another process took the run over."""

    owner: str
    fence: int


@event
class ReplayDrift(Event):
    """A resumed loop made a call of another shape than the one on record."""

    difference: str


# steps


@event
class StepStarted(Event):
    """Turn number `step` of the loop begins."""

    step: int


@event
class StepClosed(Totals):
    """The turn is over; the totals are what it added."""

    step: int
    outcome: str
    unobserved: int = 0
    message: Json = None
