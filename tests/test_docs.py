"""The documentation is true: its programs run, its links lead somewhere, and it names all that is public."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import documentation as docs
import pytest
from documentation import ALL_PAGES, DOCS, PAGES, REPOSITORY, Block

import loopspan
from loopspan.testing import capture

SNIPPETS = [block for page in ALL_PAGES for block in docs.blocks(page, "python")]
PROCESS_WIDE = ("loopspan.setup(", "set_tracer_provider(", "opentelemetry.instrumentation")
"""What cannot be undone: a snippet with one of these gets a process of its own."""


def own_process(snippet: Block) -> bool:
    """Whether the snippet changes what is process-wide."""
    return any(mark in snippet.code for mark in PROCESS_WIDE)


def runnable(*, apart: bool) -> list[object]:
    """The snippets as parameters of a test; those that are not run are skipped with their reason."""
    return [
        pytest.param(snippet, id=snippet.id, marks=[pytest.mark.skip(snippet.not_run)] if snippet.not_run else [])
        for snippet in SNIPPETS
        if own_process(snippet) == apart
    ]


@pytest.mark.parametrize("snippet", runnable(apart=False))
def test_a_snippet_runs(snippet, request, tmp_path, monkeypatch):
    """Each in a namespace and a folder of its own; its `test_…` functions get the fixtures that they ask for."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documented")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with capture():
        exec(compile(snippet.placed(), snippet.page, "exec", dont_inherit=True), vars(module))
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("test_"):
            function(**{needed: request.getfixturevalue(needed) for needed in inspect.signature(function).parameters})


@pytest.mark.parametrize("snippet", runnable(apart=True))
def test_a_snippet_that_sets_up_a_process_runs(snippet, tmp_path, receiver):
    """In a process and a folder of its own, with a collector on the loopback device."""
    path = os.pathsep.join([str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address}
    (tmp_path / "snippet.py").write_text(snippet.placed(), "utf-8")
    done = subprocess.run(
        [sys.executable, "snippet.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    if "file=" not in snippet.code:
        assert "/v1/traces" in receiver.paths


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page):
    lost = [target for target in docs.links(page) if not target.startswith(("http", "#")) and not _exists(page, target)]
    assert lost == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_to_a_heading_have_one(page):
    lost = []
    for target in docs.links(page):
        file, _, anchor = target.partition("#")
        there = (page.parent / file) if file else page
        if anchor and not target.startswith("http") and anchor not in map(docs.anchor, docs.headings(there)):
            lost.append(target)
    assert lost == []


def _exists(page: Path, target: str) -> bool:
    return (page.parent / target.partition("#")[0]).exists()


def test_every_page_is_reached_from_the_index():
    linked = {target.partition("#")[0] for target in docs.links(DOCS / "index.md")}
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_every_public_name_is_in_the_documentation():
    words = set(re.findall(r"\w+", "\n".join(map(docs.text, PAGES))))
    assert [name for name in loopspan.__all__ if name not in words] == []


def test_make_targets_that_are_named_exist():
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {target for page in ALL_PAGES for target in re.findall(r"(?:`|^)make ([a-z]+)", docs.text(page), re.MULTILINE)}
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_a_fenced_block_says_its_language(page):
    assert [block.id for block in docs.blocks(page, "")] == []


def test_every_row_of_the_decision_table_has_a_program():
    page = DOCS / "wrap-your-loop.md"
    table = docs.rows(docs.text(page).partition("\n## ")[0])
    titles = {docs.anchor(title): title for title in docs.headings(page)}
    lacking = []
    for loop, hook in table:
        anchor = hook.rpartition("(#")[2].rstrip(")")
        if "```python" not in docs.section(page, titles[anchor]):
            lacking.append(loop)
    assert len(table) == len(titles) - 1, "one row for each section"
    assert lacking == []
