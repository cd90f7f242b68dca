"""Which log a command line names: its files, their features, and how to read them."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from producers.formats.feature_rows import read_feature_rows
from producers.formats.joined_features import FeatureTable
from producers.formats.log_files import LogFiles
from rankstream.adapters.file_formats import FEATURES, FILE_FORMATS
from rankstream.operations.commands.options.files import fields_asked
from rankstream.operations.named_log import (
    TABLES,
    NamedLog,
    is_role,
    parts_of,
    roles_of_part,
)
from rankstream.operations.recorded_log import feature_table
from rankstream.settings import load_settings
from rankstream.wire.nearest_name import suggestion


def has_files(arguments: argparse.Namespace) -> bool:
    """Whether the call names a log in files."""
    return bool(arguments.paths or arguments.queries or arguments.clicks)


def log_asked(arguments: argparse.Namespace) -> LogFiles:
    """The files of the log and their formats, as the call and `[formats]` have them.

    Raises
    ------
    ValueError
        Where the call contradicts itself, or names what there is not.
    FileUnreadable
        Where a file is not there.
    """
    _check_parts(arguments)
    named = NamedLog(
        _lists_paths(arguments),
        arguments.clicks,
        arguments.form,
        dict(_columns(arguments.columns)),
        dict(fields_asked(arguments.format_options)),
        arguments.session_join,
    )
    return named.files(load_settings(arguments.config))


def columns_asked(arguments: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The column of each role that `--columns` names: of all by "", and of parts.

    Raises
    ------
    ValueError
        Where a role is none.
    """
    return parts_of(dict(_columns(arguments.columns)))


def identity_of_log(arguments: argparse.Namespace, log: LogFiles) -> dict[str, Any]:
    """What else makes a replay the same, where a log is more than files of a format."""
    beside = {FEATURES: log.features} if log.features else {}
    if not (log.clicks or log.joins_sessions or arguments.form not in FILE_FORMATS):
        return beside
    parts = [
        [part.form, dict(part.columns), msgspec.to_builtins(part.options)]
        for part in (log.lists, *([log.clicks] if log.clicks else []))
    ]
    told = [parts, dict(log.columns), log.joins_sessions, log.window_ms]
    return {"log": [len(log.lists.files), *told], **beside}


def _lists_paths(arguments: argparse.Namespace) -> list[Path]:
    paths: list[Path] = arguments.queries or arguments.paths
    if not paths:
        raise ValueError(
            "files must be named: FILE, or --queries FILE and --clicks FILE; got none"
        )
    return paths


def _check_parts(arguments: argparse.Namespace) -> None:
    if bool(arguments.queries) != bool(arguments.clicks):
        given, other = (
            ("--queries", "--clicks")
            if arguments.queries
            else ("--clicks", "--queries")
        )
        raise ValueError(
            f"{given} must come with {other}; got {given} alone: name files that hold "
            "both without them"
        )
    if arguments.queries and arguments.paths:
        raise ValueError(
            "files must hold all, or lists and clicks apart; got "
            f"{arguments.paths[0]} beside --queries and --clicks: leave out one"
        )
    if arguments.clicks and getattr(arguments, "as_is", False):
        raise ValueError(
            "--as-is must be left out with --queries and --clicks, between which no "
            "order is given"
        )
    told = (*arguments.columns.split(","), *arguments.format_options)
    for name in TABLES:
        part = next((x for x in told if x.startswith(f"{name}.")), "")
        if part and not arguments.clicks:
            raise ValueError(
                f"{part} must come with --queries and --clicks; got files that hold "
                f"all: leave out {name}."
            )


def _columns(told: str) -> list[tuple[str, str]]:
    """The column of each role that was named."""
    found = []
    for word in filter(None, told.split(",")):
        name, _, column = word.partition("=")
        if not is_role(name) or not column:
            roles, role = roles_of_part(name), name.rpartition(".")[2]
            near = suggestion(role, roles) if column and role not in roles else ""
            raise ValueError(
                f"--columns must be ROLE=COLUMN, with roles of {', '.join(roles)}; "
                f"got {word!r}{near}"
            )
        found.append((name, column))
    return found


def features_asked(arguments: argparse.Namespace, log: LogFiles) -> FeatureTable | None:
    """The table of `--features`, else of columns of its lists; None without either.

    Raises
    ------
    FileUnreadable
        Where a table is not what it must be.
    """
    paths: Sequence[Path] = getattr(arguments, "features", None) or ()
    return feature_table(log, paths, getattr(arguments, "feature_names", ()))


def table_asked(arguments: argparse.Namespace) -> FeatureTable:
    """The table of `--features`, of no log.

    Raises
    ------
    FileUnreadable
        As `features_asked`.
    ValueError
        Where `--columns` names what there is not.
    """
    columns = dict(_columns(arguments.columns))
    names: Sequence[str] = getattr(arguments, "feature_names", ())
    rows = read_feature_rows(arguments.features, columns=columns, names=names)
    return FeatureTable(rows)
