"""`loopspan show`: the trees of a file, and what there is to say besides."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from loopspan.errors import ConfigurationError
from loopspan.trajectory import RunLog, RunView, export, read_runlog
from loopspan.trajectory.tree import Node, remarks, text, tree

LARGE = 32_000_000
"""Bytes from which on reading takes long enough to say so."""


class Refused(typer.TyperException):
    """A command that cannot do what was asked; the message is all that the user sees."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = code


def read(path: Path) -> RunLog:
    """The runs of a file. Raises Refused where it cannot be opened."""
    try:
        with _progress(path):
            return read_runlog(path)
    except ConfigurationError as error:
        why = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        raise Refused(f"{path}: {why}") from error


def _progress(path: Path) -> contextlib.AbstractContextManager[object]:
    if not (sys.stderr.isatty() and path.is_file() and path.stat().st_size > LARGE):
        return contextlib.nullcontext()
    from loopspan.cli import _colours

    return _colours.progress(f"reading {path}")


def show(log: RunLog, name: str, wanted: str | None, *, as_json: bool, svg: Path | None = None) -> None:
    """Print the runs of `log`, or the one whose id begins with `wanted`.

    `name` is what the source is called in messages. Raises Refused where there is no such run.
    """
    chosen = None if wanted is None else _chosen(log, name, wanted)
    shown = log.runs if chosen is None else [chosen]
    nodes = tree(log if chosen is None else chosen)
    if svg is not None and nodes:
        from loopspan.cli import _colours

        svg.write_text(_colours.svg(nodes, f"loopspan show {Path(name).name}"), "utf-8")
    if as_json:
        print(export.log_to_json(shown, log.foreign, remarks(log, shown)))
    else:
        _print(nodes, log, shown)
    if not shown:
        raise Refused(f"{name}: no runs in it")


def _chosen(log: RunLog, name: str, wanted: str) -> RunView:
    found = [run for run in log.runs if run.run_id.startswith(wanted)]
    exact = [run for run in found if run.run_id == wanted]
    if not found:
        raise Refused(f"{name}: no run {wanted!r}; there are {len(log.runs)} runs in it")
    if len(found) > 1 and not exact:
        ids = ", ".join(run.run_id for run in found[:5])
        raise Refused(f"{name}: {wanted!r} fits {len(found)} runs: {ids}{', ...' if len(found) > 5 else ''}", 2)
    return (exact or found)[0]


def _print(nodes: Sequence[Node], log: RunLog, shown: Sequence[RunView]) -> None:
    if sys.stdout.isatty():
        from loopspan.cli import _colours

        _colours.show(nodes)
    elif nodes:
        print(text(nodes))
    notes = remarks(log, shown)
    if notes:
        print("\n" + "\n".join(f"note: {note}" for note in notes))
