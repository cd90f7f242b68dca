"""Pages: short lines, files that exist, and no words that were replaced."""

import re
from pathlib import Path

import pytest

from rankstream.configuration import malformed

TREE = Path(__file__).parents[1]
PAGES = sorted([*TREE.glob("*.md"), *TREE.glob("docs/**/*.md")])
ROOMS = (
    ".ci",
    "rankstream",
    "models",
    "streams",
    "producers",
    "deploy",
    "docs",
    "tests",
)
MODULES = sorted(path for room in ROOMS for path in (TREE / room).rglob("*.py"))

WIDTH = 100
"""Characters of a line of prose, at most."""

TARGET = re.compile(r"\]\([^)]*\)|<?https?://\S+")
"""Where a link or an image leads: it cannot be wrapped."""

RETIRED = re.compile(
    r"front[ _-]?door|\blessons?\b|\bgiven[ _]out\b|\bcheckpoint_s\b|\bevent=cut\b",
    re.IGNORECASE,
)
"""Replaced by input topics or ingestion, example, published, commit_s, checkpoint."""

FILE = re.compile(r"`((?:[\w.]+/)*\w+\.py)`")
"""A module as pages name it: from the root of the tree, or by the end of its path."""

WRITTEN = re.compile(r"Write\s`(\w+\.py)`:")
"""A program that a tutorial lets its reader write."""

MAY_SAY = {
    TREE / "CHANGELOG.md",  # tells operators what was renamed
    TREE / "tests/streams/kafka/takeover/__main__.py",  # runs an old worker
    TREE / "tests/rankstream/test_settings.py",  # old names of settings are refused
    Path(__file__),
}


def name_of(path: Path) -> str:
    """The path below the tree."""
    return path.relative_to(TREE).as_posix()


def long_lines(text: str) -> list[str]:
    """Lines of prose that are too long, each with its number.

    Rows of tables, blocks of code and targets of links do not count.
    """
    found = []
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("|"):
            length = len(TARGET.sub("]", line))
            if length > WIDTH:
                found.append(f"{number}: {length} characters: {line[:40]}...")
    return found


def retired_words(text: str) -> list[str]:
    """Lines with a word that was replaced, also where it goes over their end."""
    return [
        f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}"
        for match in RETIRED.finditer(text.replace("\n", " "))
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_of_prose_are_short(page: Path) -> None:
    """At most 100 characters."""
    assert long_lines(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_that_are_named_exist(page: Path) -> None:
    """`NAME.py` stands for one that a reader will write; others a page lets write."""
    known = [f"/{name_of(path)}" for path in MODULES]
    text = page.read_text(encoding="utf-8")
    named = set(FILE.findall(text)) - set(WRITTEN.findall(text))
    missing = [
        name
        for name in sorted(named)
        if "NAME" not in name and not any(each.endswith(f"/{name}") for each in known)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_marker_is_one_of_a_transaction(page: Path) -> None:
    """Kafka's own; what a partition goes on from is its resume position."""
    paragraphs = page.read_text(encoding="utf-8").split("\n\n")
    found = [text for text in paragraphs if re.search(r"\bmarkers?\b", text)]
    if page.name != "CHANGELOG.md":
        assert [text for text in found if "transaction" not in text] == []


def test_retired_words_are_gone() -> None:
    """From pages and from code, but for the names that settings refuse."""
    found = {}
    for path in PAGES + MODULES:
        text = path.read_text(encoding="utf-8")
        if path == Path(malformed.__file__):
            for old in malformed.RENAMED:
                text = text.replace(f'"{old}":', "")
        if path not in MAY_SAY and (words := retired_words(text)):
            found[name_of(path)] = words
    assert found == {}


def test_a_long_line_is_found() -> None:
    """In prose, and nowhere else."""
    long = "word " * 21
    link = f"[page]({'x' * 100})"
    text = f"{long}\n| {long} |\n```\n{long}\n```\n* {long}\n{link}\n"
    assert [line.partition(":")[0] for line in long_lines(text)] == ["1", "6"]


@pytest.mark.parametrize(
    "text", ["the Front\ndoor", "`front_door_partitions`", "two lessons", "event=cut p"]
)
def test_a_retired_word_is_found(text: str) -> None:
    """However it is written, and over the end of a line."""
    assert len(retired_words(text)) == 1
