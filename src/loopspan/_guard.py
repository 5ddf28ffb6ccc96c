"""Containment of loopspan's own faults: counted, logged once a place, raised only under `strict`."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

log = logging.getLogger("loopspan")

faults: Counter[str] = Counter()
_lock = threading.Lock()
_strict = False


def set_strict(value: bool) -> None:
    """Raise own faults instead of containing them (`configure(strict=)`; on in tests)."""
    global _strict
    _strict = value


def strict() -> bool:
    """Whether own faults are raised."""
    return _strict


def fault(place: str, error: Exception) -> None:
    """Contain `error`, met at `place` (a hook's name, `span processor`, …). Raises it under `strict`."""
    with _lock:
        faults[place] += 1
        first = faults[place] == 1
    if first:
        log.warning("loopspan: %s raised %s; later ones are only counted", place, type(error).__name__, exc_info=error)
    if _strict:
        raise error


def contained(place: str, function: Any, *args: Any, default: Any = None) -> Any:
    """`function(*args)`, or `default` where it raises an Exception, which is then a contained fault."""
    try:
        return function(*args)
    except Exception as error:
        fault(place, error)
        return default
