"""Random runs that keep to the rules: what a loop with parallel calls, approvals, retries and lost answers records.

Every call is a generator of its events. It yields `Held` where it has to wait: until nothing else is unknown, or until
the suspended run has its decision. When all that is left is held, the run suspends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from lifecycle import facts
from loopspan import events as e
from loopspan.lifecycle import StopReason

FREE = [reason for reason in StopReason if reason is not StopReason.UNRESOLVED_SIDE_EFFECT]
EFFECTS = (None, None, "read_only", "idempotent", "keyed", "reconcilable", "unsafe")


@dataclass
class Held:
    """The call goes on when `until` says so; `wait` is the suspend reason that it asks for, if any."""

    until: Callable[[], bool]
    wait: str | None = None


Events = Iterator[e.Event | Held]


@dataclass
class Call:
    """One logical call, and what has become of it."""

    random: Random
    run: Run
    which: facts.Call
    effect: str | None
    subagent: bool
    budget: int
    asks: bool
    attempt: int = 0
    unknown: bool = False
    outcome: str = "ok"
    approval: int = 0
    approved: bool | None = None
    rechecked: bool = False
    open: bool = False
    settled: str | None = None

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

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
            yield self.random.choice([facts.rejected(self.which), facts.not_permitted(self.which)])
            self.outcome = "rejected"
        elif (yield from self._approved()):
            yield from self._attempts()
        yield self.closing(self.outcome)

    # approval

    @property
    def approval_id(self) -> str:
        return f"{self.which['call_id']}/{self.approval}"

    def _approved(self) -> Iterator[e.Event | Held]:
        while self.asks and not self.rechecked:
            yield self._request()
            if self.chance(0.5):
                yield from self.decision()
            else:
                yield Held(lambda: self.approved is not None, "pending_approval")
            if self.approved is False:
                yield from self._refused()
                return False
            if not self.rechecked or self.chance(0.2):
                yield from self._recheck()
        return True

    def _request(self) -> e.Event:
        self.approval += 1
        self.approved, self.rechecked = None, False
        return facts.asked(self.which, self.approval_id, digest="d")

    def decision(self) -> Iterator[e.Event]:
        """What a person says."""
        self.approved = self.chance(0.7)
        yield facts.decided(self.which, self.approved, self.approval_id)

    def _recheck(self) -> Iterator[e.Event]:
        changed = self.chance(0.2)
        self.rechecked = not changed
        yield facts.rechecked(self.which, "resource" if changed else "ok", self.approval_id)
        if changed:
            yield facts.superseded(self.which, self.approval_id)

    def _refused(self) -> Iterator[e.Event]:
        self.outcome = "denied"
        yield facts.denied(self.which, self.approval_id)

    # attempts

    def _attempts(self) -> Iterator[e.Event | Held]:
        spent = 0
        while True:
            yield from self._cleared()
            self.attempt += 1
            yield self._entry()
            spent += 1
            end = self._end()
            yield end
            yield e.ToolSpanClosed(**self.which, attempt=self.attempt, outcome="over")
            if end.name == "tool_succeeded":
                return
            if end.name == "unknown_side_effect":
                yield from self._settle()
                if self.settled == "committed":
                    yield facts.reused(self.which)
                    return
            elif self.effect == "unsafe":
                return
            if self.settled == "given up" or spent >= self.budget or (self.chance(0.3) and self.settled != "same_key"):
                return

    def _cleared(self) -> Iterator[Held | e.Event]:
        """Wait until nothing else is unknown, and until what was approved is looked at anew."""
        while self.effect != "read_only" and self.run.unknown_beside(self):
            yield Held(lambda: not self.run.unknown_beside(self))
        if self.asks and not self.rechecked:
            self.rechecked = True
            yield facts.rechecked(self.which, "ok", self.approval_id)

    def _entry(self) -> e.Event:
        key = "k" if self.effect == "keyed" else None
        self.settled, self.unknown = None, False
        return facts.entered(self.which, self.attempt, key_digest=key, digest="d")

    def _end(self) -> e.Event:
        strict = self.effect in ("keyed", "reconcilable", "unsafe") or (self.effect is None and self.run.durable)
        if strict and self.chance(0.4):
            self.unknown, self.outcome = True, "unknown"
            return facts.unknown(self.which, self.attempt)
        if self.chance(0.5):
            self.outcome = "failed"
            return facts.failed(self.which, self.attempt, self.random.choice(["failed", "timeout", "cancelled"]))
        self.outcome = "ok"
        return facts.succeeded(self.which, self.attempt)

    # unknown effects

    def _settle(self) -> Iterator[e.Event | Held]:
        if self.chance(0.5):
            yield Held(lambda: self.settled is not None, "unknown_side_effect")
        else:
            yield from self.truth()

    def truth(self) -> Iterator[e.Event]:
        """The remote side is asked, then a person."""
        yield facts.inquired(self.which, self.attempt)
        if self.effect == "keyed" and self.chance(0.5):
            self.settled = "same_key"
            yield facts.resolved(self.which, "same_key", self.attempt)
        elif self.chance(0.6):
            yield from self._known(facts.resolved)
        else:
            yield facts.unresolved(self.which, self.attempt)
            yield facts.person_needed(self.which, self.attempt)
            yield from self.person()

    def person(self) -> Iterator[e.Event]:
        """A person says what happened, or gives up."""
        if self.run.needs_person(self):
            yield facts.suspended("manual_intervention")
        if self.chance(0.2):
            self.settled = "given up"
            yield facts.person_said(self.which, "abandoned", self.attempt)
        else:
            yield from self._known(facts.person_said)

    def _known(self, said: Callable[..., e.Event]) -> Iterator[e.Event]:
        self.settled = self.random.choice(["committed", "not_committed"])
        self.unknown, self.rechecked = False, False
        self.outcome = "ok" if self.settled == "committed" else "failed"
        yield said(self.which, self.settled, self.attempt)


@dataclass
class Run:
    """A run in the making."""

    random: Random
    durable: bool = False
    calls: list[Call] = field(default_factory=list)
    suspended: str | None = None
    fence: int = 0

    def unknown_beside(self, call: Call) -> bool:
        return any(other.unknown for other in self.calls if other is not call)

    def needs_person(self, call: Call) -> bool:
        """Whether a suspended run becomes graver by what `call` has met."""
        graver, self.suspended = self.suspended == "unknown_side_effect", self.suspended and "manual_intervention"
        return graver

    def events(self) -> Iterator[e.Event]:
        """From the start to the close."""
        self.durable = self.random.random() < 0.3
        yield facts.run(durable=self.durable)
        for number in range(1, self.random.randint(1, 3) + 1):
            yield facts.step(number)
            yield e.ModelRequested(step=number, request_id="r", attempt=1, operation="chat")
            self.calls = [self._call(index, number) for index in range(self.random.randint(0, 3))]
            if not (yield from self._together()):
                return
            yield e.StepClosed(step=number, outcome="ok")
        yield facts.closed(self.random.choice(FREE))

    def _call(self, index: int, step: int) -> Call:
        random = self.random
        return Call(
            random,
            self,
            facts.call(index, step),
            random.choice(EFFECTS),
            random.random() < 0.1,
            random.randint(1, 3),
            random.random() < 0.3,
        )

    def _together(self) -> Iterator[e.Event]:
        """All calls of a step at once; False where the run is closed meanwhile."""
        going: dict[int, Events] = {index: call.events() for index, call in enumerate(self.calls)}
        held: dict[int, Held] = {}
        while going:
            ready = [index for index in going if index not in held or held[index].until()]
            if not ready:
                if not (yield from self._wait([held[index] for index in going])):
                    return False
                continue
            index = self.random.choice(ready)
            held.pop(index, None)
            try:
                item = next(going[index])
            except StopIteration:
                del going[index]
                continue
            if isinstance(item, Held):
                held[index] = item
            else:
                yield item
        if any(call.unknown for call in self.calls):
            yield facts.given_up()
            return False
        return True

    # suspension

    def _wait(self, held: list[Held]) -> Iterator[e.Event]:
        """Suspend, let the world decide, resume; False where the run is closed instead."""
        waits = [one.wait for one in held if one.wait]
        if not waits:
            yield facts.given_up()
            return False
        if "pending_approval" in waits:
            yield facts.checkpoint()
        reason = "unknown_side_effect" if any(call.unknown and call.settled is None for call in self.calls) else "pending_approval"
        abandoned = any(call.settled == "given up" for call in self.calls)
        self.suspended = "manual_intervention" if abandoned else reason
        yield facts.suspended(self.suspended)
        return (yield from self._decided())

    def _decided(self) -> Iterator[e.Event]:
        yield from self._parked()
        for call in self.calls:
            call.rechecked = False
            if call.unknown and call.settled is None:
                yield from call.truth()
        if any(call.settled == "given up" for call in self.calls):
            yield facts.given_up()
            return False
        waiting = [call for call in self.calls if call.approval and call.approved is None]
        if waiting and self.random.random() < 0.1:
            yield facts.cancel()
            if not any(call.unknown for call in self.calls):
                yield facts.closed("cancelled", stop_detail="requested")
                return False
        yield from self._heard(waiting)
        yield from self._resumed()
        return True

    def _parked(self) -> Iterator[e.Event]:
        for call in self.calls:
            if call.open:
                yield call.closing("suspended")
        yield e.StepClosed(step=self.calls[0].which["step"], outcome="suspended")

    def _heard(self, waiting: list[Call]) -> Iterator[e.Event]:
        """At least one decision, the others perhaps later."""
        for index, call in enumerate(waiting):
            if index == 0 or self.random.random() < 0.5:
                yield from call.decision()
                yield facts.rechecked(call.which, "ok", call.approval_id)
                call.rechecked = True

    def _resumed(self) -> Iterator[e.Event]:
        self.suspended = None
        self.fence += 1
        yield facts.owner(self.fence)
        yield facts.resumed()
        yield facts.step(self.calls[0].which["step"])
        for call in self.calls:
            if not call.open and self._unfinished(call):
                yield call.opening()

    def _unfinished(self, call: Call) -> bool:
        return call in self.parked


def legal_run(random: Random) -> Iterator[e.Event]:
    """The events of one run."""
    return Run(random).events()
