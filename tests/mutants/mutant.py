"""A small fault as the list has it: which line, and what becomes of it.

The line is named by the function that it is in and by its text, so that an entry lives
on where lines move. In the list:

    @ models/bias/trust.py Trust.fit compare
    - if n_clicks < least:
    + if n_clicks <= least:
    = why no test can tell both apart, where none can

A number after the kind says which of several equal lines of the function it is.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("drawn.txt")
"""Where the list lies."""

MODULE = "<module>"
"""The name of what is in no function."""


class NotApplicable(Exception):
    """The tree no longer has the line of an entry."""


class ListUnreadable(ValueError):
    """The list must have entries as this module describes them."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Parameters
    ----------
    path
        From the root of the tree, with slashes.
    within
        The qualified name of the function or class, or `MODULE`.
    kind
        What kind of fault it is; says nothing of where.
    was, now
        The line before and after, without what indents it.
    nth
        Which of the equal lines within it, from 1.
    equivalent
        Why both do the same; "" where tests should see it.
    """

    path: str
    within: str
    kind: str
    was: str
    now: str
    nth: int = 1
    equivalent: str = ""

    @property
    def digest(self) -> str:
        """What tells it from others, wherever its line stands."""
        parts = (self.path, self.within, self.was, self.now, str(self.nth))
        said = "\0".join(parts).encode()
        return hashlib.blake2b(said, digest_size=6).hexdigest()

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.path} {self.within}: `{self.was}` -> `{self.now}`"

    def line_in(self, source: str) -> int:
        """Where its line stands in a source, from 0.

        Raises
        ------
        NotApplicable
            Where it stands there no longer, or in several other places.
        """
        lines = source.splitlines()
        spans = scopes(self.path, source)
        begin, end = spans.get(self.within, (0, len(lines)))
        found = [i for i in range(begin, end) if lines[i].strip() == self.was]
        if self.within not in spans and self.within != MODULE:
            if len(found) == 1:  # what it was in has another name
                return found[0]
        elif len(found) >= self.nth:
            return found[self.nth - 1]
        raise NotApplicable(
            f"the line must stand in the tree; found {len(found)} of `{self.was}` in "
            f"{self.path} {self.within}: draw another entry in its place"
        )

    def applied_to(self, source: str) -> str:
        """The source with this fault.

        Raises
        ------
        NotApplicable
            As `line_in`.
        """
        at = self.line_in(source)
        lines = source.splitlines(keepends=True)
        lines[at] = lines[at].replace(self.was, self.now, 1)
        return "".join(lines)


@lru_cache(maxsize=16)
def scopes(path: str, source: str) -> dict[str, tuple[int, int]]:
    """Where functions and classes are, by qualified name: first line, past the last.

    Lines are counted from 0. Of two of one name the later one counts.
    """
    if path.endswith(".py"):
        return dict(_python_scopes(ast.parse(source), ""))
    return dict(_c_functions(source.splitlines()))


def _python_scopes(node: ast.AST, prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield name, (child.lineno - 1, child.end_lineno or child.lineno)
            yield from _python_scopes(child, f"{name}.")
        elif not isinstance(child, ast.expr):
            yield from _python_scopes(child, prefix)


_C_HEADER = re.compile(r"^[a-z][\w *]*?\**(\w+)\(")


def _c_functions(lines: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Functions whose name begins a line at the margin, as all of ours do."""
    name, begin = "", 0
    for i, line in enumerate(lines):
        header = _C_HEADER.match(line)
        if header is not None:
            name, begin = header[1], i
        elif line.startswith("}") and name:
            yield name, (begin, i + 1)
            name = ""
        elif line and not line[0].isspace() and line[0] not in "{":
            name = ""


def read_list(text: str) -> list[Mutant]:
    """The entries of a list.

    Raises
    ------
    ListUnreadable
        With the number of the line.
    """
    found: list[Mutant] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        try:
            if mark == "@":
                path, within, kind, *nth = rest.split()
                found.append(Mutant(path, within, kind, "", "", int((*nth, "1")[0])))
            elif mark in _FIELDS:
                field: dict[str, Any] = {_FIELDS[mark]: rest}
                found[-1] = replace(found[-1], **field)
            elif line and mark != "#":
                raise ValueError(mark)
        except (ValueError, IndexError) as error:
            raise ListUnreadable(
                "the list must have lines that begin with @, -, + or =, the first of "
                f"an entry with a path, a name and a kind; line {number} is {line!r}: "
                "correct it, or draw the list anew"
            ) from error
    return found


_FIELDS = {"-": "was", "+": "now", "=": "equivalent"}


def list_text(mutants: Iterable[Mutant], heading: str) -> str:
    """The list as it is stored, by path."""
    lines = [f"# {heading}"]
    for one in sorted(mutants, key=lambda one: (one.path, one.within, one.was)):
        nth = f" {one.nth}" if one.nth > 1 else ""
        lines += ["", f"@ {one.path} {one.within} {one.kind}{nth}"]
        lines += [f"- {one.was}", f"+ {one.now}"]
        lines += [f"= {one.equivalent}"] if one.equivalent else []
    return "\n".join(lines) + "\n"
