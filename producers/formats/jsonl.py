"""Events as JSON lines: a line is a query event or a click event.

A query event is one that has `shown`. Lines are passed on byte for byte.
"""

from collections.abc import Iterator
from pathlib import Path

from producers.formats.event import Event, recognised
from producers.formats.opened import FileUnreadable, lines_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(path: Path) -> Iterator[Event]:
    """The events of a file, plain, gzip or zstd, in its order.

    Raises
    ------
    FileUnreadable
        At the first line that is no event.
    """
    for number, line in lines_of(path):
        try:
            yield recognised(line)
        except ValueError as error:
            if number == 1 and line.startswith(BYTE_ORDER_MARK):
                yield recognised(line.removeprefix(BYTE_ORDER_MARK))
                continue
            raise FileUnreadable(path, number, str(error)) from error
