"""Names of users as pictures show them: one line each, no longer than there is room."""

import textwrap

from rich.cells import cell_len

from rankstream.operations.terminal.words import visible

LONGEST = 36
"""Columns of a name; a longer one loses its middle."""

DOTS = "…"


def label_of(name: str, longest: int = LONGEST) -> str:
    r"""A name without what cannot be seen, its middle left out where it is long.

    Examples
    --------
    >>> label_of("red\nshoes"), label_of("0123456789abcdef", 9)
    ('red\\nshoes', '01234…def')
    """
    text = visible(name)
    if cell_len(text) <= longest:
        return text
    last = (longest - 1) * 2 // 5
    return _beginning(text, longest - 1 - last) + DOTS + _ending(text, last)


def wrapped(text: str, width: int) -> str:
    """A sentence on lines of no more than so many columns."""
    return "\n".join(textwrap.wrap(visible(text), width, break_on_hyphens=False))


def _beginning(text: str, width: int) -> str:
    end = 0
    while cell_len(text[: end + 1]) <= width:
        end += 1
    return text[:end]


def _ending(text: str, width: int) -> str:
    return _beginning(text[::-1], width)[::-1]
