"""What type checkers accept and refuse, and what `inspect` says of wrapped functions."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import loopspan

REPOSITORY = Path(__file__).resolve().parents[1]
ACCEPTED = REPOSITORY / "tests" / "typing" / "decorators.py"


class Wrong(NamedTuple):
    """A wrong use: its last line is the one that is refused, under these names."""

    source: str
    mypy: str
    pyright: str


WRONG = {
    "an argument of another type": Wrong(
        "@loopspan.tool\ndef read(path: str) -> str:\n    return path\n\nread(3)", "arg-type", "reportArgumentType"
    ),
    "an argument that is missing": Wrong(
        "@loopspan.agent_loop(max_steps=3)\ndef work(task: str) -> str:\n    return task\n\nwork()",
        "call-arg",
        "reportCallIssue",
    ),
    "an argument that a method does not take": Wrong(
        "class Agent:\n    @loopspan.model_request\n    def ask(self, prompt: str) -> str:\n        return prompt\n\n"
        "Agent().ask('x', temperature=1)",
        "call-arg",
        "reportCallIssue",
    ),
    "a result that is used as another type": Wrong(
        "@loopspan.tool('count')\ndef count(text: str) -> int:\n    return len(text)\n\nname: str = count('x')",
        "assignment",
        "reportAssignmentType",
    ),
    "a coroutine that is not awaited": Wrong(
        "@loopspan.agent_loop\nasync def work(task: str) -> str:\n    return task\n\ndone: str = work('x')",
        "assignment",
        "reportAssignmentType",
    ),
    "no overload": Wrong(
        "from typing import overload\n\n@overload\ndef double(value: int) -> int: ...\n@overload\n"
        "def double(value: str) -> str: ...\n@loopspan.tool\ndef double(value: int | str) -> int | str:\n"
        "    return value * 2\n\ndouble(b'x')",
        "call-overload",
        "reportArgumentType",
    ),
    "an override of another signature": Wrong(
        "class Base:\n    @loopspan.tool\n    def get(self, name: str) -> str:\n        return name\n\n"
        "class Other(Base):\n    @loopspan.tool\n    def get(self, name: int) -> str: return ''",
        "override",
        "reportIncompatibleMethodOverride",
    ),
    "an option that there is not": Wrong("loopspan.agent_loop(max_stepz=3)", "call-overload", "reportCallIssue"),
    "an option of another type": Wrong("loopspan.tool(retry=3)", "call-overload", "reportArgumentType"),
    "a hook that takes nothing": Wrong(
        "def read() -> loopspan.Answer:\n    return loopspan.Answer()\n\nloopspan.model_request(read=read)",
        "arg-type",
        "reportArgumentType",
    ),
    "a hook that returns something else": Wrong(
        "def which(action: str) -> str:\n    return action\n\nloopspan.tool(call=which)",
        "arg-type",
        "reportArgumentType",
    ),
    "something that is no function": Wrong("loopspan.agent_loop(3)", "call-overload", "reportArgumentType"),
    "a value of another type": Wrong("loopspan.Answer(usage=3)", "arg-type", "reportArgumentType"),
}
"""What both checkers refuse."""

Found = dict[tuple[str, int], str]
"""Codes of errors by file and line."""


# what `inspect` says


def wrapped() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """(name, decorated function, the function itself) of all that the checkers accept."""
    spec = importlib.util.spec_from_file_location("accepted", ACCEPTED)
    module = sys.modules["accepted"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for owner in (module, module.Base, module.Project, module.Box):
        for name, value in vars(owner).items():
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if inspect.isfunction(function) and "loopspan" in function.__code__.co_filename:
                yield name, function, function.__wrapped__


DECORATED = list(wrapped())
FLAGS = [getattr(inspect, name) for name in dir(inspect) if name.startswith("is") and name != "iskeyword"]
"""Every question of `inspect` about an object."""


@pytest.mark.parametrize(("_", "decorated", "original"), DECORATED, ids=[each[0] for each in DECORATED])
def test_inspect_says_of_a_decorated_function_what_it_says_of_the_function(
    _: str, decorated: Callable[..., Any], original: Callable[..., Any]
):
    assert [flag.__name__ for flag in FLAGS if flag(decorated) != flag(original)] == []
    assert inspect.signature(decorated) == inspect.signature(original)
    assert typing.get_type_hints(decorated) == typing.get_type_hints(original)
    assert typing.get_overloads(decorated) == typing.get_overloads(original)
    assert decorated.__doc__ == original.__doc__
    assert inspect.getsource(decorated) == inspect.getsource(original)
    for attribute in ("__name__", "__qualname__", "__module__", "__type_params__"):
        assert getattr(decorated, attribute, None) == getattr(original, attribute, None)


def test_every_kind_of_function_is_among_them():
    functions = [original for _, _, original in DECORATED]
    assert len(functions) > 20
    for is_kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert any(is_kind(function) for function in functions)
    assert any(typing.get_overloads(function) for function in functions)


# what type checkers say


@pytest.fixture(scope="module")
def snippets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each wrong use."""
    folder = tmp_path_factory.mktemp("snippets")
    for number, wrong in enumerate(WRONG.values()):
        (folder / f"wrong_{number}.py").write_text(f"import loopspan\n\n{wrong.source}\n")
    return folder


@pytest.fixture(scope="module")
def by_mypy(snippets: Path) -> Found:
    """What `mypy --strict` says of the snippets and of what it shall accept."""
    files = [*sorted(snippets.glob("*.py")), ACCEPTED]
    command = [sys.executable, "-m", "mypy", "--strict", "--output=json", *map(str, files)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found, done.stdout + done.stderr
    return {(Path(one["file"]).name, one["line"]): one["code"] for one in found if one["severity"] == "error"}


@pytest.fixture(scope="module")
def by_pyright(snippets: Path) -> Found:
    """What pyright, strict, says of the same."""
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "enableTypeIgnoreComments": False}
    include = [".", str(ACCEPTED)]
    paths = [str(Path(loopspan.__file__).parents[1])]
    (snippets / "pyrightconfig.json").write_text(json.dumps({**settings, "include": include, "extraPaths": paths}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(snippets)]
    done = subprocess.run(command, cwd=snippets, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1): one["rule"]
        for one in found
        if one["severity"] == "error"
    }


def refused(found: Found, number: int) -> list[tuple[int, str]]:
    """Lines and codes of the errors in a snippet."""
    return [(line, code) for (file, line), code in found.items() if file == f"wrong_{number}.py"]


@pytest.mark.parametrize("number", range(len(WRONG)), ids=list(WRONG))
def test_mypy_refuses(by_mypy: Found, number: int):
    wrong = list(WRONG.values())[number]
    assert refused(by_mypy, number) == [(wrong.source.count("\n") + 3, wrong.mypy)]


@pytest.mark.parametrize("number", range(len(WRONG)), ids=list(WRONG))
def test_pyright_refuses(by_pyright: Found, number: int):
    wrong = list(WRONG.values())[number]
    assert refused(by_pyright, number) == [(wrong.source.count("\n") + 3, wrong.pyright)]


def test_both_accept_every_kind_of_decorated_function(by_mypy: Found, by_pyright: Found):
    assert [where for where in {**by_mypy, **by_pyright} if where[0] == ACCEPTED.name] == []
