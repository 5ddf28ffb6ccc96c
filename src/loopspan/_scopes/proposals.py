"""What the model asked for in one step, and which logical call each tool call of the loop is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from loopspan import _redact
from loopspan.values import Call


def canonical(arguments: Any) -> str:
    """Arguments as sorted JSON text, whether a model wrote them as text or the loop gives them as an object."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return _redact.clean(arguments)
    return _redact.to_json(arguments, sort=True)


class Snapshot(NamedTuple):
    """Arguments as they were before anybody could change them."""

    size: int
    digest: str


def snapshot(arguments: Any) -> Snapshot:
    """Size and digest of arguments in their canonical form."""
    text = canonical(arguments)
    return Snapshot(len(text), _redact.digest(text))


def whole(calls: Sequence[Call]) -> Sequence[Call]:
    """The calls of an answer that is still coming, up to the first one whose arguments have not come to their end."""
    for number, call in enumerate(calls):
        if isinstance(call.arguments, str) and not _is_json(call.arguments):
            return calls[:number]
    return calls


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class Proposal:
    """One proposed call; `snapshot` None where nobody needs it."""

    __slots__ = ("call", "snapshot", "taken")

    def __init__(self, call: Call, taken: Snapshot | None) -> None:
        self.call = call
        self.snapshot = taken
        self.taken = False


class Proposals:
    """The proposals of one step. A call without an id is joined to one by name and arguments, then by order."""

    __slots__ = ("_ordinals", "_made_up", "_number", "items")

    def __init__(self, number: int) -> None:
        self._number = number
        self._made_up = 0
        self._ordinals: Counter[str] = Counter()
        self.items: list[Proposal] = []

    def snapshot(self, arguments: Any) -> Snapshot:
        """The snapshot of a call's arguments; text that the model wrote was looked at when it was proposed."""
        if isinstance(arguments, str):
            for proposal in self.items:
                if proposal.call.arguments is arguments and proposal.snapshot is not None:
                    return proposal.snapshot
        return snapshot(arguments)

    def open_calls(self) -> list[dict[str, Any]]:
        """What was proposed and not called."""
        return [{"tool": p.call.name, "call_id": p.call.call_id} for p in self.items if not p.taken]

    def identify(self, name: str, digest: str | None, call_id: str | None) -> tuple[str, int, str]:
        """(call id, ordinal among equals, where the id is from: given, matched or generated)."""
        proposal = self._find(name, digest, call_id)
        if proposal is not None:
            proposal.taken = True
        source = "given"
        if call_id is None:
            call_id = None if proposal is None else _redact.name(proposal.call.call_id)
            source = "matched"
        if call_id is None:
            self._made_up += 1
            call_id, source = f"call_{self._number}_{self._made_up}", "generated"
        self._ordinals[call_id] += 1
        return call_id, self._ordinals[call_id], source

    def _find(self, name: str, digest: str | None, call_id: str | None) -> Proposal | None:
        free = [proposal for proposal in self.items if not proposal.taken]
        if call_id is not None:
            return next((p for p in free if p.call.call_id == call_id), None)
        same = [p for p in free if p.call.name == name]
        equal = (p for p in same if p.snapshot is not None and p.snapshot.digest == digest)
        return next(equal, same[0] if same else None)
