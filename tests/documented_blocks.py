"""Blocks of code on pages: what they are, and why one is not run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).parents[1]

NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
"""On the line above a block: the reason why no test runs it."""

FILE = re.compile(r"`([\w.-]+)`:$")
"""At the end of the paragraph above a block: the file that it is."""

CODE = " " * 4

BORDERS = re.compile(r"[│┃├└┌╭╰╮╯─━┏┓┗┛┡┩╇┼┬┴╞╡═\s]+")


def bare(text: str) -> str:
    """Words and figures of what was printed, without borders and line ends."""
    return BORDERS.sub(" ", text).strip()


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes
    ----------
    page
        Below the tree.
    language
        As the fence names it; "" where it names none, or there is no fence.
    is_fenced
        Blocks that are only indented show commands; none is run.
    reason
        Why it is not run; "" where it is.
    file
        The name of the file that it is; "" of none.
    """

    page: str
    line: int
    language: str
    text: str
    is_fenced: bool
    reason: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        """For names of tests, and for tracebacks."""
        return f"{self.page}:{self.line}"

    def commands(self) -> list[list[str]]:
        """Words of each line that is a command, joined where it goes on."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.split(line, comments=True) for line in lines if line.strip()]


def blocks_of(page: str, text: str | None = None) -> list[Block]:
    """All blocks of a page, in their order.

    Parameters
    ----------
    text
        Of the page, if it is not the one in the tree.
    """
    if text is None:
        text = (TREE / page).read_text(encoding="utf-8")
    return [*_blocks(page, text.splitlines())]


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        is_fence = lines[at].startswith("```")
        before = lines[at - 1] if at else ""
        if is_fence:
            end = next(n for n in range(at + 1, len(lines)) if lines[n] == "```")
            text = "\n".join(lines[at + 1 : end]) + "\n"
            named = NOT_RUN.match(before)
            paragraph = next((x for x in reversed(lines[:at]) if x and x != before), "")
            file = FILE.search(before or paragraph)
            yield Block(
                page,
                at + 1,
                lines[at][3:].strip(),
                text,
                is_fenced=True,
                reason=named[1] if named else "",
                file=file[1] if file else "",
            )
            at = end
        elif lines[at].startswith(CODE) and not before:
            end = at
            while end < len(lines) and (not lines[end] or lines[end].startswith(CODE)):
                end += 1
            text = "\n".join(line[len(CODE) :] for line in lines[at:end]) + "\n"
            yield Block(page, at + 1, "", text, is_fenced=False)
            at = end - 1
        at += 1


def pages() -> list[str]:
    """All pages whose blocks readers copy."""
    found = [TREE / "README.md", TREE / "CONTRIBUTING.md", *TREE.glob("docs/**/*.md")]
    return sorted(path.relative_to(TREE).as_posix() for path in found)
