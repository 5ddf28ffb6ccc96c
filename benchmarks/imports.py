"""CPU of `import loopspan`, against `import opentelemetry.sdk.trace`; each in a new interpreter, less its start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks._measure import Figure, Row

_PROGRAM = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
_SDK = "opentelemetry.sdk.trace"
ROUNDS = 7


def ratio(options: Any) -> list[Row]:
    """Both in turn, from byte code that a first import has written, as an installed package has it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        rounds = [_seconds("loopspan", environment) / _seconds(_SDK, environment) for _ in range(ROUNDS + 1)]
    return [Row(f"import loopspan against {_SDK}", Figure.of(rounds[1:]), 1.5, 1.2)]


def _seconds(module: str, environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(module)]
    said = subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout
    return float(said)
