"""The short way for runs that nobody listens to: limits, steps and endings as ever; no event, no call record.

Taken where the lifecycle has nothing to guard: no sink, no declared effect, no approval or permission, no retry, and
nothing open that could be unknown (product.md, *The numbers*: with no SDK configured).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loopspan._scopes.call import ToolCall
from loopspan._scopes.calling import tool_failed
from loopspan._scopes.cancels import cancel_detail
from loopspan._scopes.commands import Flow, Invoke, Outcome
from loopspan._scopes.context import Scope
from loopspan._scopes.options import RequestOptions, ToolOptions
from loopspan._scopes.reading import Reader
from loopspan._scopes.repeats import shape

if TYPE_CHECKING:
    from loopspan._scopes.steps import Step


def plain_tool(options: ToolOptions) -> bool:
    """Whether the tool's calls need no record where nobody listens."""
    strict = options.guarded or options.outlives_failure
    return not strict and options.retry is None and options.call is None


def plain_request(options: RequestOptions) -> bool:
    """Whether the request needs no record where nobody listens."""
    return options.retry is None and options.step


class QuietCall(ToolCall):
    """A tool call that is not on record; its id is made up when somebody asks for it."""

    __slots__ = ()

    def __init__(self, scope: Scope, options: ToolOptions, step: Step) -> None:
        self.run = scope.run
        self.parent = scope
        self._kept = None
        self.handle = scope.handle
        self.options = options
        self.name = options.name
        self.step = step
        self.arguments: Any = None
        self.attempts = 1
        self.quiet = True
        self._open = self._inside = True
        self._reference = None

    def __getattr__(self, name: str) -> Any:
        if name not in ("call_id", "ordinal", "id_source"):
            raise AttributeError(name)
        self.call_id, self.ordinal, self.id_source = self.step.proposals.identify(self.name, None, None)
        return getattr(self, name)


def call_quietly(
    scope: Scope,
    options: ToolOptions,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    wrap: bool = False,
) -> Flow:
    """Call a plain tool; `wrap` as in `calling.run_body`."""
    run = scope.run
    run.check()
    call = QuietCall(scope, options, run.steps_.current or run.steps_.ensure())
    outcome = yield Invoke(call, function, args, kwargs, options.timeout)
    error = outcome.error
    if error is not None and cancel_detail(error) is None and not isinstance(error, options.control_flow):
        run.has_left(error, "tool_failed")
        return Outcome(error=tool_failed(options.name, error)) if wrap else outcome
    return outcome


class QuietRequest(Scope):
    """A model request that is not on record. A failed one is remembered, so that its repetition opens no step."""

    __slots__ = ("arguments", "options", "reader", "scope")

    reads = "managers"

    def __init__(self, scope: Scope, options: RequestOptions) -> None:
        self.run = scope.run
        self.scope = self.parent = scope
        self._kept = None
        self.handle = scope.handle
        self.options = options
        self.reader: Reader | None = None
        self.arguments: Any = ()

    def chunk(self, item: Any) -> None:
        """Read a streamed chunk."""
        if self.reader is None:
            self.reader = Reader(self.options, None, False)
        self.reader.chunk(item)

    def complete(self, value: Any) -> bool:
        """Whether the stream has said why it ended."""
        return (self.reader or Reader(self.options, None, False)).complete(value)

    def unread(self, value: Any) -> Callable[[], Any]:
        """Reads the answer when somebody asks for it."""
        return lambda: (self.reader or Reader(self.options, None, False)).read(value)


def request_quietly(
    scope: Scope,
    options: RequestOptions,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Flow:
    """Make a plain model request."""
    run = scope.run
    run.check()
    step = _step(scope, args, kwargs)
    request = QuietRequest(scope, options)
    if step is not None:
        step.in_flight += 1
    outcome = yield Invoke(request, function, args, kwargs, options.timeout)
    if step is not None:
        step.in_flight -= 1
    if outcome.error is None:
        run.unread = request.unread(outcome.value)
    elif cancel_detail(outcome.error) is None:
        run.has_left(outcome.error, "model_failed")
        if step is not None and isinstance(outcome.error, Exception):
            request.arguments = shape(args, kwargs)
            step.failed_request = request
    return outcome


def _step(scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step | None:
    steps = scope.run.steps_
    current = steps.current
    if scope is not scope.run and scope is not current:
        return current
    failed = None if current is None else current.failed_request
    if failed is not None and scope.run.repeated_request(scope, shape(args, kwargs)) is not None:
        return current
    return steps.for_request(None)
