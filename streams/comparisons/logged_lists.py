"""What an impression says about the rankers that it compared, as arrays."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from models.interleaving.method import NO_ONE, NOBODY, Method, Shown
from models.interleaving.possible_lists import is_possible, without_foreign
from models.interleaving.rankings import ABSENT, first_faulty, n_shared, ranks_of
from rankstream.configuration.experiments import MAX_RANKERS
from rankstream.wire.events import Impression, decode_items
from rankstream.wire.schemas import decoded
from streams.comparisons.extra import Extra

MAX_DEPTH = 1_000
KNOWN_SETS = 1_024
"""Candidate sets that are kept decoded."""


class Faulty(ValueError):
    """Rankings that nobody can be credited by; `reason` counts it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Logged(NamedTuple):
    """The lists of one impression. `names` are in order; rankers are their rows.

    `shown` and its assignments are those of the list; `is_assigned` says whether the
    event named any.
    """

    names: tuple[str, ...]
    shown: Shown
    is_assigned: bool


class ListReader:
    """Reads impressions; keeps the candidate sets that it has seen lately."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, int]] = {}

    def read(self, impression: Impression, extra: Extra) -> Logged:
        """Arrays of what was logged; documents are rows of the candidate set.

        Where the candidates were not named, further documents follow the shown ones.

        Raises
        ------
        Faulty
            With the reason.
        """
        rankings = extra.rankings
        if not rankings:
            raise Faulty("no-rankings")
        _check_size(rankings)
        names = tuple(sorted(rankings))
        rows = self._rows(impression.candidates)
        if impression.is_open_set:
            rows = dict(rows)
            for name in names:
                for item in rankings[name]:
                    rows.setdefault(item, len(rows))
        try:
            lists = [list(map(rows.__getitem__, rankings[name])) for name in names]
        except KeyError:
            raise Faulty("unknown-items") from None
        array = _padded(lists)
        if first_faulty(array) >= 0:
            raise Faulty("repeated-items")
        shown = np.frombuffer(impression.shown, "<u2").astype(np.int64)
        teams = _teams(extra.assignments, len(shown), len(names))
        return Logged(names, Shown(array, shown, teams), extra.assignments is not None)

    def _rows(self, packed: bytes) -> dict[str, int]:
        found = self._known.get(packed)
        if found is None:
            try:
                items = decoded(decode_items, packed)
            except msgspec.DecodeError:
                raise Faulty("unreadable") from None
            found = dict(zip(items, range(len(items)), strict=True))
            if len(self._known) >= KNOWN_SETS:
                self._known.clear()
            self._known[packed] = found
        return found


def check_drawn(method: Method, shown: Shown, length: int) -> None:
    """Refuse a list that the method cannot have made of these rankings.

    It is no longer than was asked for; who is named for a place has its document, and
    not from a prefix that all share; an A/B list is that of one ranker; the documents
    that rankers returned stand in an order that the method can draw.

    Raises
    ------
    Faulty
        With the reason.
    """
    if len(shown.shown) > length:
        raise Faulty("length")
    teams = shown.assignments
    if method.traits.shows_one_ranker and len(teams):
        own = shown.rankings[teams[0]][:length]
        is_whole = teams[0] != NOBODY and np.array_equal(own[own >= 0], shown.shown)
        if not is_whole or (teams != teams[0]).any():
            raise Faulty("assignments")
    elif (teams != NOBODY).any():
        owned = np.flatnonzero(teams != NOBODY)
        ranks = ranks_of(shown.rankings, shown.shown)[teams[owned], owned]
        if (ranks == ABSENT).any() or (ranks <= n_shared(shown.rankings)).any():
            raise Faulty("assignments")
    own, _ = without_foreign(shown, np.zeros(len(shown.shown), np.bool_))
    if not is_possible(method, own):
        raise Faulty("impossible-list")


def _check_size(rankings: dict[str, list[str]]) -> None:
    if len(rankings) < 2 or len(rankings) > MAX_RANKERS:
        raise Faulty("rankers")
    if max(map(len, rankings.values())) > MAX_DEPTH:
        raise Faulty("depth")


def _padded(lists: list[list[int]]) -> Any:
    longest = max(map(len, lists))
    return np.array(
        [row + [-1] * (longest - len(row)) for row in lists], np.int64
    ).reshape(len(lists), longest)


def _teams(assignments: list[int] | None, k: int, n_rankers: int) -> Any:
    if assignments is None:
        return NO_ONE
    if len(assignments) != k or any(
        not NOBODY <= team < n_rankers for team in assignments
    ):
        raise Faulty("assignments")
    return np.array(assignments, np.int64)
