"""Features that a command is to put beside the lists of a log."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from producers.formats.feature_rows import QUERY, read_feature_rows
from producers.formats.joined_features import FeatureTable
from rankstream.adapters.table_roles import FEATURES


def features_asked(
    arguments: argparse.Namespace, columns: Mapping[str, str], files: Sequence[Path]
) -> FeatureTable | None:
    """The table of `--features`, else of columns of the log; None without either.

    Parameters
    ----------
    columns
        Those of `--columns`, by role.
    files
        Of the log.

    Raises
    ------
    FileUnreadable
        Where a table is not what it must be.
    """
    paths: Sequence[Path] | None = getattr(arguments, "features", None)
    names: Sequence[str] = getattr(arguments, "feature_names", ())
    if paths:
        rows = read_feature_rows(paths, columns=_keys(columns), names=names)
        return FeatureTable(rows)
    if FEATURES not in columns:
        return None
    # A list without a query is one of its own.
    lists = columns.get("impression", "impression"), "impression_id"
    rows = read_feature_rows(
        files, columns=_keys(columns), names=names, queries=(*QUERY, *lists)
    )
    return FeatureTable(rows)


def _keys(columns: Mapping[str, str]) -> dict[str, str]:
    return {
        role: columns[role] for role in ("query", "item", FEATURES) if role in columns
    }


def names_of(table: FeatureTable | None) -> dict[bytes, list[str]]:
    """Names of the features by the hash of their list."""
    return {} if table is None else {table.list_hash: table.rows.names}
