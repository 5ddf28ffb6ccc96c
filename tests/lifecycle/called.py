"""What a log says of one logical call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ONCE = ("keyed", "reconcilable", "unsafe")


class Broken(AssertionError):
    """An invariant does not hold."""


def holds(condition: object, invariant: str) -> None:
    if not condition:
        raise Broken(invariant)


@dataclass
class Asked:
    """A person was asked about a call."""

    id: str
    digest: str | None
    expires_at: int
    said: bool | None = None
    found: str | None = None
    over: bool = False


@dataclass(eq=False)
class Called:
    """What has happened to one logical call."""

    effect: str | None = None
    subagent: bool = False
    needs_approval: bool = False
    budget: int | None = None
    open: bool = False
    goes_on: bool = False
    entries: int = 0
    last: int = 0
    inside: bool = False
    keys: set[str | None] = field(default_factory=set)
    refused: bool = False
    expired: bool = False
    committed: bool = False
    unknown: bool = False
    resend: bool = False
    manual: bool = False
    cleared: bool = False
    child_waits: bool = False
    asked: Asked | None = None

    @property
    def waits(self) -> str | None:
        """What the run has to wait for because of this call."""
        if self.unknown and not self.resend:
            return "manual_intervention" if self.manual else "unknown_side_effect"
        asked = self.asked
        return "pending_approval" if asked is not None and asked.said is None and not asked.over else None

    def begins(self, event: Any) -> None:
        """The call is opened, or repeated after it was closed."""
        denied = self.asked is not None and self.asked.said is False
        bound = self.effect in ONCE or self.refused or self.committed or denied
        if not bound:
            self.effect, self.subagent, self.needs_approval = event.effect, event.subagent, event.needs_approval
            self.keys, self.last = set(), 0
        self.entries, self.budget = 0, event.max_attempts
        self.asked = self.asked if denied else None

    def may_repeat(self, event: Any) -> None:
        """What an attempt needs that is not the first."""
        holds(self.budget is None or self.entries < self.budget, "attempts <= budget")
        holds(event.attempt == self.last + 1 if self.last else event.attempt > 0, "attempts are numbered 1..n")
        holds(not self.last or self.keys == {event.key_digest}, "one key per call")
        again = self.effect == "unsafe" and self.last > 0 and not self.child_waits
        holds(not again or self.cleared, "unsafe is never repeated")

    def may_execute(self, event: Any) -> None:
        """What an attempt needs of the approval."""
        asked = self.asked
        if asked is None:
            holds(not self.needs_approval, "no execution without an approval")
            return
        holds(asked.said is True and not asked.over, "no execution without a yes")
        holds(asked.found == "ok", "no execution without a fresh recheck")
        holds(asked.digest in (None, event.digest), "no execution with other arguments")

    def enter(self, event: Any) -> None:
        """The body is entered."""
        self.inside, self.unknown, self.resend, self.cleared, self.child_waits = True, False, False, False, False
        self.entries += 1
        self.last = event.attempt
        self.keys.add(event.key_digest)

    def settle(self, outcome: str) -> None:
        """What happened is known."""
        self.unknown, self.resend, self.manual = False, False, False
        self.committed = outcome == "committed"
        self.cleared = not self.committed
        if self.asked is not None:
            self.asked.found = None
