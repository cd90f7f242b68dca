"""Which of the known names somebody may have meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The most like of the known names; empty where none is much like it.

    Capitals, dashes and underscores make no difference.

    Examples
    --------
    >>> nearest("impresion", ["impression", "item"])
    'impression'
    >>> nearest("Time-Unit", ["time_unit"])
    'time_unit'
    >>> nearest("colour", ["impression", "item"])
    ''
    """
    by_form = {_form(each): each for each in reversed([*known])}
    found = difflib.get_close_matches(_form(name), by_form, n=1)
    return by_form[found[0]] if found else ""


def meant(name: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or all names that there are, for the end of a sentence."""
    names = [*known]
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"there is {', '.join(names)}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """`: did you mean …?`, or nothing, behind a sentence about another name.

    Examples
    --------
    >>> suggestion("searrch", ["search", "shadow"])
    ': did you mean search?'
    >>> suggestion("search", ["search", "shadow"])
    ''
    """
    names = [*known]
    near = "" if name in names else nearest(name, names)
    return f": did you mean {near}?" if near else ""


def _form(name: str) -> str:
    return name.lower().replace("-", "_")
