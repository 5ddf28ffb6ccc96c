"""Taking a run along into a thread pool that does not copy context."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from opentelemetry.context import attach, get_current

P = ParamSpec("P")
R = TypeVar("R")


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with the present run, step and span around it wherever it is called: `pool.submit(carry(work))`."""
    carried = get_current()

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        saved = get_current()
        attach(carried)
        try:
            return function(*args, **kwargs)
        finally:
            attach(saved)

    return wrapper
