"""Logs by hand, as lists of rows."""

import numpy as np

from models.estimators.click_log import ClickLog


def log_of(rows, *, mixed=()):
    """Rows of group, policy, item, rank, shown, clicked, expected."""
    columns = [*zip(*rows, strict=True)] or [()] * 7
    whole = [np.array(column, np.int64) for column in columns[:6]]
    return ClickLog._make([*whole, np.array(columns[6], float), frozenset(mixed)])


def lists_of(*groups):
    """Impressions by group, policy and item."""
    return np.array(groups, float)
