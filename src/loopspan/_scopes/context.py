"""Which scope the running code is in: carried in OpenTelemetry's Context, so whatever carries that carries the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from opentelemetry.context import Context, attach, create_key, get_current, get_value, set_value
from opentelemetry.trace import set_span_in_context

from loopspan.errors import NoActiveRun
from loopspan.telemetry._spans import Handle, Place

if TYPE_CHECKING:
    from loopspan._scopes.run import Run
    from loopspan._scopes.steps import Step

_KEY = create_key("loopspan-scope")


class Scope:
    """Something that user code runs inside of: a run, an attempt of a request, a call, an attempt of a tool.

    Entering attaches a Context and leaving attaches the former one, both in the same thread or task. A token is never
    detached, so leaving in a foreign Context neither logs nor disturbs it: what is not ours there is left alone.
    """

    __slots__ = ("handle", "parent", "run")

    reads: ClassVar[str] = ""
    """Which results are not results yet: "streams", or "managers" too; nothing by default."""

    def __init__(self, run: Run, parent: Scope | None, handle: Handle | None = None) -> None:
        self.run = run
        self.parent = parent
        if handle is not None:
            self.handle = handle

    def place(self) -> Place:
        """Where spans of this scope hang."""
        return Place(self.handle.span, set_span_in_context(self.handle.span, get_current()))

    def enter(self) -> Context:
        """Make this the current scope and its span the current span; returns what `leave` needs."""
        saved = get_current()
        attach(set_value(_KEY, self, set_span_in_context(self.handle.span, saved)))
        return saved

    def leave(self, saved: Context) -> None:
        """Make the former scope current again, where this one still is."""
        if get_value(_KEY) is self:
            attach(saved)

    def chunk(self, item: Any) -> None:
        """A streamed body has yielded `item`."""

    def abort(self, error: BaseException | None) -> None:
        """The run ends while this scope is open: close it."""


def current_scope() -> Scope | None:
    """The scope that this code runs in, None outside of every run."""
    return cast("Scope | None", get_value(_KEY))


def active_scope() -> Scope | None:
    """The scope that this code runs in, unless its run is over."""
    scope = current_scope()
    return None if scope is None or scope.run.is_closed else scope


def current_run() -> Run:
    """The run that this code is part of.

    Raises NoActiveRun outside of a run.
    """
    scope = current_scope()
    if scope is None:
        raise NoActiveRun("no run is active here: decorate the loop with agent_loop, or carry the run along (carry)")
    return scope.run


def current_step() -> Step:
    """The step that is open in the current run.

    Raises NoActiveRun outside of a run, or before its first step.
    """
    step = current_run().steps_.current
    if step is None:
        raise NoActiveRun("no step is open: a model request, a tool call or run.steps() opens one")
    return step
