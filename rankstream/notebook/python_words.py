"""What commands say, in words of a notebook: arguments instead of options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from producers.formats.joined import NothingJoined
from producers.formats.source_file import FileUnreadable

_WORDS = (
    (r"model\.toml has them, to be changed with --config", "parameters change them"),
    (r"`rankstream validate` says why", "no row is a list"),
    (r"--session-join", "session_join=True"),
    (r"--queries and --clicks", "clicks="),
    (r"--examination", "examination=[1.0, 0.6, ...]"),
    (r"--features FILE", "features="),
    (r"--([a-z]+)(?![\w-])", r"\1="),
    (r"items=COLUMN where", 'columns={"items": "COLUMN"} where'),
)

_NAMED = {"--columns": "columns", "--option": "options"}
_PAIRS = re.compile(r"(--columns|--option) ([\w.]+=[^\s:;,?]+(?:,[\w.]+=[^\s:;,?]+)*)")


def in_python(words: str) -> str:
    """The same sentence for somebody who types Python.

    Examples
    --------
    >>> in_python("name it with --columns item=sku, or with --clicks")
    'name it with columns={"item": "sku"}, or with clicks='
    >>> in_python("with --columns queries.at=COLUMN,clicks.at=COLUMN")
    'with columns={"queries.at": "COLUMN", "clicks.at": "COLUMN"}'
    >>> in_python("set --option clicks.time_unit=s; nothing was sent")
    'set options={"clicks.time_unit": "s"}; nothing was sent'
    """
    words = _PAIRS.sub(_as_dictionary, words)
    for pattern, words_of_python in _WORDS:
        words = re.sub(pattern, words_of_python, words)
    return words


def _as_dictionary(found: re.Match[str]) -> str:
    pairs = (pair.partition("=") for pair in found[2].split(","))
    told = ", ".join(f'"{name}": "{value}"' for name, _, value in pairs)
    return f"{_NAMED[found[1]]}={{{told}}}"


@contextmanager
def told_in_python(named: dict[str, str]) -> Iterator[None]:
    """Refuse a log in words of Python.

    Parameters
    ----------
    named
        What files are called that nobody named.

    Raises
    ------
    ValueError
    """
    try:
        yield
    except (FileUnreadable, NothingJoined) as error:
        words = in_python(str(error))
        for path, name in named.items():
            words = words.replace(path, name)
        raise ValueError(words) from None
