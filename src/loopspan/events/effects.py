"""Events of unknown side effects and of how they are settled."""

from __future__ import annotations

from loopspan.events.base import InCall, event


@event
class ReconcileRequested(InCall):
    """The remote system is asked what happened."""

    attempt: int
    tries: int = 1


@event
class ReconcileResolved(InCall):
    """The truth is known: `outcome` is committed, not_committed or same_key."""

    attempt: int
    outcome: str


@event
class ReconcileUnresolved(InCall):
    """The remote system could not tell, in as many tries as were allowed."""

    attempt: int
    tries: int = 1


@event
class ReconcileSpanClosed(InCall):
    """Asking is over."""

    attempt: int
    outcome: str
    tries: int = 1


@event
class ManualIntervention(InCall):
    """Only a person can say what happened."""

    attempt: int
    reason: str | None = None


@event
class ManualDecisionReceived(InCall):
    """A person said what happened: committed, not_committed or abandoned, with evidence."""

    attempt: int
    outcome: str
    started: int
    actor: str
    evidence: str | None = None
