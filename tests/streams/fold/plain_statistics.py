"""The statistics in plain dictionaries, as their definitions say, for tests."""

import hashlib
from collections import Counter, defaultdict
from itertools import combinations

import msgspec
import numpy as np

from models.plackett_luce.placement import placement_batch
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
)
from rankstream.wire.exposures import unpack_exposures
from streams.fold.statistics_fold import DAY_MS

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Recount:
    """The definitions, spelled out."""

    def __init__(self, limits, keep_ms):
        self.limits, self.keep_ms, self.day = limits, keep_ms, -1
        self.cells = {}

    def take(self, step):
        """A closed impression, or a day."""
        if isinstance(step, int):
            if step > self.day:
                self.day = step
                self.expire(step * DAY_MS - self.keep_ms)
        else:
            self.count(step.impression, {mark.position for mark in step.clicks})

    def place_of(self, impression):
        """The cell of an impression."""
        query = impression.query_id
        name = hashlib.blake2b(impression.candidates, digest_size=16).digest()
        if impression.is_open_set:
            name = bytes(16)
        live = {key[1:3] for key in self.cells if key[0] == query}
        live = {pair for pair in live if pair[0] != b"\xff" * 16}
        names, interventions = {n for n, _ in live}, {i for _, i in live}
        chosen = impression.intervention
        if (name not in names and len(names) >= self.limits.candidate_sets) or (
            chosen not in interventions
            and len(interventions) >= self.limits.interventions
        ):
            return (query, b"\xff" * 16, "", impression.unit % 20)
        return (query, name, chosen, impression.unit % 20)

    def count(self, impression, clicked):
        """Parts (a) to (d)."""
        place = self.place_of(impression)
        cell = self.cells.setdefault(
            place,
            {
                "totals": Counter(),
                "pairs": defaultdict(Counter),
                "last": {},
                "sums": defaultdict(Counter),
                "click_pairs": Counter(),
                "rows": {},
                "overflow": Counter(),
            },
        )
        items = _decode(impression.candidates)
        rows = np.frombuffer(impression.shown, "<u2").tolist()
        shown = [items[row] for row in rows]
        totals = cell["totals"]
        totals["impressions"] += 1
        totals["without_click"] += not clicked
        totals["clicks"] += len(clicked)
        totals["clicks_squared"] += len(clicked) ** 2
        first, last = min(clicked, default=0), max(clicked, default=0)
        for rank, item in enumerate(shown, 1):
            pair = cell["pairs"][item, rank]
            pair["shown"] += 1
            pair["clicked"] += rank in clicked
            pair["first_click"] += rank == first
            pair["shown_to_first"] += not clicked or rank <= first
            pair["shown_to_last"] += bool(clicked) and rank <= last
            before = cell["last"].get((item, rank), 0)
            cell["last"][item, rank] = max(before, impression.at_ms)
        if place[1] == b"\xff" * 16:
            return
        for rank, item in enumerate(shown[:last], 1):
            if rank in clicked:
                cell["sums"][item]["plus"] += last - len(clicked)
            else:
                cell["sums"][item]["minus"] += len(clicked)
        for a, b in combinations(sorted((shown[r - 1], r) for r in clicked), 2):
            cell["click_pairs"][(*a, *b)] += 1
        matrix = placement(impression)
        if matrix is None:
            totals["without_exposure"] += 1
            return
        for rank in clicked:
            p = float(matrix[rows[rank - 1], rank - 1])
            if impression.policy == PLACKETT_LUCE:
                # Whatever was shown had some chance, computed or not.
                p = max(p, 2**-21)
            if p > 0:
                totals["clipped"] += p < 2**-20
                p = max(p, 2**-20)
                sums = cell["sums"][shown[rank - 1]]
                sums["inverse"] += round(2**16 / p)
                sums["squared"] += round(2**16 / (p * p))
        self.expose(cell, impression, items, matrix)

    def expose(self, cell, impression, items, matrix):
        """Part (e)."""
        material = {
            DETERMINISTIC: impression.shown,
            TAIL_SHUFFLE: impression.shown[:-2],
            PLACKETT_LUCE: impression.scores,
            LOGGED: impression.exposures,
        }[impression.policy]
        owner = tuple(items) if impression.is_open_set else None
        row = (impression.policy, len(impression.shown) // 2, material, owner)
        count, _, _ = cell["rows"].get(row, (0, None, None))
        cell["rows"][row] = (count + 1, items, matrix)
        if len(cell["rows"]) > self.limits.exposure_rows:
            oldest = next(iter(cell["rows"]))
            count, items, matrix = cell["rows"].pop(oldest)
            for (d, r), p in np.ndenumerate(matrix):
                cell["overflow"][items[d], r + 1] += count * round(float(p) * 2**30)

    def expire(self, before_ms):
        """What was not shown since leaves."""
        for place, cell in list(self.cells.items()):
            last: Counter[str] = Counter()
            for (item, _), at_ms in cell["last"].items():
                last[item] = max(last[item], at_ms)
            gone = {item for item, at_ms in last.items() if at_ms < before_ms}
            for part in ("pairs", "last", "overflow"):
                for item, rank in list(cell[part]):
                    if item in gone:
                        del cell[part][item, rank]
            for item in gone:
                cell["sums"].pop(item, None)
            for key in list(cell["click_pairs"]):
                if key[0] in gone or key[2] in gone:
                    del cell["click_pairs"][key]
            if not cell["pairs"]:
                del self.cells[place]


def placement(impression):
    """P(item at rank) under the impression's policy, None where it has none."""
    n = len(_decode(impression.candidates))
    rows = np.frombuffer(impression.shown, "<u2").tolist()
    matrix: np.ndarray = np.zeros((n, len(rows)))
    if impression.policy == DETERMINISTIC:
        matrix[rows, range(len(rows))] = 1
    elif impression.policy == TAIL_SHUFFLE:
        matrix[:, -1] = 1 / (n - len(rows) + 1)
        matrix[rows[:-1]] = 0
        matrix[rows[:-1], range(len(rows) - 1)] = 1
    elif impression.policy == PLACKETT_LUCE:
        scores = np.frombuffer(impression.scores, "<f4").astype(np.float64)
        matrix = placement_batch(scores[None], len(rows))[0]
    elif impression.policy == LOGGED:
        matrix = unpack_exposures(impression.exposures, n, len(rows))
    else:
        return None
    return matrix


def expected_of(recount):
    """The recount in a form that compares."""
    found = {}
    for place, cell in recount.cells.items():
        pairs = {}
        for key in set(cell["pairs"]) | {k for k, v in cell["overflow"].items() if v}:
            pair = cell["pairs"].get(key, Counter())
            names = [
                "shown",
                "clicked",
                "first_click",
                "shown_to_first",
                "shown_to_last",
            ]
            pairs[key] = (
                *(pair[name] for name in names),
                cell["last"].get(key, 0),
                cell["overflow"][key],
            )
        names = ["plus", "minus", "inverse", "squared"]
        found[place] = (
            {name: count for name, count in cell["totals"].items() if count},
            pairs,
            {i: tuple(s[n] for n in names) for i, s in cell["sums"].items()},
            dict(cell["click_pairs"]),
            sorted((*row[:3], n) for row, (n, _, _) in cell["rows"].items()),
        )
    return found


def applied(state, changes):
    """The topic after more changes, compacted."""
    for topic, key, value in changes:
        assert topic == "statistics"
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    return state


def state_of(fold):
    """All that a fold that never wrote before stands for."""
    return applied({}, fold.changes())
