"""`read_runlog`, imported when it is called: programs that only record need no reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopspan.trajectory import RunLog


def read_runlog(source: Any) -> RunLog:
    """Read runs back; see `loopspan.trajectory.read_runlog` for what `source` may be."""
    from loopspan.trajectory import read_runlog as read

    return read(source)
