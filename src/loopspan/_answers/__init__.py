"""What a model's answer says: usage, model, finish reasons, proposed tool calls, text; whole or streamed."""

from __future__ import annotations

from loopspan._answers.stream import Accumulator
from loopspan._answers.whole import read

__all__ = ["Accumulator", "read"]
