"""How much must be written around a loop: counted between the comments `hooks`, `wrapper` and `end` of each example."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from loops import published

MARK = re.compile(r"^# (hooks|wrapper|end)(?: of (.*))?$")
EXAMPLES = sorted(path.stem for path in published.FOLDER.glob("[!_]*.py"))


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code: no blank ones, no comments, no docstrings."""
    texts = {node.lineno: node.end_lineno for node in ast.walk(ast.parse(source)) if is_text(node)}
    silent = {line for first, last in texts.items() for line in range(first, last + 1)}
    lines = enumerate(source.splitlines(), 1)
    return {number for number, line in lines if line.strip() and not line.strip().startswith("#")} - silent


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a bare string: a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def sizes(path: Path) -> Counter[tuple[str, str]]:
    """Lines of code by (part, loop); the loop is empty for what all loops of the file share."""
    source = path.read_text("utf-8")
    counted, part = Counter(), None
    for number, line in enumerate(source.splitlines(), 1):
        if mark := MARK.match(line):
            part = (mark[1], mark[2] or "")
        elif part is not None and number in code_lines(source):
            counted[part] += 1
    return counted


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_loop_needs_15_lines_around_it_and_hooks_of_25(name: str):
    counted = sizes(published.FOLDER / f"{name}.py")
    loops = {loop for part, loop in counted if part == "wrapper" and loop} or {""}
    shared = counted["wrapper", ""] if loops != {""} else 0
    for loop in loops:
        assert 0 < counted["wrapper", loop] + shared <= 15, loop
    assert counted["hooks", ""] <= 25
