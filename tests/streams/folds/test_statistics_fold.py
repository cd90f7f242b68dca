"""The statistics fold against a recount in plain dictionaries, and against itself."""

import hashlib
from collections import Counter, defaultdict
from itertools import combinations

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.placement import placement_batch
from models.statistics import ITEM_NAMES, TOTAL_NAMES, decode_cell, row_names_of
from rankstream.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    ClickMark,
    Impression,
    Interaction,
)
from rankstream.exposures import pack_exposures, unpack_exposures
from rankstream.settings import LimitSettings
from streams.folds.closed import closed_of
from streams.folds.parts import Parts
from streams.folds.statistics import DAY_MS, StatisticsFold
from streams.stage import Change
from tests import event_factory

LIMITS = LimitSettings(candidate_sets=2, interventions=2, exposure_rows=2)
KEEP_MS = 2 * DAY_MS

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

LISTS = (("a", "b", "c"), ("a", "b", "c", "d"), ("b", "d"), ("e", "f", "g"))


EDGES_MS = (0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS)


@st.composite
def interactions(draw, lists=LISTS, queries="qr", interventions="mno", units=(3, 23)):
    """A closed impression of few queries, lists and interventions, with clicks."""
    candidates = draw(st.sampled_from(lists))
    order = draw(st.permutations(range(len(candidates))))
    n_shown = draw(st.integers(1, len(candidates)))
    is_open = draw(st.integers(0, 4)) == 0
    if is_open:
        policy = draw(st.sampled_from((UNKNOWN, DETERMINISTIC)))
        candidates = tuple(sorted(candidates[row] for row in order[:n_shown]))
        order = draw(st.permutations(range(n_shown)))
    else:
        policy = draw(
            st.sampled_from(
                (UNKNOWN, DETERMINISTIC, TAIL_SHUFFLE, PLACKETT_LUCE, LOGGED)
            )
        )
    scores = draw(st.sampled_from((0.0, 1.0, 30.0)))
    n_items = len(candidates)
    exposures = np.full(
        (n_items, n_shown), draw(st.sampled_from((0.1, 1e-8, 0.0))), "<f4"
    )
    exposures[order[0], 0] = draw(st.sampled_from((0.0, 0.4)))
    impression = Impression(
        identity=b"i" * 16,
        impression_id="i",
        query_id=draw(st.sampled_from(queries)),
        at_ms=draw(st.sampled_from(EDGES_MS)),
        model="m",
        version=1,
        intervention=draw(st.sampled_from(interventions)),
        seed=0,
        policy=policy,
        candidates=_encode(list(candidates)),
        shown=np.array(order[:n_shown], "<u2").tobytes(),
        is_open_set=is_open,
        scores=(np.arange(n_items, dtype="<f4") * scores).astype("<f4").tobytes(),
        exposures=pack_exposures(exposures) if policy == LOGGED else b"",
        features=b"",
        n_features=0,
        unit=draw(st.sampled_from(units)),
        extra=b"",
    )
    ranks = draw(st.lists(st.integers(1, n_shown), max_size=4))
    return Interaction(impression, [ClickMark(rank, 5, "click") for rank in ranks])


ONE_CELL = {"lists": LISTS[:1], "queries": "q", "interventions": "m", "units": (5,)}

STEPS = st.one_of(
    st.lists(
        st.one_of(
            interactions(units=(3, 23, 2**64 - 1)), interactions(), st.integers(0, 8)
        ),
        max_size=40,
    ),
    # One cell, so that its rows are counted again, evicted, and come back.
    st.lists(
        st.one_of(*[interactions(**ONE_CELL)] * 6, st.integers(0, 4)), max_size=40
    ),
)
"""Impressions, and days that the watermark enters."""


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
        first, last = min(clicked, default=None), max(clicked, default=None)
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
        for rank, item in enumerate(shown[: last or 0], 1):
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
            last = Counter()
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
    matrix = np.zeros((n, len(rows)))
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


def actual_of(state):
    """What stands in the topic, in the same form."""
    values = Parts().joined(state)
    by_key = {tuple(_decode(key)): value for key, value in values.items()}
    found = {}
    for (kind, *place), value in by_key.items():
        if kind != "cell":
            continue
        query, name, intervention, _ = place
        items = _decode(by_key["set", query, name])[1]
        cell = decode_cell(value, items)
        names = cell.items
        rows = []
        for row, count in zip(cell.row_names, cell.row_counts.tolist(), strict=True):
            stored = _decode(by_key["row", query, name, intervention, row])
            rows.append((*stored[1:4], count))
        sums = zip(cell.sums.tolist(), cell.squared_inverses(), strict=True)
        assert ITEM_NAMES[:4] == ("item", "plus", "minus", "inverse")
        totals = {n: cell.total(n) for n in TOTAL_NAMES if cell.total(n)}
        found[tuple(place)] = (
            totals,
            {(names[p[0]], p[1]): tuple(p[2:]) for p in cell.pairs.tolist()},
            {names[s[0]]: (*s[1:4], squared) for s, squared in sums},
            {(names[a], r, names[b], s): n for a, r, b, s, n in cell.click_pairs},
            sorted(rows),
        )
    return found


def play(fold, steps):
    """Give steps to a fold."""
    for step in steps:
        if isinstance(step, int):
            fold.advance(step * DAY_MS + 17)
        else:
            fold.take(closed_of([step]))


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


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_every_part_equals_a_recount_in_plain_dictionaries(steps):
    """Parts (a) to (e), caps, overflow and expiry are what their definitions say."""
    fold, recount = StatisticsFold(LIMITS, KEEP_MS), Recount(LIMITS, KEEP_MS)
    play(fold, steps)
    for step in steps:
        recount.take(step)
    state = state_of(fold)
    assert actual_of(state) == expected_of(recount)
    kinds = {_decode(key)[0] for key in state}
    cells = {tuple(_decode(k)[1:3]) for k in state if _decode(k)[0] == "cell"}
    sets = {tuple(_decode(k)[1:3]) for k in state if _decode(k)[0] == "set"}
    assert sets == cells
    assert kinds <= {"cell", "set", "row", "counts"}
    cells = {tuple(_decode(k)[1:4]): [] for k in state if _decode(k)[0] == "cell"}
    for key, value in state.items():
        if _decode(key)[0] == "cell":
            cells[tuple(_decode(key)[1:4])] += row_names_of(value)
    rows = {tuple(_decode(k)[1:]) for k in state if _decode(k)[0] == "row"}
    assert rows == {(*place, row) for place, names in cells.items() for row in names}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=8))
def test_cuts_and_restores_change_no_byte(steps, cuts):
    """Flushing, settling, writing or restoring anywhere gives the same state."""
    whole = StatisticsFold(LIMITS, KEEP_MS)
    play(whole, steps)
    fold, state = StatisticsFold(LIMITS, KEEP_MS), {}
    at = defaultdict(list)
    for place, action in cuts:
        at[place].append(action)
    for i, step in enumerate([*steps, None]):
        for action in at[i]:
            if action == 0:
                fold.flush()
            elif action == 1:
                fold.settle()
            else:
                state = applied(state, fold.changes())
            if action == 3:
                mark = fold.fingerprint()
                fold = StatisticsFold(LIMITS, KEEP_MS)
                fold.restore(Change("statistics", *item) for item in state.items())
                assert fold.fingerprint() == mark
        if step is not None:
            play(fold, [step])
    assert fold.fingerprint() == whole.fingerprint()
    state = applied(state, fold.changes())
    assert state == state_of(whole)
    assert not fold.changes()
    counters, others = fold.counters(), whole.counters()
    assert counters == others


def test_clicks_that_repeat_take_no_room() -> None:
    """Thousands of clicks on a list of three are three clicked ranks."""
    fold = StatisticsFold(LimitSettings(), keep_ms=DAY_MS)
    marks = [ClickMark(1 + n % 3, n, "click") for n in range(3_000)]
    fold.take(closed_of([Interaction(event_factory.impression(), marks)]))
    fold.settle()

    assert len(fold._store.tables.click_pairs) < 1_000
