"""`python -m benchmarks._open_runs N`: open N runs and print the KiB that each of them keeps."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator

import loopspan
from benchmarks._twin import Counting, sdk
from benchmarks._work import ask_model, ask_on, call_plainly, endless_loop, toolbox

Start = Callable[[], Iterator[int]]


def main(runs: int) -> None:
    """Print what a run keeps beyond what the undecorated loop keeps."""
    plain = endless_loop(ask_on, call_plainly)
    decorated = loopspan.agent_loop("watch-builds")(endless_loop(ask_model(ask_on), toolbox.call))
    with loopspan.configure(tracer_provider=sdk(Counting())):
        warm = opened(decorated, 10)
        tracemalloc.start()
        ours, loop = kept(decorated, runs), kept(plain, runs)
    sys.stdout.write(f"{(ours - loop) / runs / 1024}\n")
    del warm


def kept(start: Start, runs: int) -> int:
    """Bytes that `runs` open runs keep."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    waiting = opened(start, runs)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    del waiting
    return after - before


def opened(start: Start, runs: int) -> list[Iterator[int]]:
    """Runs that have done one step and wait for their reader."""
    waiting = [start() for _ in range(runs)]
    for run in waiting:
        next(run)
    return waiting


if __name__ == "__main__":
    main(int(sys.argv[1]))
