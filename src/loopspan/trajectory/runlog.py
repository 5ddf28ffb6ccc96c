"""All runs of one source."""

from __future__ import annotations

from functools import cached_property

from loopspan.trajectory import export
from loopspan.trajectory.records import Found
from loopspan.trajectory.run import RunView


class RunLog:
    """The runs that a source holds, and what else is to be said of it."""

    def __init__(self, found: Found) -> None:
        self._found = found
        raw = sorted(found.runs.values(), key=lambda run: run.first())
        self._runs = [RunView(run, self.children) for run in raw if run.records or run.logged]

    @property
    def runs(self) -> list[RunView]:
        """The runs in order of start."""
        return self._runs

    @property
    def foreign(self) -> int:
        """The number of spans that are not loopspan's."""
        return self._found.foreign

    @property
    def source_problems(self) -> list[str]:
        """What could not be read of the source, whichever run it may have belonged to."""
        return self._found.problems()

    @property
    def problems(self) -> list[str]:
        """What is missing or could not be read, of the source and of every run; decodes every entry."""
        return [*self.source_problems, *(problem for run in self._runs for problem in run.problems)]

    @cached_property
    def _families(self) -> dict[str | None, list[RunView]]:
        parents = {run.run_id: run.parent_run_id for run in self._runs}
        families: dict[str | None, list[RunView]] = {}
        for run in self._runs:
            families.setdefault(_parent(run.run_id, parents), []).append(run)
        return families

    def children(self, run_id: str) -> list[RunView]:
        """The runs that run `run_id` started as sub-agents, in order of start."""
        return self._families.get(run_id, [])

    @property
    def roots(self) -> list[RunView]:
        """The runs that no other run of this log has started, in order of start."""
        return self._families.get(None, [])

    def to_json(self) -> str:
        """All runs as strict JSON text."""
        return export.log_to_json(self._runs, self.foreign, self.problems)

    def __repr__(self) -> str:
        return f"<RunLog of {len(self._runs)} runs, {self.foreign} foreign spans>"


def _parent(run_id: str, parents: dict[str, str | None]) -> str | None:
    """The run that started this one, where it is in the log; None also for one that would be its own ancestor."""
    parent = at = parents[run_id]
    seen = set()
    while at is not None and at in parents and at not in seen:
        if at == run_id:
            return None
        seen.add(at)
        at = parents[at]
    return parent if parent in parents else None
