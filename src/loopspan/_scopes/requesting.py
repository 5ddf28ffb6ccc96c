"""The flow of a model request: attempt, repeat, conclude."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopspan._scopes.commands import Flow, Invoke, Sleep
from loopspan._scopes.request import Request
from loopspan._scopes.request_attempt import RequestAttempt


def run_request(request: Request, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flow:
    """Make the request until it is answered, or not worth another attempt."""
    backoff: float | None = None
    while True:
        attempt = RequestAttempt(request, backoff)
        outcome = yield Invoke(attempt, function, args, kwargs, request.options.timeout)
        attempt.finish(outcome)
        backoff = request.wait_before_retry(outcome)
        if backoff is None:
            return request.conclude(outcome)
        slept = yield Sleep(backoff)
        if slept.error is not None:
            request.release()
            return slept
