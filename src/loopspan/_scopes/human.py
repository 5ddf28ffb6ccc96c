"""`human_wait`: loops that ask people themselves; waiting is not working."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from loopspan import _redact
from loopspan import events as e
from loopspan._scopes.call import ToolCall
from loopspan._scopes.context import Scope, active_scope
from loopspan.errors import ConfigurationError


class human_wait:  # noqa: N801  # used as a function: `with loopspan.human_wait("approval") as wait`
    """Record that the loop waits for a person: `with human_wait("approval") as wait: wait.decided(True, by="alice")`.

    `kind` says what for (low cardinality). `call`: the `ToolCall` that it is about, if any. The wait is a span of its
    own (`approval_wait`), and does not count as active time. Outside of a run nothing is recorded.
    """

    def __init__(self, kind: str, *, call: ToolCall | None = None) -> None:
        if not isinstance(kind, str) or not kind:
            raise ConfigurationError(f"human_wait({kind!r}): say what is waited for, as text")
        if call is not None and not isinstance(call, ToolCall):
            raise ConfigurationError(f"human_wait(call={call!r}): give a tool call, such as current_tool_call()")
        self._kind = kind
        self._call = call
        self._approved: bool | None = None
        self._by: str | None = None
        self._scope: Scope | None = None

    def decided(self, approved: bool, *, by: str | None = None) -> None:
        """Say what the person answered, and who it was."""
        if not isinstance(approved, bool):
            raise ConfigurationError(f"decided({approved!r}): give True or False")
        self._approved, self._by = approved, by

    def __enter__(self) -> Self:
        self._scope = active_scope()
        if self._scope is not None:
            self._started = self._scope.run.recorder.anchor.now()
            self._scope.run.limits.wait_begins(self._started)
        return self

    def __exit__(self, cls: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        scope, self._scope = self._scope, None
        if scope is None or scope.run.is_closed:
            return
        run, now = scope.run, scope.run.recorder.anchor.now()
        run.limits.wait_ends(now)
        run.recorder.instant(e.HumanWait(started=self._started, **self._about(scope)), run.place())

    def _about(self, scope: Scope) -> dict[str, Any]:
        step, call = scope.run.steps_.current, self._call
        said: dict[str, Any] = {"kind": self._kind, "approved": self._approved, "decided_by": _redact.name(self._by)}
        if call is not None:
            return {**call.where(), **said}
        return {"step": None if step is None else step.number, **said}
