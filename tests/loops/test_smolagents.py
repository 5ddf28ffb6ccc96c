"""smolagents' agents: every request, every call under its step, and why the run ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loops import published
from loops.outlines import durations, outline
from loopspan.testing import Captured, TickingClock, capture

agents = published.load("smolagents_agents")


def test_a_tool_calling_agent(loopspan_capture: Captured):
    assert agents.tool_calling(agents.both(), agents.final()).run("Both?") == 7
    assert outline(loopspan_capture) == ""
