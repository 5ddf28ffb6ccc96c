"""Hypothesis profiles, and the way to the seeds, samples and example programs beside the repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from loopspan.testing import Captured
    from ways import Witness

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("LOOPSPAN_SHARED") or REPOSITORY.parent / "shared")

settings.register_profile("default", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=int(os.environ.get("LOOPSPAN_FUZZ", "100000")),
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")


@pytest.fixture(scope="session")
def shared() -> Callable[..., Path]:
    """`shared(*parts)` is a path below the shared folder; the test is skipped where there is none."""

    def find(*parts: str) -> Path:
        path = SHARED.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"{'/'.join(('shared', *parts))} is not here (LOOPSPAN_SHARED names another folder)")
        return path

    return find


@pytest.fixture
def witness(loopspan_capture: Captured, caplog: pytest.LogCaptureFixture) -> Witness:
    """A caller that checks what a loop leaves behind, in front of a capture."""
    from ways import Witness

    return Witness(loopspan_capture, caplog)
