"""Options that several commands take: files of events, and how they are read."""

import argparse
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from producers.formats.log_files import CLICK_FILES, QUERY_FILES
from producers.formats.yandex_sessions import EPOCH_MS
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.file_formats import AUTO, FILE_FORMATS, ROLES
from rankstream.adapters.registry import options_of

_YES_OR_NO = {"true": True, "false": False}


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare files of events, and how they are to be read."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="a file, or a folder of them, with lists and clicks",
    )
    add_format(parser)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare how files of events are to be read."""
    parser.add_argument(
        "--format",
        default=AUTO,
        dest="form",
        metavar="NAME",
        help=f"one of {', '.join(FILE_FORMATS)}, or [formats.NAME] of the settings; "
        "queries=NAME,clicks=NAME where files differ (default: auto)",
    )
    add_option(parser)
    add_columns(parser)
    for name, what in ((QUERY_FILES, "lists"), (CLICK_FILES, "clicks")):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            default=[],
            type=Path,
            metavar="FILE",
            help=f"files with {what} alone, of a log that has both apart "
            "(docs/events.md)",
        )
    parser.add_argument(
        "--session-join",
        action="store_true",
        help="clicks find their lists by session, query and time, not by the list's id",
    )


def add_folded_format(parser: argparse.ArgumentParser) -> None:
    """Declare how files of events are to be read that a command folds in process."""
    add_format(parser)
    add_epoch(parser)
    add_features(parser)
    parser.set_defaults(memory_mb=256, scratch=None, as_is=False, pass_bad_lines=False)


def add_epoch(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--epoch-ms",
        type=int,
        default=EPOCH_MS,
        metavar="MS",
        help="time zero of formats that do not say it (default: 2020-01-01 UTC)",
    )


def add_sorting(parser: argparse.ArgumentParser) -> None:
    """Declare where events are sorted by time."""
    parser.add_argument(
        "--memory-mb",
        type=int,
        default=256,
        metavar="MB",
        help="memory for sorting; more is sorted on disk (default 256)",
    )
    parser.add_argument(
        "--scratch", type=Path, metavar="DIR", help="where to sort on disk"
    )


def add_batch(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="events in one record (default 1)",
    )


def add_features(parser: argparse.ArgumentParser) -> None:
    """Declare features of items, in files beside the log."""
    parser.add_argument(
        "--features",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="features of items, which are put beside lists that have none: CSV, "
        "Parquet, JSON lines or LETOR with a row for each item, or for each query and "
        "item; --columns names those of query and item as in the log, and features=A+B "
        "or features=PREFIX* which columns are features (default: all of numbers). "
        "Without --features, features=... are columns of the log itself",
    )


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


class _Added(argparse.Action):
    """Adds to what was given before."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Given once more."""
        del parser, option_string
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before},{values}" if before else values)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Declare the columns of a table."""
    parser.add_argument(
        "--columns",
        action=_Added,
        default="",
        metavar="ROLE=COLUMN,...",
        help=f"columns of tables; roles: {', '.join(ROLES)}; of one of two tables "
        "queries.ROLE or clicks.ROLE; may be given more than once",
    )


def options_asked(arguments: argparse.Namespace) -> AdapterOptions:
    """What the command line says of it.

    Raises
    ------
    ValueError
        Where an option is unknown, or its value cannot be what it is.
    """
    return options_of(dict(fields_asked(arguments.format_options)))


def fields_asked(words: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """Each `NAME=VALUE`, its value as a settings file would have it.

    Raises
    ------
    ValueError
        Where one has no value.
    """
    types = typing.get_type_hints(AdapterOptions)
    for word in words:
        name, mark, text = word.partition("=")
        if not mark:
            raise ValueError(f"--option must be NAME=VALUE; got {word!r}")
        yield name, _value(text, types.get(name.rpartition(".")[2]))


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
