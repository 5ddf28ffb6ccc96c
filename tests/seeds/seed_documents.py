"""The code inside the two seed documents, taken out as it stands."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from types import ModuleType
from typing import Any

LOOP = ("seeds", "004_66dbbc9ce8a7ba46.txt")
TERMINUS2 = ("seeds", "000_e085db7759e8029c.txt")
OUTPUT = "# 输出："  # noqa: RUF001  # the colon that the document has
"""How the document says what its program prints."""

_PROGRAM = re.compile(rf"^from __future__ import annotations$.*^{OUTPUT}[^\n]*$", re.MULTILINE | re.DOTALL)
_SOURCE = re.compile(r"^源码\n\n(.*?)\n\nNon-obvious", re.MULTILINE | re.DOTALL)


def program(document: str) -> str:
    """The Python program of the seed on the observable loop."""
    found = _PROGRAM.search(document)
    assert found is not None, "the document has no program"
    return found.group(0)


def promised(source: str) -> list[dict[str, Any]]:
    """What the program's last lines say that it prints."""
    lines = [line.removeprefix(OUTPUT) for line in source.splitlines() if line.startswith(OUTPUT)]
    return [ast.literal_eval(line) for line in lines]


def printed(output: str) -> list[dict[str, Any]]:
    """What a run of the program printed."""
    return [ast.literal_eval(line) for line in output.splitlines()]


def executed(source: str, name: str) -> tuple[ModuleType, str]:
    """The module that `source` makes when it is run as it stands, and what it printed meanwhile."""
    module = ModuleType(name)
    sys.modules[name] = module  # its dataclasses look their own module up
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(source, name, "exec"), module.__dict__)
    return module, output.getvalue()


def fragments(document: str) -> tuple[str, str]:
    """The error branch of the Terminus2 seed and its method that names an answer, indented as in the document."""
    branch, method = _SOURCE.findall(document)
    return branch, method
