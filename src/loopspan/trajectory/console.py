"""Prints each run as a tree when it closes: what `setup()` does on a terminal."""

from __future__ import annotations

import threading
from typing import TextIO

from loopspan import events as e
from loopspan._journal import Entry
from loopspan.trajectory.sources import read_runlog
from loopspan.trajectory.tree import text, tree


class RunPrinter:
    """Takes entries as they are recorded, keeps those of open runs; a sub-agent's run is printed with its parent."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._entries: dict[str, list[Entry]] = {}
        self._parents: dict[str, str] = {}

    def __call__(self, entry: Entry) -> None:
        """One entry more."""
        with self._lock:
            self._entries.setdefault(entry.run_id, []).append(entry)
            event = entry.event
            if isinstance(event, e.RunStarted) and event.parent_run_id in self._entries:
                self._parents[entry.run_id] = str(event.parent_run_id)
            closed = isinstance(event, e.RunTraceClosed) and entry.run_id not in self._parents
            entries = self._taken(entry.run_id) if closed else []
        if entries:
            print(text(tree(read_runlog(entries))), file=self._stream, flush=True)

    def _taken(self, run_id: str) -> list[Entry]:
        """The entries of a run and of its sub-agents, which are kept no longer."""
        entries = self._entries.pop(run_id)
        for child in [child for child, parent in self._parents.items() if parent == run_id]:
            del self._parents[child]
            entries += self._taken(child)
        return entries
