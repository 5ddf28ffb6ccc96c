"""Makes the picture of the README anew from a real run: `python docs/images/make.py [FILE]`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).with_name("trace.svg")


def loopspan(*arguments: object) -> None:
    """Run the command line."""
    code = "from loopspan.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def make(picture: Path) -> None:
    """Trace the demo into a file, and draw what the file says."""
    with tempfile.TemporaryDirectory() as folder:
        spans = Path(folder) / "spans.jsonl"
        loopspan("demo", "--file", spans)
        loopspan("show", spans, "--svg", picture)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
