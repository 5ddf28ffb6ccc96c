"""Reading RunLogs back."""

from __future__ import annotations

from typing import Any


class RunView:
    """A run."""


class RunLog:
    """Runs."""


def read_runlog(source: Any) -> RunLog:
    """Read."""
    raise NotImplementedError
