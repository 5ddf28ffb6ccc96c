"""docs/seeds.md: every test that it names exists, and every rule has a test or a named reason why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "seeds.md").read_text("utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[^`]+?::[^`]+)`", PAGE)))
ROWS = [tuple(cell.strip() for cell in row) for row in re.findall(r"^\|(.+)\|(.+)\|$", PAGE, re.MULTILINE)]
REASONS = [reason for reason, _ in ROWS if re.fullmatch(r"\*[^*]+\*", reason)]
RULES = [(rule, holds) for rule, holds in ROWS if rule not in (*REASONS, "rule", "reason", "---")]
ELSEWHERE = ("*Trace*, *Span*, *RunLog* and *CostMetric* below", "*CostMetric* below", "the sections above")


def functions(path: Path) -> set[str]:
    """The names of a module's functions."""
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("reference", TESTS)
def test_a_test_that_is_named_exists(reference: str):
    """The function by its name; a row of its table by the words that it is called by."""
    path, name = reference.split("::")
    function, _, row = name.removesuffix("]").partition("[")
    file = REPOSITORY / path
    assert file.is_file(), path
    assert function.startswith("test_")
    assert function in functions(file)
    assert f'"{row}' in file.read_text("utf-8") or not row


def test_every_rule_is_held_or_says_why_not():
    """Each row has a test or one of the reasons that the page explains; a reason that nobody gives is not explained."""
    loose = [rule for rule, holds in RULES if "`tests/" not in holds and holds not in (*REASONS, *ELSEWHERE)]
    assert loose == []
    assert [reason for reason in REASONS if not any(reason in holds for _, holds in RULES)] == []
    assert len(RULES) > 100
