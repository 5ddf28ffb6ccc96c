"""Whether a tool's result got into the next model request: found by call id, never guessed (*Backfill*)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopspan import _guard
from loopspan import events as e

if TYPE_CHECKING:
    from loopspan._scopes.call import ToolCall
    from loopspan._scopes.run import Run

_ID_KEYS = ("tool_call_id", "call_id", "tool_use_id", "toolUseId")
_PART_KEYS = ("content", "parts")
_WRAPPERS = ("toolResult", "function_response", "functionResponse")


class Backfill:
    """Looks at what was added to the messages since the last request, and at nothing else."""

    __slots__ = ("_last", "_run", "_seen")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._seen = 0
        self._last: Any = None

    def told(self, call: ToolCall) -> None:
        """The loop says itself that the result goes into the next request."""
        step = call.step
        if step is not None and call in step.results:
            step.results.remove(call)
            call.backfilled(e.ToolResultBackfilled)

    def look(self, messages: Any) -> None:
        """Settle the open step's results by the new messages of the request that is about to be made."""
        step = self._run.steps_.current
        added = self._added(messages)
        if step is None or not step.results:
            return
        ids = {str(found) for message in added for found in _guard.contained("messages", _ids, message, default=())}
        results, step.results = step.results, []
        seen = any(call.call_id in ids for call in results)
        for call in results:
            if call.call_id in ids:
                call.backfilled(e.ToolResultBackfilled)
            elif seen:
                call.backfilled(e.BackfillMissing)
            else:
                step.unobserved += 1

    def _added(self, messages: Any) -> Sequence[Any]:
        if not isinstance(messages, list | tuple):
            return ()
        length, seen = len(messages), self._seen
        if not (0 < seen <= length and _same(messages[seen - 1], self._last)):
            seen = 0
        self._seen, self._last = length, messages[-1] if messages else None
        return messages[seen:]


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, dict) and one == other)


def _ids(message: Any) -> list[Any]:
    return list(_call_ids(message))


def _call_ids(message: Any, depth: int = 0) -> Iterator[Any]:
    """The call ids that a message answers, in any provider's form."""
    get = message.get if isinstance(message, Mapping) else lambda key, default=None: getattr(message, key, default)
    if get("role") == "assistant" or get("type") in ("function_call", "tool_use", "tool_call"):
        return
    yield from (found for key in _ID_KEYS if isinstance(found := get(key), str))
    for key in _WRAPPERS:
        if (wrapped := get(key)) is not None:
            yield from _wrapped_ids(wrapped)
    for part in _parts(get) if depth == 0 else ():
        yield from _call_ids(part, 1)


def _parts(get: Any) -> list[Any]:
    lists = [parts for key in _PART_KEYS if isinstance(parts := get(key), list | tuple)]
    return [part for parts in lists for part in parts if not isinstance(part, str)]


def _wrapped_ids(wrapped: Any) -> Iterator[Any]:
    for key in ("toolUseId", "tool_use_id", "id"):
        found = wrapped.get(key) if isinstance(wrapped, Mapping) else getattr(wrapped, key, None)
        if isinstance(found, str):
            yield found
