"""One run, read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from loopspan.trajectory import export, words
from loopspan.trajectory.facts import RunFacts


class RunView(RunFacts):
    """A run as its events tell it, with its forms for people and for programs."""

    @property
    def children(self) -> Sequence[RunView]:
        """The sub-agents' runs in the same RunLog, in order of start."""
        return cast("Sequence[RunView]", super().children)

    def summary(self) -> dict[str, Any]:
        """The seed's dictionary: trace_id (the run id), status, lifecycle, reasons, events, cost_metric.

        `status` is completed, failed, waiting, resumed or running. `unconfirmed` is there where a remote side has
        accepted calls and not finished them.
        """
        return export.summary(self)

    def to_json(self) -> str:
        """The whole run as strict JSON text.

        What this class has, under the same names: ids, lifecycle and reasons, `steps` with their `requests` and
        `tool_calls` and the `attempts` of both, `usage`, `cost`, `gaps`, `problems`, and `log` with the fields of every
        event. Times are nanoseconds since the epoch, amounts of money are text. `version` is that of this form.
        """
        return export.to_json(self)

    def __str__(self) -> str:
        return words.plain(words.run(self))

    def __repr__(self) -> str:
        return f"<RunView {self.run_id} {self.lifecycle}>"
