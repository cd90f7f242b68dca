"""What an impression says about the rankers that it compared, as arrays."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from models.interleaving.method import NO_ONE, NOBODY, Shown
from models.interleaving.rankings import first_faulty
from rankstream.events import Experiment, Impression, decode_items

MAX_RANKERS = 256
MAX_DEPTH = 1_000
KNOWN_SETS = 1_024
"""Candidate sets that are kept decoded."""


class Faulty(ValueError):
    """Rankings that nobody can be credited by; `reason` counts it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Extra(msgspec.Struct, frozen=True, gc=False):
    """The part of `Impression.extra` that comparisons need."""

    experiment: Experiment | None = None
    rankings: dict[str, list[str]] | None = None
    assignments: list[int] | None = None


class Logged(NamedTuple):
    """The lists of one impression. `names` are in order; rankers are their rows.

    `shown` and its assignments are those of the list; `is_assigned` says whether the
    event named any.
    """

    names: tuple[str, ...]
    shown: Shown
    is_assigned: bool


decode_extra = msgspec.msgpack.Decoder(Extra).decode


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
        if len(rankings) < 2 or len(rankings) > MAX_RANKERS:
            raise Faulty("rankers")
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
            items = decode_items(packed)
            found = dict(zip(items, range(len(items)), strict=True))
            if len(self._known) >= KNOWN_SETS:
                self._known.clear()
            self._known[packed] = found
        return found


def _padded(lists: list[list[int]]) -> Any:
    longest = max(map(len, lists))
    if longest > MAX_DEPTH:
        raise Faulty("depth")
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
