"""The decorators and blocks: `agent_loop`, `model_request`, `tool`, `tool_call`."""

from __future__ import annotations

from loopspan._decorators.loop import agent_loop
from loopspan._decorators.request import model_request
from loopspan._decorators.tool import Tool, tool, tool_call

__all__ = ["Tool", "agent_loop", "model_request", "tool", "tool_call"]
