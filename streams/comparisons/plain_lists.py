"""Credit for the lists that are plain, in C; the rest is `comparison`'s.

Plain are lists of pairwise preference among many rankers, and of team draft, in which
nothing is faulty and nobody is silent. The sums are those of the comparisons.
"""

import ctypes
from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.evaluation.list_counts import BY_RANKER, TOTALS
from models.evaluation.sums import N_BETS, N_CLASSES, N_GROUPS
from models.interleaving.method import Method
from models.interleaving.pairwise_bounds import FEW_RANKERS
from models.interleaving.pairwise_preference import PairwisePreference
from models.interleaving.team_draft import TeamDraft
from rankstream.ranking.combining import seeded_name
from rankstream.wire.events import Experiment
from streams.comparisons.comparison import Comparison
from streams.native.closed_impressions import Closed
from streams.native.comparing import credit_plain

MOST_RANKERS, MOST_PLACES = 64, 32
"""What the core has room for."""

BY_PAIRS, BY_TEAMS = range(2)

NEVER_MS = 2**63 - 1

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_encode = msgspec.msgpack.Encoder().encode


class _Entry(ctypes.Structure):
    """`struct comparison` of `comparing.h`."""

    _fields_ = (
        ("experiment", ctypes.c_char_p),
        ("names", ctypes.c_char_p),
        ("seeded", ctypes.c_char_p),
        ("n_experiment", _NUMBER),
        ("n_names", _NUMBER),
        ("n_seeded", _NUMBER),
        ("method", _NUMBER),
        ("n_rankers", _NUMBER),
        ("length", _NUMBER),
        ("start_ms", _NUMBER),
        ("end_ms", _NUMBER),
        ("largest_weight", ctypes.c_double),
        ("totals", _PLACE),
        ("by_ranker", _PLACE),
        ("sums", _PLACE),
        ("counts", _PLACE),
        ("possible", _PLACE),
        ("squares", _PLACE),
        ("wealth", _PLACE),
        ("impressions", _PLACE),
        ("n_taken", _NUMBER),
        ("first_ms", _NUMBER),
        ("last_ms", _NUMBER),
        ("n_foreign_seeds", _NUMBER),
        ("n_without_session", _NUMBER),
    )


class PlainLists:
    """Credits impressions of some comparisons; keeps nothing between calls.

    Parameters
    ----------
    comparisons
        Those that may have plain lists are taken. Their arrays must stay where they
        are.
    """

    def __init__(self, comparisons: Iterable[Comparison]) -> None:
        methods = [(each, _method_of(each)) for each in comparisons]
        self._comparisons = [each for each, method in methods if method]
        self._kept = [_entry(each, method) for each, method in methods if method]
        self._entries = (_Entry * len(self._kept))(*self._kept)

    def take(self, closed: Closed, first: int) -> int:
        """Credit what is plain, from the one numbered `first` on.

        Returns
        -------
        int
            The number of the first that is not, or how many there are.
        """
        return credit_plain(self._entries, closed, first)

    def pass_on(self) -> int:
        """Tell the comparisons what is not in arrays; how many lists they took."""
        n_taken = 0
        for comparison, entry in zip(self._comparisons, self._entries, strict=True):
            if entry.n_taken:
                comparison.take_plain(
                    (entry.first_ms, entry.last_ms),
                    entry.n_foreign_seeds,
                    entry.n_without_session,
                )
                n_taken += entry.n_taken
                entry.n_taken = entry.n_foreign_seeds = entry.n_without_session = 0
                entry.first_ms = entry.last_ms = -1
        return n_taken


def _method_of(comparison: Comparison) -> tuple[int, float] | None:
    """How the core credits its lists, and the largest weight; None where it cannot."""
    settings, n_rankers = comparison.settings, len(comparison.rankers)
    if (
        len(comparison.methods) > 1
        or n_rankers > MOST_RANKERS
        or settings.length > MOST_PLACES
    ):
        return None
    return _credit_of(comparison.methods[settings.method], n_rankers)


def _credit_of(method: Method, n_rankers: int) -> tuple[int, float] | None:
    if isinstance(method, TeamDraft):
        return BY_TEAMS, 0.0
    if not isinstance(method, PairwisePreference) or n_rankers <= FEW_RANKERS:
        return None
    if method.published or method.largest_preference:
        return None
    return BY_PAIRS, method.largest_weight


def _entry(comparison: Comparison, method: tuple[int, float]) -> _Entry:
    settings, rankers = comparison.settings, comparison.rankers
    sums = comparison.sums[settings.method]
    shown = Experiment(comparison.name, settings.epoch, settings.method)
    seeded = seeded_name(comparison.name, settings.epoch, "").encode()
    experiment, names = _encode(shown), b"".join(map(_encode, rankers))
    n, n_pairs = len(rankers), len(sums.counts)
    return _Entry(
        *(experiment, names, seeded),
        *(len(experiment), len(names), len(seeded)),
        *(method[0], n, settings.length),
        *(settings.start_ms, settings.end_ms or NEVER_MS, method[1]),
        _place(comparison.totals, len(TOTALS)),
        _place(comparison.by_ranker, n, len(BY_RANKER)),
        _place(sums.totals, N_GROUPS, n_pairs),
        _place(sums.counts, n_pairs, 2),
        _place(sums.possible, n_pairs, N_CLASSES),
        _place(sums.squares, n_pairs, N_CLASSES),
        _place(sums.wealth, n_pairs, 2, N_BETS),
        _place(sums.impressions, N_GROUPS),
        *(0, -1, -1, 0, 0),
    )


def _place(array: NDArray[np.int64], *shape: int) -> int:
    """Where it lies; in one piece, and of the shape that the core expects."""
    if array.shape != shape or array.dtype != np.int64 or not array.flags.c_contiguous:
        raise ValueError(
            f"sums must be int64 {list(shape)} in one piece; got {array.dtype} "
            f"{list(array.shape)}"
        )
    return array.ctypes.data
