"""Trees in colour, on a terminal or as a picture; the only file that imports rich."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from loopspan.trajectory.tree import Node, text

_STYLES = {"title": "bold", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim", "plain": ""}


def show(nodes: Iterable[Node]) -> None:
    """Print on the terminal."""
    _print(Console(highlight=False), nodes)


def svg(nodes: Sequence[Node], title: str) -> str:
    """A picture of a terminal with the trees in it."""
    width = max([40, *(len(row) + 1 for row in text(nodes).splitlines())])
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, highlight=False)
    _print(console, nodes)
    return console.export_svg(title=title)


def progress(what: str) -> contextlib.AbstractContextManager[object]:
    """Says on the terminal that something takes its time."""
    return Console(stderr=True).status(what)


def _print(console: Console, nodes: Iterable[Node]) -> None:
    for node in nodes:
        console.print(_branch(node, Tree(_label(node), guide_style="dim")))


def _branch(node: Node, at: Tree) -> Tree:
    for child in node.children:
        _branch(child, at.add(_label(child)))
    return at


def _label(node: Node) -> Text:
    return Text("  ").join(Text(words.text, style=_STYLES[words.style]) for words in node.label)
