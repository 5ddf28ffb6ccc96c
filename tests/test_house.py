"""The shape of the source tree: short functions, small modules, one place for names, a namespace that is meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import loopspan

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = {path.relative_to(SOURCE): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
OUTSIDE_NAME = re.compile(r"^(loopspan|gen_ai)\.(?!_)([a-z0-9_]|\.(?!_))*$")  # `._` is only in the path of a module
LOGGERS: frozenset[str] = frozenset()


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring; decorators do not count."""
    docstring = ast.get_docstring(function, clean=False)
    return function.end_lineno - function.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)


def functions() -> list[tuple[int, str]]:
    """Every function with its size, the shortest first."""
    return sorted(
        (lines(node), f"{path}:{node.lineno} {node.name}")
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTION)
    )


def literals(tree: ast.Module) -> Iterator[ast.Constant]:
    """Every string constant of a module that is not a docstring or another bare expression."""
    bare = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in bare:
            yield node


def test_functions_are_short_on_average():
    sizes = [size for size, _ in functions()]
    assert sum(sizes) / len(sizes) <= 10


def test_nearly_all_functions_have_at_most_30_lines():
    found = functions()
    place = int(0.95 * (len(found) - 1))
    assert found[place][0] <= 30, found[place:]


def test_no_function_has_more_than_50_lines():
    assert [found for found in functions() if found[0] > 50] == []


def test_no_module_has_more_than_350_lines():
    sizes = [((SOURCE / path).read_text("utf-8").count("\n"), str(path)) for path in MODULES]
    assert [found for found in sizes if found[0] > 350] == []


def test_every_module_opens_with_a_docstring():
    assert [str(path) for path, tree in MODULES.items() if not ast.get_docstring(tree)] == []


def test_names_that_leave_the_process_are_written_in_semconv_only():
    found = [
        f"{path}:{node.lineno} {node.value}"
        for path, tree in MODULES.items()
        if path != Path("loopspan/semconv.py")
        for node in literals(tree)
        if OUTSIDE_NAME.match(node.value) and node.value not in LOGGERS
    ]
    assert found == []


def test_all_is_what_is_visible_in_the_namespace():
    visible = {
        name
        for name in {*vars(loopspan), *dir(loopspan)}
        if not name.startswith("_") and not isinstance(getattr(loopspan, name), ModuleType)
    } - {"annotations"}  # left by the import from __future__
    assert set(loopspan.__all__) == visible


def test_all_is_sorted():
    assert loopspan.__all__ == sorted(loopspan.__all__)
