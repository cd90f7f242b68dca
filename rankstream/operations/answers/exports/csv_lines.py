"""Lines of CSV that are read back as they were, whatever letters ids have."""

import csv
from collections.abc import Iterable, Sequence

ENDING = "\r\n"
"""Python quotes the letters of its line ends alone: a return is to be among them."""


class _Lines(list[str]):
    """Takes rows one by one, and ends each as files here end lines."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix(ENDING) + "\n")


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    r"""Rows as text; a cell with a quote, a comma or the end of a line is quoted.

    Examples
    --------
    >>> csv_lines([["a", 1], ["b\rc", 2]])
    'a,1\n"b\rc",2\n'
    """
    lines = _Lines()
    csv.writer(lines, lineterminator=ENDING).writerows(rows)
    return "".join(lines)
