"""The pytest plugin: one fixture, nothing automatic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from loopspan.testing.capturing import Captured


@pytest.fixture
def loopspan_capture() -> Iterator[Captured]:
    """`loopspan.testing.capture()` around the test, with a ticking clock and counting ids."""
    from loopspan.testing import CountingIds, TickingClock, capture

    with capture(clock=TickingClock(), ids=CountingIds()) as captured:
        yield captured
