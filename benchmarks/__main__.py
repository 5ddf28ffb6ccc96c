"""`python -m benchmarks [--full] [name …]`: measure and print a table. Never fails: it informs, tests decide."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import growth, imports, memory, metrics, mini_swe, no_sdk, reading, recording, spans
from benchmarks._measure import Row

BENCHMARKS: dict[str, Callable[[Any], list[Row]]] = {
    "recording": recording.fast,
    "recording-public": recording.public,
    "spans": spans.fast,
    "public": spans.public,
    "no-sdk": no_sdk.added,
    "mini-swe": mini_swe.added,
    "import": imports.ratio,
    "growth": growth.ratio,
    "memory": memory.kept,
    "metrics": metrics.rows,
    "reading": reading.ratio,
}
HEAD = ("measured", "median", "min..max", "must", "aim", "")
LAYOUT = "{:<78} {:>10} {:>16} {:>9} {:>9}  {}"


def line(row: Row) -> str:
    """One line of the table."""
    figure, must, aim = row.figure, row.must, row.aim
    if must is None or aim is None:
        verdict = ""
    else:
        verdict = "aim met" if figure.median <= aim else "must met" if figure.median <= must else "OVER"
    bounds = ("" if bound is None else f"<= {bound:g}" for bound in (must, aim))
    spread = f"{figure.low:.2f}..{figure.high:.2f}"
    return LAYOUT.format(row.what, f"{figure.median:.2f} {row.unit}", spread, *bounds, verdict).rstrip()


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What loopspan costs, as ratios.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--full", action="store_true", help="read back 100,000 runs instead of 5,000")
    options = parser.parse_args()
    for unknown in set(options.names) - BENCHMARKS.keys():
        parser.error(f"no benchmark is called {unknown!r}: give any of {', '.join(BENCHMARKS)}")
    print(f"Python {sys.version.split()[0]}; CPU time, median over rounds in which both sides took turns")
    print(LAYOUT.format(*HEAD).rstrip())
    for name in options.names or BENCHMARKS:
        show(BENCHMARKS[name], name, options)


def show(measure: Callable[[Any], list[Row]], name: str, options: Any) -> None:
    """The lines of one benchmark; what goes wrong in it is a line as well."""
    start = time.perf_counter()
    try:
        for row in measure(options):
            print(line(row), flush=True)
    except Exception as error:  # noqa: BLE001  # the others are measured all the same
        print(f"{name} could not be measured: {type(error).__name__}: {error}", flush=True)
    print(f"  ({name}: {time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
