"""Every rule is held with and without anybody who listens, and nothing was executed before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from refusals import ENTERED

import loopspan
from loopspan.testing import Captured, capture


@pytest.fixture(autouse=True)
def nothing_entered() -> Iterator[None]:
    ENTERED.clear()
    yield
    ENTERED.clear()


@pytest.fixture(params=["recorded", "unheard"])
def heard(request: pytest.FixtureRequest) -> Iterator[Captured | None]:
    """The rules are the same with and without anybody who listens."""
    if request.param == "recorded":
        with capture() as captured:
            yield captured
    else:
        with loopspan.configure(enabled=False, strict=True):
            yield None
