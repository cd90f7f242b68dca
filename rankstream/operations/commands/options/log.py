"""Which log a command line names: its files, their features, and how to read them."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from producers.formats.feature_rows import QUERY, read_feature_rows
from producers.formats.joined_features import FeatureTable
from producers.formats.log_files import (
    CLICK_FILES,
    QUERY_FILES,
    FilesOfAForm,
    LogFiles,
)
from producers.formats.registry import files_of
from rankstream.adapters.file_formats import (
    AUTO,
    CLICKS,
    FEATURES,
    FILE_FORMATS,
    LISTS,
    ROLES,
    roles_of,
)
from rankstream.adapters.registry import options_of
from rankstream.operations.commands.options.files import fields_asked, parts_of
from rankstream.settings import FormatSettings, TableSettings, load_settings
from rankstream.wire.nearest_name import suggestion

TABLES = {QUERY_FILES: LISTS, CLICK_FILES: CLICKS}


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
    settings = load_settings(arguments.config)
    base, forms = _format(arguments.form, settings.formats)
    columns = columns_asked(arguments)
    options = parts_of(fields_asked(arguments.format_options))

    def files_of_part(name: str, paths: list[Path]) -> FilesOfAForm:
        part = forms.get(name, TableSettings())
        given = {**options[""], **options[name]}
        return FilesOfAForm(
            files_of(paths),
            part.format or base.format,
            _without_features({**part.columns, **columns[name]}),
            options_of({**base.options, **part.options, **given}),
        )

    has_parts = bool(arguments.clicks)
    lists = QUERY_FILES if has_parts else ""
    features: dict[str, str] = {
        **base.columns,
        **columns[""],
        **forms.get(lists, TableSettings()).columns,
        **columns[lists],
    }
    return LogFiles(
        files_of_part(lists, _lists_paths(arguments)),
        files_of_part(CLICK_FILES, arguments.clicks) if has_parts else None,
        _without_features({**base.columns, **columns[""]}),
        arguments.session_join or base.session_join,
        settings.time.click_window_ms,
        features.get(FEATURES, ""),
    )


def columns_asked(arguments: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The column of each role that `--columns` names: of all by "", and of parts.

    Raises
    ------
    ValueError
        Where a role is none.
    """
    return parts_of(_columns(arguments.columns))


def _without_features(columns: Mapping[str, str]) -> dict[str, str]:
    return {role: name for role, name in columns.items() if role != FEATURES}


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


def _format(
    asked: str, formats: Mapping[str, FormatSettings]
) -> tuple[FormatSettings, dict[str, TableSettings]]:
    """What is said of the log, and of its parts by their names."""
    if "=" not in asked:
        base = _named(asked, formats)
        return base, {QUERY_FILES: base.queries, CLICK_FILES: base.clicks}
    found: dict[str, TableSettings] = {}
    for word in asked.split(","):
        name, _, form = word.partition("=")
        if name not in TABLES:
            raise ValueError(
                "--format must be a name, or queries=NAME,clicks=NAME; got "
                f"{word!r}{suggestion(name, TABLES)}"
            )
        found[name] = _named(form, formats)
    return FormatSettings(format=AUTO), found


def _named(name: str, formats: Mapping[str, FormatSettings]) -> FormatSettings:
    if name in formats:
        told = formats[name]
        form = told.format or AUTO
        return msgspec.structs.replace(told, format=form)
    if name not in FILE_FORMATS:
        known = (*FILE_FORMATS, *formats)
        raise ValueError(
            f"--format must be one of {', '.join(known)}, or [formats.NAME] of the "
            f"settings; got {name!r}{suggestion(name, known)}"
        )
    return FormatSettings(format=name)


def _columns(told: str) -> list[tuple[str, str]]:
    """The column of each role that was named."""
    found = []
    for word in filter(None, told.split(",")):
        name, _, column = word.partition("=")
        part, mark, role = name.rpartition(".")
        roles = ROLES
        if part in TABLES:
            roles = tuple(each.name for each in roles_of(TABLES[part]))
        if (mark and part not in TABLES) or role not in roles or not column:
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
    paths: Sequence[Path] | None = getattr(arguments, "features", None)
    names: Sequence[str] = getattr(arguments, "feature_names", ())
    columns = {**log.columns, **log.lists.columns}
    keys = _keys(columns, log.features)
    if paths:
        return FeatureTable(read_feature_rows(paths, columns=keys, names=names))
    if not log.features:
        return None
    # A list without a query is one of its own.
    lists = columns.get("impression", "impression"), "impression_id"
    rows = read_feature_rows(
        log.lists.files, columns=keys, names=names, queries=(*QUERY, *lists)
    )
    return FeatureTable(rows)


def _keys(columns: Mapping[str, str], features: str) -> dict[str, str]:
    keys = {role: columns[role] for role in ("query", "item") if role in columns}
    return {**keys, FEATURES: features} if features else keys


def names_of(table: FeatureTable | None) -> dict[bytes, list[str]]:
    """Names of the features by the hash of their list."""
    return {} if table is None else {table.list_hash: table.rows.names}
