"""Programs that run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import loopspan


def run_program(folder: Path, source: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `source`, from a file in `folder`, in a new interpreter with `variables` in its environment."""
    program = folder / "program.py"
    program.write_text(textwrap.dedent(source), "utf-8")
    package = str(Path(loopspan.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "LOOPSPAN_"))}
    return subprocess.run(
        [sys.executable, str(program), *map(str, arguments)],
        env={**kept, "PYTHONPATH": package, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
