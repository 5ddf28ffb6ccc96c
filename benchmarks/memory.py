"""Memory that an open run keeps: generator loops that wait for their reader after one step, with a real SDK."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from benchmarks._measure import Figure, Row

RUNS = 10_000


def kept(options: Any) -> list[Row]:
    """KiB a run, what the undecorated loop keeps taken off; in a process of its own, which counts every allocation."""
    command = [sys.executable, "-m", "benchmarks._open_runs", str(RUNS)]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return [Row(f"memory kept by an open run, {RUNS:,} open", Figure.of([float(said)]), 24, 8, "KiB")]
