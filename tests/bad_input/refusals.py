"""Tools whose bodies say that they were entered, and what a refusal must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import loopspan
from loopspan import Approval, LoopspanError
from loopspan.testing import Captured

ENTERED: list[Any] = []
"""What the bodies of the tools were entered with."""


@loopspan.tool
def pay(amount: int, to: str = "bob") -> str:
    """Pay somebody."""
    ENTERED.append((amount, to))
    return f"paid {amount}"


@loopspan.tool
async def send(amount: int) -> str:
    """Pay somebody, asynchronously."""
    ENTERED.append(amount)
    return f"sent {amount}"


TOOLS = loopspan.Toolbox(pay, send)


GUARDS: dict[str, dict[str, Any]] = {
    "permission": {"permission": lambda arguments: True},
    "approval": {"approval": Approval(expires_in=60, decide=lambda request: True)},
}


def refused(call: Callable[[], Any], cls: type[LoopspanError], *words: str) -> LoopspanError:
    """The error of `call`, one of our tree, which has all `words` in its text."""
    with pytest.raises(cls) as caught:
        call()
    assert isinstance(caught.value, LoopspanError)
    assert [word for word in words if word not in str(caught.value)] == [], caught.value
    return caught.value


def events(captured: Captured, name: str) -> list[Any]:
    return [entry for entry in captured.entries if entry.name == name]
