"""The command line: `loopspan show`, `loopspan demo`."""

from __future__ import annotations

from loopspan.cli._app import main

__all__ = ["main"]
