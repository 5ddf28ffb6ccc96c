"""Random event sequences, from runs that keep to the rules to plain nonsense, and a walk of the rules along them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from random import Random
from typing import Any

from lifecycle.called import Broken, holds
from lifecycle.facts import MINUTE, fold
from lifecycle.legal import EFFECTS, legal_run
from lifecycle.model import Model
from loopspan import events as e
from loopspan._journal import decode, encode
from loopspan.lifecycle import NEW, RULES, State, StopReason, SuspendReason, advance
from samples import CLASSES, of_type

OUTCOMES = "ok accepted failed timeout cancelled suspended committed not_committed same_key abandoned resource".split()
POOLS: dict[str, Sequence[Any]] = {
    "step": (1, 1, 1, 2, 3),
    "call_id": ("call_0", "call_1", "call_2"),
    "ordinal": (1, 1, 1, 2),
    "tool": ("tool_0", "tool_1", "tool_2"),
    "effect": (*EFFECTS, None),
    "subagent": (False, False, True),
    "known": (True, True, True, False),
    "needs_approval": (False, False, True),
    "max_attempts": (None, 1, 2),
    "attempt": (1, 1, 1, 2, 2, 3, 0),
    "outcome": OUTCOMES,
    "rejection": ("unknown_tool", "validation_error", "no"),
    "reason": (*SuspendReason, "success"),
    "stop_reason": (*StopReason, "pending_approval"),
    "stop_detail": (None, None, "requested"),
    "actor": ("alice", "alice", None, ""),
    "open_children": (0, 0, 0, 1),
    "approval_id": ("call_0/1", "call_1/1", "call_2/1", "call_0/2"),
    "approved": (True, True, False),
    "requested_at": (1,),
    "expires_at": (MINUTE, MINUTE, MINUTE, 1),
    "decided_at": (None, None, 2, MINUTE),
    "digest": ("d", "d", "e", None),
    "key_digest": ("k", "k", "l", None),
    "fence": (1, 2, 3, 4),
    "durable": (False, True),
}
"""Values that can mean something, a few of each so that events meet each other."""

FORMS = [
    (cls, [(f.name, POOLS.get(f.name, (of_type(f.type),))) for f in fields(cls)])  # type: ignore[arg-type]
    for cls in (*RULES, *RULES, *CLASSES)
]
NOISE = (0.03, 0.1, 0.3, 0.9)


def nonsense(random: Random) -> e.Event:
    """An event of any class about nothing in particular."""
    cls, pools = random.choice(FORMS)
    return cls(**{name: random.choice(pool) for name, pool in pools})


def altered(random: Random, event: e.Event) -> e.Event:
    """The event with another value in one field."""
    pools = [name for name in event.field_names if name in POOLS]
    if not pools:
        return event
    name = random.choice(pools)
    return replace(event, **{name: random.choice(POOLS[name])})  # type: ignore[type-var]  # a dataclass


def sequence(random: Random) -> Iterator[e.Event]:
    """A legal run in which events are lost, altered and doubled, with nonsense in between; some have less of it."""
    noise = random.choice(NOISE)
    legal = legal_run(random)
    for index, event in enumerate(legal):
        if random.random() < noise:
            yield nonsense(random) if random.random() < 0.4 else altered(random, random.choice(legal[: index + 5]))
        fate = random.random() / noise if index else 1.0
        if fate > 0.5:
            yield event
        elif fate > 0.25:
            yield altered(random, event)
        elif fate > 0.15:
            yield from (event, event)


class Walk:
    """The rules along a sequence: what they accept must hold in the model too."""

    def __init__(self) -> None:
        self.state: State = NEW
        self.model = Model()
        self.log: list[e.Event] = []
        self.met: Counter[str] = Counter()

    def go(self, events: Iterator[e.Event] | Sequence[e.Event]) -> Walk:
        """Raises Broken at the first event that breaks an invariant."""
        for event in events:
            self.take(event)
        holds(fold(self.log) == self.state, "folding the events rebuilds the state")
        return self

    def take(self, event: e.Event) -> None:
        result = advance(self.state, event)
        if not isinstance(result, State):
            self.met[result.rule] += 1
            return
        self.met[event.name] += 1
        self.log.append(event)
        self.model.accept(event)
        self.model.agrees(result)
        self.state = result

    def recorded(self) -> State:
        """The state that the log gives after it was written and read."""
        return fold(decode(event.name, encode(event, seq)) for seq, event in enumerate(self.log, start=1))


def broken(events: Sequence[e.Event]) -> Broken | None:
    """The invariant that a sequence breaks."""
    try:
        Walk().go(events)
    except Broken as error:
        return error
    return None


def least(events: list[e.Event]) -> list[e.Event]:
    """A sequence that still breaks an invariant, and does not when any one event is left out."""
    index = 0
    while index < len(events):
        without = events[:index] + events[index + 1 :]
        if broken(without) is None:
            index += 1
        else:
            events, index = without, 0
    return events


def explained(seed: int, events: list[e.Event]) -> str:
    """What is wrong with a sequence, in as few events as show it."""
    shown = least(events)
    told = "\n".join(f"    {event}" for event in shown)
    return f"sequence {seed} breaks an invariant: {broken(shown)}\n{told}"
