"""Random walks of the rules against the invariants of lifecycle.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lifecycle import facts
from lifecycle.called import Broken
from lifecycle.facts import fold
from lifecycle.legal import legal_run
from lifecycle.plausible import of_call, of_run
from lifecycle.test_tables import rules
from lifecycle.walk import FORMS, Walk, broken, explained, sequence
from loopspan import events as e
from loopspan.lifecycle import StopReason

pytestmark = pytest.mark.fuzz

EXAMPLES = settings.default.max_examples if settings.default else 0


def seeds(fixed: int) -> Iterator[int]:
    """So many fixed ones; under `make fuzz` as many others as it asks for."""
    if fixed >= EXAMPLES:
        return iter(range(fixed))
    start = Random().randrange(10**9)
    return iter(range(start, start + EXAMPLES))


def test_ten_thousand_random_sequences_break_no_invariant():
    met: Counter[str] = Counter()
    closed: Counter[str | None] = Counter()
    for seed in seeds(10_000):
        events = list(sequence(Random(seed)))
        walk = Walk()
        try:
            walk.go(events)
        except Broken:
            pytest.fail(explained(seed, events))
        if seed % 10 == 0:
            assert walk.recorded() == walk.state, f"sequence {seed}: the written log gives another state"
        met += walk.met
        closed[walk.state.stop_reason] += 1
    assert rules() - met.keys() == set(), "these rules were never broken"
    assert e.VOCABULARY.keys() - met.keys() == set(), "these events were never accepted"
    assert set(StopReason) - closed.keys() == set(), "no run closed like that"


def test_runs_that_keep_to_the_rules_are_never_refused():
    for seed in seeds(2_000):
        events = legal_run(Random(seed))
        assert fold(events).lifecycle == "closed", f"run {seed}"
        assert broken(events) is None, f"run {seed}"


SEEDS = st.integers(0, 999)


class Lifecycle(RuleBasedStateMachine):
    """What a program could record next, and what no program would."""

    def __init__(self) -> None:
        super().__init__()
        self.walk = Walk()

    def chance(self, seed: int) -> Random:
        """Hypothesis likes to draw the same seed again; what it chooses must not be the same again."""
        return Random(1000 * len(self.walk.log) + seed)

    @initialize(durable=st.booleans())
    def start(self, durable: bool) -> None:
        self.walk.take(facts.run(durable=durable))

    @rule(number=st.integers(1, 2), seed=SEEDS, length=st.integers(1, 8))
    def a_call_goes_on(self, number: int, seed: int, length: int) -> None:
        for _ in range(length):
            self.walk.take(self.chance(seed).choice(of_call(self.walk.model, number)))

    @rule(seed=SEEDS)
    def the_run_goes_on(self, seed: int) -> None:
        events = of_run(self.walk.model, late=len(self.walk.log) > 25)
        self.walk.take(self.chance(seed).choice(events))

    @rule(form=st.sampled_from(FORMS), data=st.data())
    def nonsense(self, form: Any, data: st.DataObject) -> None:
        cls, pools = form
        self.walk.take(cls(**{name: data.draw(st.sampled_from(pool)) for name, pool in pools}))

    @invariant()
    def the_state_is_what_the_log_says(self) -> None:
        self.walk.model.agrees(self.walk.state)

    def teardown(self) -> None:
        assert fold(self.walk.log) == self.walk.state
        assert self.walk.recorded() == self.walk.state


class TestLifecycle(Lifecycle.TestCase):
    """The machine shrinks what it finds; the ten thousand sequences above go deeper and are twenty times as fast."""

    settings = settings(max_examples=max(100, EXAMPLES // 20), stateful_step_count=30)
