"""Reading RunLogs back: from exported spans to runs, steps, requests and calls (telemetry.md, *RunLog events*)."""

from __future__ import annotations

from loopspan.trajectory.parts import AttemptView, CallView, RequestView, StepView
from loopspan.trajectory.run import RunView
from loopspan.trajectory.runlog import RunLog
from loopspan.trajectory.sources import read_runlog

__all__ = ["AttemptView", "CallView", "RequestView", "RunLog", "RunView", "StepView", "read_runlog"]
