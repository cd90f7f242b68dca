"""Tables and words in Markdown."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"(?<![\w\\])[*_]|[*_](?!\w)")


def escaped(text: str) -> str:
    r"""Text that means nothing to Markdown or HTML, but for what stands in backticks.

    Examples
    --------
    >>> escaped("`a*b` *every* <topic>")
    '`a*b` \\*every\\* &lt;topic&gt;'
    """
    parts = _CODE.split(text)
    for place in range(0, len(parts), 2):
        plain = parts[place].replace("<", "&lt;").replace(">", "&gt;")
        parts[place] = _SPECIAL.sub(lambda found: "\\" + found[0], plain)
    return "".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table; columns in which no row says anything are left out.

    Examples
    --------
    >>> print(table(["a", "b", "c"], [["1", "", "x|y"]]), end="")
    | a | c |
    |---|---|
    | 1 | x\|y |
    """
    kept = [[" ".join(cell.split()) for cell in row] for row in rows]
    columns = [n for n in range(len(head)) if n == 0 or any(row[n] for row in kept)]
    lines = [[head[n] for n in columns]]
    lines += [[row[n].replace("|", "\\|") for n in columns] for row in kept]
    written = [f"| {' | '.join(line)} |" for line in lines]
    written.insert(1, "|" + "---|" * len(columns))
    return "\n".join(written) + "\n"


def code(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"
