"""The programs of the documentation run, its links lead somewhere, and it names all that is public."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import types

import pytest

import documentation as docs
import loopspan
from documentation import ALL_PAGES, DOCS, PAGES, REPOSITORY, Block
from loopspan.cli._app import app
from loopspan.testing import capture
from receiver import Receiver

SNIPPETS = [block for page in ALL_PAGES for block in docs.blocks(page, "python")]
PROCESS_WIDE = ("loopspan.setup(", "set_tracer_provider(")
"""What cannot be undone: a program with one of these gets a process of its own."""


def own_process(snippet: Block) -> bool:
    """Whether the program changes what is process-wide."""
    return any(mark in snippet.code for mark in PROCESS_WIDE)


def runnable(*, apart: bool) -> list[object]:
    """The programs as parameters of a test; those that are not run are skipped with their reason."""
    return [
        pytest.param(snippet, id=snippet.id, marks=[pytest.mark.skip(snippet.not_run)] if snippet.not_run else [])
        for snippet in SNIPPETS
        if own_process(snippet) == apart
    ]


@pytest.fixture
def process(tmp_path):
    """`process(*arguments)` runs Python in a folder of its own, with a collector on the loopback device."""
    path = os.pathsep.join([str(REPOSITORY / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **environment}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, encoding="utf-8", timeout=120, check=False
        )

    return run


@pytest.mark.parametrize("snippet", runnable(apart=False))
def test_a_program_runs(snippet, request, tmp_path, monkeypatch):
    """In a namespace and a folder of its own; `test_…` functions in it get the fixtures that they ask for."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documented")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with capture():
        exec(compile(snippet.placed(), snippet.page, "exec", dont_inherit=True), vars(module))
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("test_"):
            function(**{needed: request.getfixturevalue(needed) for needed in inspect.signature(function).parameters})


@pytest.mark.parametrize("snippet", runnable(apart=True))
def test_a_program_that_sets_up_its_process_runs(snippet, process):
    """It prints no error, and where it exports to an endpoint, the spans get there."""
    with Receiver() as receiver:
        done = process("-c", snippet.placed(), OTEL_EXPORTER_OTLP_ENDPOINT=receiver.address)
    assert (done.returncode, done.stderr) == (0, "")
    exported = "loopspan.setup(" in snippet.code and "file=" not in snippet.code
    assert ("/v1/traces" in receiver.paths) == exported


def test_most_programs_are_run():
    assert len(SNIPPETS) > 60
    assert [snippet.id for snippet in SNIPPETS if snippet.not_run] == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page):
    lost = []
    for target in docs.links(page):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        if target.startswith("http"):
            continue
        if not there.exists() or (anchor and anchor not in map(docs.anchor, docs.headings(there))):
            lost.append(target)
    assert lost == []


def test_every_page_is_reached_from_the_index():
    linked = {target.partition("#")[0] for target in docs.links(DOCS / "index.md")}
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_every_public_name_is_in_the_documentation():
    words = set(re.findall(r"\w+", "\n".join(map(docs.text, PAGES))))
    assert [name for name in loopspan.__all__ if name not in words] == []


def test_make_targets_that_are_named_exist():
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {
        name for page in ALL_PAGES for name in re.findall(r"(?:`|^\$ )make ([a-z]+)", docs.text(page), re.MULTILINE)
    }
    assert {"demo", "test"} <= named <= targets


def test_commands_that_are_named_exist():
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    named = {
        name for page in PAGES for name in re.findall(r"(?:`|^\$ )loopspan ([a-z]+)", docs.text(page), re.MULTILINE)
    }
    assert {"show", "demo"} <= named <= commands


def test_files_that_are_named_exist():
    named = {name for page in ALL_PAGES for name in re.findall(r"`((?:src|docs|tests)/[\w/]+\.\w+)`", docs.text(page))}
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
    assert len(named) > 15


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_every_fenced_block_says_its_language(page):
    assert [block.id for block in docs.blocks(page, "")] == []


def test_every_row_of_the_decision_table_has_a_program():
    page = DOCS / "wrap-your-loop.md"
    titles = {docs.anchor(title): title for title in docs.headings(page)[1:]}
    table = docs.rows(docs.text(page).partition("\n## ")[0])
    anchors = [hook.rpartition("(#")[2].rstrip(")") for _, hook in table]
    assert anchors == list(titles), "a section for each row, in the order of the table"
    assert [anchor for anchor in anchors if "```python" not in docs.section(page, titles[anchor])] == []


def test_the_example_of_the_readme_shows_the_tree_beside_it(process):
    """But for times and the run's id."""
    readme = REPOSITORY / "README.md"
    (example,) = [block for block in docs.blocks(readme, "python") if "spans.jsonl" in block.code]
    (tree,) = docs.blocks(readme, "text")
    assert process("-c", example.code).returncode == 0
    shown = process("-c", "from loopspan.cli import main; main()", "show", "spans.jsonl")
    assert timeless(shown.stdout) == timeless(tree.code)


def timeless(tree: str) -> str:
    """A tree without durations and ids."""
    return re.sub(r"[\d.]+ (ms|s)\b|\b[0-9a-f]{12}\b", "…", tree)
