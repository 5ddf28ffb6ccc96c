"""Tool calls that come in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loopspan._answers.fields import joined


@dataclass(slots=True)
class _Call:
    """A call under way: its arguments as pieces of text, or whole."""

    id: str | None = None
    name: str | None = None
    pieces: list[str] = field(default_factory=list)
    arguments: Any = None


class Calls:
    """The calls of one answer in the order in which they began."""

    __slots__ = ("_open", "rows")

    def __init__(self) -> None:
        self.rows: list[_Call] = []
        self._open: dict[int | None, _Call] = {}

    def add(self, index: int | None, call_id: str | None, name: str | None, arguments: Any) -> None:
        """Take a piece of the call at `index`. Another id there, or a name without any index, begins another call."""
        call = self._open.get(index)
        other_id = call is not None and None not in (call_id, call.id) and call_id != call.id
        if call is None or other_id or (index is None and name is not None and call.name is not None):
            call = self._open[index] = _Call()
            self.rows.append(call)
        call.id, call.name = call.id or call_id, call.name or name
        if type(arguments) is str:
            call.pieces.append(arguments)
        elif arguments is not None:
            call.arguments = arguments

    def whole(self) -> list[dict[str, Any]]:
        """Every call under the names of Anthropic, with a type."""
        return [
            {"type": "tool_use", "id": row.id, "name": row.name, "input": joined(row.pieces) or row.arguments}
            for row in self.rows
        ]
