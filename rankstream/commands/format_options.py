"""`--option NAME=VALUE`: how documents of other systems are to be read."""

import argparse
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from producers.formats.columns import ROLES
from producers.formats.registry import AUTO, FORMATS
from producers.formats.yandex_sessions import EPOCH_MS
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.registry import options_of

_YES_OR_NO = {"true": True, "false": False}


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare files of events, and how they are to be read."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a file, or a folder of them",
    )
    add_format(parser)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare how files of events are to be read."""
    parser.add_argument("--format", choices=FORMATS, default=AUTO, dest="form")
    add_option(parser)
    add_columns(parser)


def add_folded_format(parser: argparse.ArgumentParser) -> None:
    """Declare how files of events are to be read that a command folds in process."""
    add_format(parser)
    parser.add_argument(
        "--epoch-ms",
        type=int,
        default=EPOCH_MS,
        metavar="MS",
        help="time zero of formats that do not say it (default: 2020-01-01 UTC)",
    )
    parser.set_defaults(memory_mb=256, scratch=None, as_is=False, pass_bad_lines=False)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare it."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="format_options",
        help="of a format of another system, such as ordinal_base=0 or "
        "actions=click,purchase (docs/adapters.md); may be given more than once",
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Declare the columns of a table."""
    parser.add_argument(
        "--columns",
        default="",
        metavar="ROLE=COLUMN,...",
        help=f"columns of a table of shown items; roles: {', '.join(ROLES)}",
    )


def columns_asked(arguments: argparse.Namespace) -> dict[str, str]:
    """The column of each role that was named.

    Raises
    ------
    ValueError
        Where there is no such role.
    """
    found = {}
    for word in filter(None, arguments.columns.split(",")):
        role, _, column = word.partition("=")
        if role not in ROLES or not column:
            raise ValueError(
                f"--columns must be ROLE=COLUMN, with roles of {', '.join(ROLES)}; "
                f"got {word!r}"
            )
        found[role] = column
    return found


def options_asked(arguments: argparse.Namespace) -> AdapterOptions:
    """What the command line says of it.

    Raises
    ------
    ValueError
        Where an option is unknown, or its value cannot be what it is.
    """
    return options_of(dict(_fields(arguments.format_options)))


def _fields(words: Iterable[str]) -> Iterable[tuple[str, Any]]:
    types = typing.get_type_hints(AdapterOptions)
    for word in words:
        name, mark, text = word.partition("=")
        if not mark:
            raise ValueError(f"--option must be NAME=VALUE; got {word!r}")
        yield name, _value(text, types.get(name))


def _value(text: str, kind: Any) -> Any:
    """As a settings file would have it."""
    if typing.get_origin(kind) is tuple:
        return [part for part in text.split(",") if part]
    if kind is bool:
        return _YES_OR_NO.get(text, text)
    # Only numbers are whole; a model's name may be one.
    is_choice = typing.get_origin(kind) is typing.Literal
    is_number = (is_choice or kind is int) and text.isdecimal()
    return int(text) if is_number else text
