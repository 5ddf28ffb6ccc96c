"""Which scope the running code is in: carried in OpenTelemetry's Context, so whatever carries that carries the run."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from opentelemetry.context import Context, attach, create_key, get_current, get_value, set_value
from opentelemetry.trace import set_span_in_context

from loopspan.errors import NoActiveRun
from loopspan.telemetry._spans import Handle, Place

if TYPE_CHECKING:
    from loopspan._scopes.run import Run
    from loopspan._scopes.steps import Step

_KEY = create_key("loopspan-scope")
_here: ContextVar[None] = ContextVar("loopspan-visit")
"""Set while a generator's body runs: its token tells whether the body is left in the Context that it was entered in."""


class Visit(NamedTuple):
    """One stay in a generator's body, from an item that is asked for to the `yield`.

    `fresh` is what was entered; None where the body goes on with what it had attached.
    """

    outside: Context
    fresh: Context | None
    token: Token[None]


class Scope:
    """Something that user code runs inside of: a run, an attempt of a request, a call, an attempt of a tool.

    Entering attaches a Context and leaving attaches the former one, both in the same thread or task. A token is never
    detached, so leaving in a foreign Context neither logs nor disturbs it: what is not ours there is left alone.
    """

    __slots__ = ("_kept", "handle", "parent", "run")

    reads: ClassVar[str] = ""
    """Which results are not results yet: "streams", or "managers" too; nothing by default."""

    def __init__(self, run: Run, parent: Scope | None, handle: Handle | None = None) -> None:
        self.run = run
        self.parent = parent
        self._kept: tuple[Context, Place] | None = None
        if handle is not None:
            self.handle = handle

    def place(self) -> Place:
        """Where spans of this scope hang; kept while the Context around it is the same."""
        current, kept, span = get_current(), self._kept, self.handle.span
        if kept is None or kept[0] is not current or kept[1].span is not span:
            kept = self._kept = (current, Place(span, set_span_in_context(span, current)))
        return kept[1]

    def enter(self) -> Context:
        """Make this the current scope and its span the current span; returns what `leave` needs."""
        saved = get_current()
        known = self.parent is not None and self.parent.handle is self.handle
        attach(set_value(_KEY, self, saved if known else set_span_in_context(self.handle.span, saved)))
        return saved

    def leave(self, saved: Context) -> None:
        """Make the former scope current again, where this one still is."""
        if get_value(_KEY) is self:
            attach(saved)

    def resume(self, inside: Context | None) -> Visit:
        """Enter for the next item of a generator, with what its body had attached at the last `yield`."""
        outside = get_current()
        if inside is None:
            self.enter()
            return Visit(outside, get_current(), _here.set(None))
        attach(inside)
        return Visit(outside, None, _here.set(None))

    def pause(self, visit: Visit) -> Context | None:
        """Make current again what the consumer had; returns what the body has attached and not detached, if any."""
        try:
            _here.reset(visit.token)
        except ValueError:
            return None  # finalised in a foreign Context: what is current there is not ours
        now = get_current()
        attach(visit.outside)
        return None if now is visit.fresh else now

    def host(self) -> Scope:
        """The scope whose span the spans of tool calls hang below that are made in this one."""
        return self

    def chunk(self, item: Any) -> None:
        """A streamed body has yielded `item`."""

    def complete(self, value: Any) -> bool:
        """Whether a stream that nobody reads on has answered in full; `value` is what is there of it."""
        return False

    def abort(self, error: BaseException | None) -> None:
        """The run ends while this scope is open: close it."""


def current_scope() -> Scope | None:
    """The scope that this code runs in, None outside of every run."""
    return cast("Scope | None", get_value(_KEY))


def active_scope() -> Scope | None:
    """The scope that this code runs in, unless its run is over."""
    scope = cast("Scope | None", get_current().get(_KEY))
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
    steps = current_run().steps_
    step = steps.deferred or steps.current
    if step is None:
        raise NoActiveRun("no step is open: a model request, a tool call or run.steps() opens one")
    return step
