"""The documentation as its tests see it: pages, their snippets, tables, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
ALL_PAGES = [*PAGES, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md"]

_FENCE = re.compile(r"^```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_SKIPPED = re.compile(r"<!-- not run: (?P<reason>.+?) -->\s*\Z")
_LINK = re.compile(r"\[[^\[\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: where it is, what language it has, and why it is not run, if so."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str | None

    @property
    def id(self) -> str:
        """For people: page and line."""
        return f"{self.page.name}:{self.line}"

    def placed(self) -> str:
        """The code with as many empty lines before it as there are in its page, so that a traceback shows its place."""
        return "\n" * self.line + self.code


def text(page: Path) -> str:
    """The page."""
    return page.read_text("utf-8")


def blocks(page: Path, language: str) -> list[Block]:
    """The fenced blocks of one language."""
    return [block for block in _blocks(page) if block.language == language]


def _blocks(page: Path) -> Iterator[Block]:
    whole = text(page)
    for match in _FENCE.finditer(whole):
        before = whole[: match.start()]
        skipped = _SKIPPED.search(before)
        reason = skipped["reason"] if skipped else None
        yield Block(page, before.count("\n") + 1, match["language"], match["code"], reason)


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", text(page))


def links(page: Path) -> list[str]:
    """Where the page's links lead to."""
    return [match["target"] for match in _LINK.finditer(prose(page))]


def headings(page: Path) -> list[str]:
    """The titles of the page's sections, in order."""
    return [match["title"] for match in _HEADING.finditer(prose(page))]


def anchor(title: str) -> str:
    """The anchor that a heading gets where the page is shown."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(page: Path, title: str) -> str:
    """What stands under a heading, up to the next one of any level."""
    return re.split(rf"^#+ {re.escape(title)}$", text(page), maxsplit=1, flags=re.MULTILINE)[1].partition("\n## ")[0]


def rows(table: str) -> list[list[str]]:
    """The cells of every row of the tables in a text, without heads."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    rules = [place for place, row in enumerate(found) if all(set(cell) <= {"-", ":"} for cell in row)]
    heads = {head for place in rules for head in (place, place - 1)}
    return [row for place, row in enumerate(found) if place not in heads]
