"""What costs follow from a load: how often what happens in a second, how much is kept.

Each cost is a sum over drivers, with coefficients that were measured and are not below
0. All drivers but `idle` and `commits` grow with the rate in step or more slowly.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from rankstream.operations.answers.capacity.load import Load
from rankstream.wire.events import DETERMINISTIC, LOGGED, PLACKETT_LUCE, POLICIES

Points = tuple[tuple[float, float], ...]
"""Lists of a query, and bytes."""

WAKES_PER_S = 3_000.0
"""So often a process is woken at most: what comes closer together is taken together."""

STATE_BYTES: Mapping[str, Points] = MappingProxyType(
    {
        POLICIES[DETERMINISTIC]: (
            (3.7, 208.0),
            (11.5, 219.0),
            (100.0, 287.0),
            (1e3, 611.0),
            (1e4, 2_250.0),
        ),
        POLICIES[LOGGED]: (
            (3.7, 455.0),
            (11.5, 477.0),
            (100.0, 572.0),
            (1e3, 1_000.0),
            (1e4, 2_830.0),
        ),
        POLICIES[PLACKETT_LUCE]: (
            (3.7, 998.0),
            (11.5, 2_160.0),
            (100.0, 13_400.0),
            (1e3, 31_200.0),
            (1e4, 41_100.0),
        ),
    }
)
"""Of a query by its lists of ten items in 20 groups, as `statistics` holds it: counted,
and the same on each machine."""

MEMORY_BYTES: Mapping[str, Points] = MappingProxyType(
    {
        POLICIES[DETERMINISTIC]: ((3.7, 1_030.0), (11.5, 1_180.0), (100.0, 1_210.0)),
        POLICIES[LOGGED]: ((3.7, 1_940.0), (11.5, 2_360.0), (100.0, 3_020.0)),
        POLICIES[PLACKETT_LUCE]: (
            (3.7, 7_230.0),
            (11.5, 16_080.0),
            (100.0, 100_500.0),
            (1e3, 204_000.0),
        ),
    }
)
"""The same in memory of the fold: what twice as many queries more took.

Beyond the last point memory is taken to grow as state does, which nobody measured.
"""

WRITTEN_BYTES = 3_000.0
"""Most that a checkpoint writes of a query: pieces that changed (benchmarks.md)."""

N_ITEMS = 10
"""Of the lists that these were counted with."""

N_EXACT, N_BINS = 10_000, 400
"""Queries that are summed one by one, and ranges of further ones."""


def frequencies(
    n_queries: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Shares of queries that come in proportion to 1 / rank, and how many have each.

    Examples
    --------
    >>> shares, n = frequencies(2)
    >>> [round(float(share), 3) for share in shares], n.tolist()
    ([0.667, 0.333], [1.0, 1.0])
    """
    most = int(n_queries)
    ranks = np.arange(1.0, min(most, N_EXACT) + 1.0)
    counts = np.ones_like(ranks)
    if most > N_EXACT:
        edges = np.unique(np.geomspace(N_EXACT, most, N_BINS).astype(int))
        ranks = np.concatenate([ranks, np.sqrt(edges[1:] * edges[:-1])])
        counts = np.concatenate([counts, np.diff(edges)])
    shares = counts / ranks
    return 1.0 / ranks / shares.sum(), counts


def hottest_share(load: Load) -> float:
    """Share of all lists that the most frequent query has."""
    return float(frequencies(load.queries)[0][0])


def distinct(n_lists: float, n_queries: float) -> float:
    """Queries among so many lists, expected: the sum of 1 - (1 - share)^n."""
    shares, counts = frequencies(n_queries)
    missed = n_lists * np.log1p(-shares.clip(max=1.0 - 1e-12))
    return float((counts * -np.expm1(missed)).sum())


def _commits(load: Load) -> float:
    """Partitions that have something to commit, a second."""
    commit_s, n = load.settings.between_commits_s, load.settings.kafka.partitions
    return float(n * -np.expm1(-load.per_second * commit_s / n) / commit_s)


def _wakes(load: Load) -> float:
    """How often something comes that is taken by itself; never from what waits."""
    if load.is_waiting:
        return 0.0
    return load.per_second / (1.0 + load.per_second / WAKES_PER_S)


def _scopes(load: Load) -> float:
    """Queries of which statistics are written, a second."""
    state_s = load.settings.delivery.state_s
    return distinct(load.lists_per_s * state_s, load.queries) / state_s


def scope_bytes(points: Mapping[str, Points], load: Load, n_lists: float) -> float:
    """Bytes of a query after so many lists, between points that were counted.

    Powers of the lists lie between and beyond points; below the first it is constant.

    Examples
    --------
    >>> load = Load(1.0, items=20, queries=1.0)
    >>> round(scope_bytes({"deterministic": ((1.0, 10.0), (100.0, 1e3))}, load, 1e4))
    200000
    """
    lists, sizes = np.log(np.array(points[load.policy])).T
    at = np.log(max(n_lists, 1.0))
    inside = np.interp(at, lists, sizes)
    slope = (sizes[-1] - sizes[-2]) / (lists[-1] - lists[-2])
    beyond = slope * max(0.0, at - lists[-1])
    return float(np.exp(inside + beyond)) * load.items / N_ITEMS


def memory_of_scope(load: Load, n_lists: float) -> float:
    """Bytes of a query in the memory of the fold."""
    last, _ = MEMORY_BYTES[load.policy][-1]
    found = scope_bytes(MEMORY_BYTES, load, min(n_lists, last))
    if n_lists <= last:
        return found
    return found * (
        scope_bytes(STATE_BYTES, load, n_lists) / scope_bytes(STATE_BYTES, load, last)
    )


def is_measured(load: Load, n_lists: float) -> bool:
    """Whether the memory of a query of so many lists was."""
    return n_lists <= MEMORY_BYTES[load.policy][-1][0]


def _scope_kilobytes(load: Load) -> float:
    """Thousands of bytes of these queries: the frequent ones have more lists."""
    shares, counts = frequencies(load.queries)
    n_between = load.lists_per_s * load.settings.delivery.state_s
    written = counts * -np.expm1(-n_between * shares)
    if not n_between:
        return 0.0
    n_lists = float((written * shares).sum() / written.sum()) * load.n_counted
    each = min(scope_bytes(STATE_BYTES, load, n_lists), WRITTEN_BYTES)
    return _scopes(load) * each / 1e3


def _row_kilobytes(load: Load) -> float:
    """Thousands of bytes of logged exposures that are written with these queries."""
    is_logged = load.policy == POLICIES[LOGGED]
    return _scopes(load) * load.number_bytes / 1e3 if is_logged else 0.0


DRIVERS: Mapping[str, Callable[[Load], float]] = MappingProxyType(
    {
        "idle": lambda _: 1.0,
        "commits": _commits,
        "wakes": _wakes,
        "events": lambda load: load.per_second,
        "lists": lambda load: load.lists_per_s,
        "clicks": lambda load: load.clicks_per_s,
        "list_kilobytes": lambda load: load.lists_per_s * load.list_bytes / 1e3,
        "text_kilobytes": lambda load: load.lists_per_s * load.text_bytes / 1e3,
        "number_kilobytes": lambda load: load.lists_per_s * load.number_bytes / 1e3,
        "scopes": _scopes,
        "scope_kilobytes": _scope_kilobytes,
        "row_kilobytes": _row_kilobytes,
    }
)
"""Each a second, by the names that constants have."""


def drivers_of(load: Load) -> dict[str, float]:
    """All of them."""
    return {name: driver(load) for name, driver in DRIVERS.items()}
