"""A model request inside another one is an attempt of that one: a client that retries, a wrapper around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopspan._scopes.commands import Flow, Invoke, Sleep
from loopspan._scopes.context import Scope
from loopspan._scopes.options import RequestOptions
from loopspan._scopes.reading import Reader
from loopspan._scopes.request_attempt import RequestAttempt


class Inner(Scope):
    """The body of an inner request; its span is the outer attempt's."""

    __slots__ = ("outer", "reader")

    reads = "managers"

    def __init__(self, outer: RequestAttempt, options: RequestOptions) -> None:
        super().__init__(outer.run, outer, outer.handle)
        self.outer = outer
        self.reader = Reader(options, outer.request.provider, outer.run.recorder.content.in_events)

    def host(self) -> Scope:
        """As for the outer attempt."""
        return self.outer.host()

    def chunk(self, item: Any) -> None:
        """Read a streamed chunk."""
        self.reader.chunk(item)

    def complete(self, value: Any) -> bool:
        """Whether the stream has said why it ended."""
        return self.reader.complete(value)


def outer_attempt(scope: Scope) -> RequestAttempt | None:
    """The attempt that a request made in `scope` belongs to: one at a time, further ones at once are requests."""
    outer = scope.outer if isinstance(scope, Inner) else scope
    return outer if isinstance(outer, RequestAttempt) and not outer.inner_running else None


def run_inner(
    outer: RequestAttempt,
    options: RequestOptions,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Flow:
    """Make the inner request; each time that it is made again, the outer one gets its next attempt."""
    attempts, backoff = 0, None
    while True:
        outer.next_inner(backoff)
        attempts += 1
        inner = Inner(outer, options)
        outcome = yield Invoke(inner, function, args, kwargs, options.timeout)
        outer.inner_done(None if outcome.error else inner.reader.read(outcome.value), outcome.error)
        if not outer.run.limits.may_retry(options.retry, attempts, outcome.error) or options.retry is None:
            return outcome
        backoff = outer.run.limits.backoff(options.retry, attempts)
        slept = yield Sleep(backoff)
        if slept.error is not None:
            return slept
