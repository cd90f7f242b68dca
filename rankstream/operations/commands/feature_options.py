"""Features that a command is to put beside the lists of a log."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from producers.formats.feature_rows import QUERY, read_feature_rows
from producers.formats.joined_features import FeatureTable
from producers.formats.log_files import LogFiles
from rankstream.adapters.table_roles import FEATURES


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
