"""Random runs that keep to the rules: what a loop with parallel calls, approvals, retries and lost answers records.

Every call is a generator of its events. It yields `Held` where it has to wait: until nothing else is unknown, or until
the suspended run has its decision. When all that is left is held, the run suspends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from random import Random

from lifecycle import facts
from loopspan import events as e
from loopspan.lifecycle import StopReason, SuspendReason

FREE = [reason for reason in StopReason if reason is not StopReason.UNRESOLVED_SIDE_EFFECT]
EFFECTS = (None, None, "read_only", "idempotent", "keyed", "reconcilable", "unsafe")
GRAVITY = list(SuspendReason)


@dataclass
class Held:
    """The call goes on when `until` says so; `wait` is the suspend reason that it asks for, if any."""

    until: Callable[[], bool]
    wait: str | None = None


Events = Iterator[e.Event | Held]
Answer = Generator[e.Event | Held, None, bool]


@dataclass(eq=False)
class Call:
    """One logical call, and what has become of it."""

    run: Run
    which: facts.Call
    effect: str | None
    budget: int
    asks: bool
    subagent: bool
    attempt: int = 0
    inside: bool = False
    unknown: bool = False
    settled: str | None = None
    outcome: str = "ok"
    request: int = 0
    said: str | None = None
    rechecked: bool = False
    open: bool = False

    def chance(self, probability: float) -> bool:
        return self.run.random.random() < probability

    def opening(self) -> e.Event:
        self.open = True
        budget = None if self.budget == 3 else self.budget
        return facts.opened(
            self.which, effect=self.effect, subagent=self.subagent, needs_approval=self.asks, max_attempts=budget
        )

    def closing(self, outcome: str) -> e.Event:
        self.open = False
        return facts.call_closed(self.which, outcome, self.attempt)

    def events(self) -> Events:
        """From the proposal to the end."""
        yield self.opening()
        if self.chance(0.15):
            yield self.run.random.choice([facts.rejected(self.which), facts.not_permitted(self.which)])
            self.outcome = "rejected"
        elif (yield from self._approved()):
            yield from self._attempts()
        yield self.closing(self.outcome)
        if self.outcome == "failed" and self.effect != "unsafe" and not self.asks and self.chance(0.3):
            yield self.opening()
            yield from self._attempts()
            yield self.closing(self.outcome)

    # approval

    @property
    def approval_id(self) -> str:
        return f"{self.which['call_id']}/{self.request}"

    @property
    def waits_for_person(self) -> bool:
        return self.request > 0 and self.said is None

    def _approved(self) -> Answer:
        while self.asks and not self.rechecked:
            self.request += 1
            self.said = None
            yield facts.asked(self.which, self.approval_id, digest="d")
            if self.chance(0.5):
                yield from self.heard()
            else:
                yield Held(lambda: self.said is not None, "pending_approval")
            if self.said == "no":
                yield facts.denied(self.which, self.approval_id)
            if self.said != "yes":
                self.outcome = "denied" if self.said == "no" else "expired"
                return False
            yield from self._looked_at_again()
        return True

    def heard(self) -> Iterator[e.Event]:
        """What a person says, if they do in time."""
        self.said = self.run.random.choice(["yes", "yes", "yes", "no", "nothing"])
        if self.said == "nothing":
            yield facts.expired(self.which, self.approval_id)
        else:
            yield facts.decided(self.which, self.said == "yes", self.approval_id)

    def _looked_at_again(self) -> Iterator[e.Event]:
        changed = self.chance(0.2)
        self.rechecked = not changed
        yield facts.rechecked(self.which, "resource" if changed else "ok", self.approval_id)
        if changed:
            yield facts.superseded(self.which, self.approval_id)

    # attempts

    def _attempts(self) -> Events:
        for left in reversed(range(self.budget)):
            while not (yield from self._attempt()):
                pass
            if self.outcome == "ok" or self.settled == "given up" or not left:
                return
            if self.settled is None and (self.effect == "unsafe" or self.chance(0.3)):
                return

    def _attempt(self) -> Answer:
        """One entry; False for one that a suspended sub-agent cut short."""
        yield from self._cleared()
        self.attempt += 1
        self.settled, self.unknown = None, False
        yield facts.entered(self.which, self.attempt, key_digest="k" if self.effect == "keyed" else None, digest="d")
        if self.subagent and self.chance(0.4):
            self.inside = True
            yield Held(lambda: not self.inside, self.run.random.choice(GRAVITY))
            return False
        yield self._end()
        yield e.ToolSpanClosed(**self.which, attempt=self.attempt, outcome="over")
        if self.unknown:
            yield from self._settle()
        if self.settled == "committed":
            yield facts.reused(self.which)
        return True

    def _cleared(self) -> Events:
        """Nothing else is unknown, and what was approved is looked at anew; then the body is entered at once."""
        while True:
            if self.asks and not self.rechecked:
                self.rechecked = True
                yield facts.rechecked(self.which, "ok", self.approval_id)
            elif self.effect != "read_only" and self.run.unknown_beside(self):
                yield Held(lambda: not self.run.unknown_beside(self))
            else:
                return

    def _end(self) -> e.Event:
        strict = self.effect in ("keyed", "reconcilable", "unsafe") or (self.effect is None and self.run.durable)
        if strict and self.chance(0.4):
            self.unknown, self.outcome = True, "unknown"
            return facts.unknown(self.which, self.attempt)
        if self.chance(0.5):
            self.outcome = "failed"
            return facts.failed(self.which, self.attempt, self.run.random.choice(["failed", "timeout", "cancelled"]))
        self.outcome = "ok"
        return facts.succeeded(self.which, self.attempt)

    # unknown effects

    def _settle(self) -> Events:
        if self.chance(0.5):
            yield Held(lambda: self.settled is not None, "unknown_side_effect")
        else:
            yield from self.truth()

    def truth(self) -> Iterator[e.Event]:
        """The remote side is asked, then a person."""
        if self.effect in ("keyed", "reconcilable"):
            yield facts.inquired(self.which, self.attempt)
            if self.effect == "keyed" and self.chance(0.5):
                self.settled = "same_key"
                yield facts.resolved(self.which, "same_key", self.attempt)
            elif self.chance(0.6):
                yield self._known(facts.resolved)
            else:
                yield facts.unresolved(self.which, self.attempt)
        if self.settled is None:
            yield from self._person()

    def _person(self) -> Iterator[e.Event]:
        """A person says what happened, or gives up."""
        yield facts.person_needed(self.which, self.attempt)
        if self.run.suspended == "unknown_side_effect":
            self.run.suspended = "manual_intervention"
            yield facts.suspended("manual_intervention")
        if self.chance(0.2):
            self.settled = "given up"
            yield facts.person_said(self.which, "abandoned", self.attempt)
        else:
            yield self._known(facts.person_said)

    def _known(self, said: Callable[[facts.Call, str, int], e.Event]) -> e.Event:
        self.settled = self.run.random.choice(["committed", "not_committed"])
        self.unknown, self.rechecked = False, False
        self.outcome = "ok" if self.settled == "committed" else "failed"
        return said(self.which, self.settled, self.attempt)


@dataclass
class Run:
    """A run in the making."""

    random: Random
    durable: bool = False
    calls: list[Call] = field(default_factory=list)
    parked: list[Call] = field(default_factory=list)
    suspended: str | None = None
    closed: bool = False
    periods: int = 1

    def unknown_beside(self, call: Call) -> bool:
        return any(other.unknown for other in self.calls if other is not call)

    def events(self) -> Iterator[e.Event]:
        """From the start to the close."""
        self.durable = self.random.random() < 0.3
        yield facts.run(durable=self.durable)
        for number in range(1, self.random.randint(1, 3) + 1):
            yield facts.step(number)
            yield e.ModelRequested(step=number, request_id="r", attempt=1, operation="chat")
            self.calls = [self._call(index, number) for index in range(self.random.randint(0, 3))]
            yield from self._together()
            if self.closed:
                return
            yield e.StepClosed(step=number, outcome="ok")
        yield facts.closed(self.random.choice(FREE))

    def _call(self, index: int, step: int) -> Call:
        pick = self.random
        asks, subagent = pick.random() < 0.3, pick.random() < 0.1
        return Call(self, facts.call(index, step), pick.choice(EFFECTS), pick.randint(1, 3), asks, subagent)

    def _together(self) -> Iterator[e.Event]:
        """All calls of a step at once."""
        going = {call.which["call_id"]: call.events() for call in self.calls}
        held: dict[str, Held] = {}
        while going and not self.closed:
            ready = [name for name in going if name not in held or held[name].until()]
            if not ready:
                yield from self._wait([one.wait for one in held.values() if one.wait])
                continue
            name = self.random.choice(ready)
            held.pop(name, None)
            item = next(going[name], None)
            if item is None:
                del going[name]
            elif isinstance(item, Held):
                held[name] = item
            else:
                yield item
        if not self.closed and any(call.unknown for call in self.calls):
            yield from self._close(facts.given_up())

    def _close(self, event: e.Event) -> Iterator[e.Event]:
        self.closed = True
        yield event

    # suspension

    def _wait(self, waits: list[str]) -> Iterator[e.Event]:
        """Suspend, let the world decide, then resume or close."""
        given_up = any(call.settled == "given up" for call in self.calls)
        if not waits:
            yield from self._close(facts.given_up())
            return
        self.suspended = GRAVITY[-1] if given_up else max(waits, key=GRAVITY.index)
        if self.suspended == "pending_approval":
            yield facts.checkpoint()
        yield facts.suspended(self.suspended)
        yield from self._parked()
        for call in self.calls:
            if call.unknown and call.settled is None:
                yield from call.truth()
        if any(call.settled == "given up" for call in self.calls):
            yield from self._close(facts.given_up())
        else:
            yield from self._decided([call for call in self.calls if call.waits_for_person])

    def _parked(self) -> Iterator[e.Event]:
        """The spans that the suspension cuts."""
        for call in self.calls:
            call.rechecked = False
            if call.inside:
                call.inside = False
                yield facts.failed(call.which, call.attempt, "suspended")
        self.parked = [call for call in self.calls if call.open]
        for call in self.parked:
            yield call.closing("suspended")
        yield e.StepClosed(step=self.calls[0].which["step"], outcome="suspended")

    def _decided(self, waiting: list[Call]) -> Iterator[e.Event]:
        if self.random.random() < 0.1 and not any(call.unknown for call in self.calls):
            yield facts.cancel()
            yield from self._close(facts.closed("cancelled", stop_detail="requested"))
            return
        for index, call in enumerate(waiting):
            if index and self.random.random() < 0.5:
                continue
            yield from call.heard()
            if call.said != "nothing":
                call.rechecked = True
                yield facts.rechecked(call.which, "ok", call.approval_id)
        expired = any(call.said == "nothing" for call in waiting)
        if expired and self.random.random() < 0.3 and not any(call.unknown for call in self.calls):
            yield from self._close(facts.closed("approval_expired"))
        else:
            yield from self._resumed()

    def _resumed(self) -> Iterator[e.Event]:
        self.suspended = None
        self.periods += 1
        yield facts.owner(self.periods)
        yield facts.resumed()
        yield facts.step(self.calls[0].which["step"])
        for call in self.parked:
            yield call.opening()


def legal_run(random: Random) -> list[e.Event]:
    """The events of one run."""
    return list(Run(random).events())
