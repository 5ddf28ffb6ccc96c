"""CPU of `import loopspan`, against `import opentelemetry.sdk.trace`; each in a new interpreter, its start not counted."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from benchmarks._measure import Figure, Row

_PROGRAM = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
ROUNDS = 7


def ratio(options: Any) -> list[Row]:
    """Both in turn."""
    _seconds("loopspan"), _seconds("opentelemetry.sdk.trace")  # so that both have their byte code
    figures = [_seconds("loopspan") / _seconds("opentelemetry.sdk.trace") for _ in range(ROUNDS)]
    return [Row("import loopspan against opentelemetry.sdk.trace", Figure.of(figures), 1.5, 1.2)]


def _seconds(module: str) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(module)]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
