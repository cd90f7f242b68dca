"""Pages as the site has them: those of the tree, linked, and those made of the code.

Pages name others as they lie in the tree, in backticks, for whoever reads them there.
On the site such a name is a link with the title of the page.
"""

import posixpath
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from docs.notebook_page import page_of
from docs.reference import (
    api,
    commands,
    http,
    metrics,
    results,
    schemas,
    settings,
)

TREE = Path(__file__).parents[1]

FROM_ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "producers/typescript/README.md": "typescript.md",
}
"""Pages that lie outside `docs/`: where, and where the site has them."""

FOLDERS = {"docs/contract/": "docs/contract/README.md"}
"""Folders as pages name them, and the page of each."""

MADE: Mapping[str, Callable[[], str]] = {
    "settings.md": settings.page,
    "reference/commands.md": commands.page,
    "reference/results.md": results.page,
    "reference/schemas.md": schemas.page,
    "reference/metrics.md": metrics.page,
    "reference/http.md": http.page,
    "reference/api.md": api.page,
}
"""Pages that are made of the code."""

COPIED = ("*.svg", "*.csv", "*.png", "*.css", "contract/**/*.json")
"""Files beside the pages that these show or link."""

_NAMED = re.compile(r"(?<![\[`])`([\w./-]+\.(?:md|ipynb)|docs/contract/)`(?!\])")
_TARGET = re.compile(r"(\]\()([^)#:\s]+)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Page(NamedTuple):
    """Where the site has a page, and what it is called."""

    place: str
    title: str


def stage(target: Path) -> None:
    """Write all pages, and what they show, into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    places = dict(_pages())
    texts = {source: _text_of(source, place) for source, place in places.items()}
    named = {
        source: Page(place, _title_of(texts[source]))
        for source, place in places.items()
    }
    named |= {folder: named[page] for folder, page in FOLDERS.items()}
    for source, place in places.items():
        _write(target / place, linked(texts[source], source, named))
    for pattern in COPIED:
        for file in sorted((TREE / "docs").glob(pattern)):
            copy = target / file.relative_to(TREE / "docs")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def _pages() -> Iterator[tuple[str, str]]:
    """Where each page lies in the tree, and where the site has it."""
    yield from FROM_ELSEWHERE.items()
    written = {
        page.relative_to(TREE / "docs").as_posix()
        for page in (TREE / "docs").glob("**/*.md")
    }
    for place in sorted(written | MADE.keys()):
        yield f"docs/{place}", place
    for notebook in sorted((TREE / "docs").glob("**/*.ipynb")):
        source = notebook.relative_to(TREE).as_posix()
        yield source, source.removeprefix("docs/").replace(".ipynb", ".md")


def _text_of(source: str, place: str) -> str:
    if make := MADE.get(place):
        return make()
    text = (TREE / source).read_text(encoding="utf-8")
    return page_of(text) if source.endswith(".ipynb") else text


def _title_of(text: str) -> str:
    return text.partition("# ")[2].partition("\n")[0]


def linked(text: str, source: str, pages: Mapping[str, Page]) -> str:
    """The text of a page with its links, and names of pages as links.

    Parameters
    ----------
    source
        Where the page lies in the tree.
    pages
        All pages, by where they lie in the tree.

    Examples
    --------
    >>> pages = {"README.md": Page("index.md", "A"), "docs/b/c.md": Page("b/c.md", "C")}
    >>> linked("see `docs/b/c.md`, [c](docs/b/c.md)", "README.md", pages)
    'see [C](b/c.md), [c](b/c.md)'
    >>> linked("see `README.md`", "docs/b/c.md", pages)
    'see [A](../index.md)'
    """
    folder = posixpath.dirname(pages[source].place)

    def to(place: str) -> str:
        return posixpath.relpath(place, folder or ".")

    def named(found: re.Match[str]) -> str:
        page = pages.get(found[1])
        return f"[{page.title}]({to(page.place)})" if page else found[0]

    def moved(found: re.Match[str]) -> str:
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        page = pages.get(meant)
        return found[1] + to(page.place if page else meant.removeprefix("docs/"))

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], named, moved), fence[0]]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], named, moved)])


def _prose(
    text: str,
    named: Callable[[re.Match[str]], str],
    moved: Callable[[re.Match[str]], str],
) -> str:
    lines = (
        line if line.startswith("    ") else _NAMED.sub(named, _TARGET.sub(moved, line))
        for line in text.splitlines(keepends=True)
    )
    return "".join(lines)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
