"""Docstrings in numpy's form as Markdown."""

import inspect
import re
from collections.abc import Iterator

from docs.reference.markdown import code, escaped

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)

LISTED = frozenset({"Parameters", "Attributes", "Raises", "Returns", "Yields"})
"""Sections of entries: a line that names them, and lines below that are indented."""


def markdown_of(docstring: str | None) -> str:
    """A docstring with its sections.

    Examples
    --------
    >>> print(markdown_of('''What it is.
    ...
    ... Parameters
    ... ----------
    ... weights : [n_clicks]
    ...     Each in (0, 1].
    ... '''))
    What it is.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    * `weights` : [n_clicks]. Each in (0, 1].
    <BLANKLINE>
    """
    text = inspect.cleandoc(docstring or "")
    body, *sections = _SECTION.split(text)
    parts = [_paragraphs(body.strip())]
    for name, content in zip(sections[::2], sections[1::2], strict=True):
        parts.append(f"**{name}**\n")
        parts.append(_section(name, content))
    return "\n".join(parts)


def _section(name: str, content: str) -> str:
    if name == "Examples":
        return code(inspect.cleandoc(content), "pycon")
    entries = [*_entries(content)]
    if name not in LISTED or not any(below for _, below in entries):
        return escaped(" ".join(content.split())) + "\n"
    return "\n".join(_entry(*entry) for entry in entries) + "\n"


def _entry(head: str, below: str) -> str:
    named, separator, kind = head.partition(" : ")
    names = ", ".join(f"`{each}`" for each in named.split(", "))
    shape = f"{separator}{escaped(kind)}" if kind else ""
    return f"* {names}{shape}. {escaped(below)}".rstrip()


def _entries(content: str) -> Iterator[tuple[str, str]]:
    head, below = "", ""
    for line in content.splitlines():
        if line.startswith(" ") or not line:
            below += f" {line.strip()}"
            continue
        if head:
            yield head, " ".join(below.split())
        head, below = line, ""
    if head:
        yield head, " ".join(below.split())


def _paragraphs(text: str) -> str:
    """Prose escaped; what is indented is code, and stays as it is."""
    return "\n".join(
        line if line.startswith("    ") else escaped(line) for line in text.splitlines()
    ) + "\n" * bool(text)
