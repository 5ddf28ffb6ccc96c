"""Which exceptions are a cancel, and what a run says of them; asyncio is imported by those who use it."""

from __future__ import annotations

import sys

DETAILS: tuple[tuple[type[BaseException], str], ...] = (
    (GeneratorExit, "consumer_stopped"),
    (KeyboardInterrupt, "keyboard_interrupt"),
    (SystemExit, "shutdown"),
)


def cancel_detail(error: BaseException | None) -> str | None:
    """The stop detail of a cancel, None for any other error."""
    for cls, detail in DETAILS:
        if isinstance(error, cls):
            return detail
    asyncio = sys.modules.get("asyncio")
    cancelled = getattr(asyncio, "CancelledError", None)
    return "task_cancelled" if cancelled is not None and isinstance(error, cancelled) else None
