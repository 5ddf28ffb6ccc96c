"""Measuring: CPU time of functions taken in turn, so that whatever slows the machine down slows all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

ROUNDS = 9
"""Rounds of a paired measurement; the table shows their median, least and most."""

BLOCK_S = 0.02
"""CPU seconds for which one function runs before it is the next one's turn."""

BLOCKS = 5
"""Blocks of each function in one round."""


class Figure(NamedTuple):
    """One figure over all rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        """From the value of each round."""
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])


class Row(NamedTuple):
    """One line of the table: what was measured, what it must stay below, what it aims at."""

    what: str
    figure: Figure
    must: float | None = None
    aim: float | None = None
    unit: str = "x"


def cpu(function: Callable[[], Any], times: int = 1) -> float:
    """CPU seconds of this process for `times` calls."""
    start = time.process_time()
    for _ in range(times):
        function()
    return time.process_time() - start


def in_turn(*functions: Callable[[], Any], rounds: int = ROUNDS) -> list[list[float]]:
    """CPU seconds a call of each function, in each round: `[round][function]`."""
    times = [_times(function) for function in functions]
    return [_round(functions, times) for _ in range(rounds)]


def _times(function: Callable[[], Any]) -> int:
    """Calls that fill a block; the first calls warm up what is made once."""
    function()
    once = cpu(function, 3) / 3
    return max(1, round(BLOCK_S / max(once, 1e-7)))


def _round(functions: tuple[Callable[[], Any], ...], times: list[int]) -> list[float]:
    gc.collect()
    spent = [0.0] * len(functions)
    for block in range(BLOCKS):
        order = range(len(functions)) if block % 2 else reversed(range(len(functions)))
        for number in order:
            spent[number] += cpu(functions[number], times[number])
    return [total / (count * BLOCKS) for total, count in zip(spent, times, strict=True)]
