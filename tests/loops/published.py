"""The example programs around published loops: as modules, and as programs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import loopspan

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "loops"


def load(name: str) -> ModuleType:
    """The example as a module; nothing of it runs."""
    module = sys.modules.get(name)
    if module is None:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def run(name: str, folder: Path) -> str:
    """The example as a program of its own that records in `folder`; what it prints."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "LOOPSPAN_"))}
    package = str(Path(loopspan.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), str(folder)],
        env={**kept, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
