"""A row of a table: what was recorded before, the event, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pytest

from lifecycle.facts import fold, refusal
from loopspan.events import Event
from loopspan.lifecycle import State
from loopspan.lifecycle.state import key


class Accepted(NamedTuple):
    """`then`: fields of the state afterwards; `call`: fields of the call that the event belongs to."""

    says: str
    before: Sequence[Event]
    event: Event
    then: dict[str, Any] = {}  # noqa: RUF012  # a tuple's default, never written to
    call: dict[str, Any] = {}  # noqa: RUF012

    def check(self) -> State:
        state = fold(self.before)
        after = fold([self.event], state)
        assert {name: getattr(after, name) for name in self.then} == self.then
        if self.call:
            found = after.calls[key(self.event)]
            assert {name: getattr(found, name) for name in self.call} == self.call
        return after


class Refused(NamedTuple):
    """`rule`: the name of the rule that is broken; `way`: words of the message that say the way out."""

    says: str
    before: Sequence[Event]
    event: Event
    rule: str
    way: str

    def check(self) -> None:
        found = refusal(fold(self.before), self.event)
        assert found.rule == self.rule
        assert self.way in found.message


def table(rows: Iterable[Accepted | Refused]) -> Any:
    """A test that takes `row`, once for each of them."""
    return pytest.mark.parametrize("row", [pytest.param(row, id=row.says) for row in rows])
