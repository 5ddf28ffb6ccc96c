"""What tests need: `capture()`, a clock that ticks, ids that count. The project's own tests use nothing else."""

from __future__ import annotations

from loopspan.testing.capturing import Captured, Metric, capture
from loopspan.testing.determinism import CountingIds, TickingClock

__all__ = ["Captured", "CountingIds", "Metric", "TickingClock", "capture"]
