"""Rows of CSV with a head, each with as many cells."""

import csv
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path

from producers.formats.source_file import UNPACKING_ERRORS, FileUnreadable

DELIMITERS = ",;\t|"

Head = tuple[list[str], str]
"""Names of the columns, and what separates cells."""


def parted_by(head: str, known: set[str] | None = None) -> Head:
    """The names in a head, by what parts it into most names, or most known ones."""

    def n_parts(delimiter: str) -> int:
        names = _cells(head, delimiter)
        return len(names if known is None else known & {*names})

    delimiter = max(DELIMITERS, key=n_parts)
    return _cells(head, delimiter), delimiter


def _cells(head: str, delimiter: str) -> list[str]:
    return next(csv.reader([head], delimiter=delimiter), [])


def csv_rows(
    path: Path, lines: TextIOWrapper, parted: Callable[[str], Head], remedy: str
) -> Iterator[tuple[int, list[str]]]:
    """The head in line 1, and each row with the line that it ends in.

    Parameters
    ----------
    parted
        The head's names, and what separates cells.
    remedy
        What to do about a row of too few cells, or too many.

    Raises
    ------
    FileUnreadable
    """
    number = 1
    try:
        names, delimiter = parted(lines.readline())
        yield number, names
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for cells in reader:
            number = 1 + reader.line_num
            if not cells:
                continue
            if len(cells) != len(names):
                raise FileUnreadable(
                    path,
                    number,
                    f"a row must have {len(names)} cells, as the head has; got "
                    f"{len(cells)}: {remedy}",
                )
            yield number, cells
    except (*UNPACKING_ERRORS, UnicodeError, csv.Error) as error:
        raise FileUnreadable(
            path, number, f"a file must be readable to its end; {error}"
        ) from error
