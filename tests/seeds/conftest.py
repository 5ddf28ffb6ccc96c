"""The seeds as the tests use them; skipped where the documents are absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from seed_documents import LOOP, TERMINUS2, executed, program
from terminus2_harness import Terminus2Seed, harness


@pytest.fixture(scope="session")
def loop_source(shared: Callable[..., Path]) -> str:
    """The Python program of the seed on the observable loop."""
    return program(shared(*LOOP).read_text("utf-8"))


@pytest.fixture(scope="session")
def seed(loop_source: str) -> ModuleType:
    """That program, run as it stands: its functions, and the traces and summaries that it made."""
    return executed(loop_source, "seed_of_the_loop")[0]


@pytest.fixture(scope="session")
def terminus2(shared: Callable[..., Path]) -> type[Terminus2Seed]:
    """The Terminus2 seed's two pieces of code, as a class that runs one turn."""
    return harness(shared(*TERMINUS2).read_text("utf-8"))
