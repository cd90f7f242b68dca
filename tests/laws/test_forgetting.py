"""Laws of forgetting: whole scopes leave by the calendar, whatever was clicked.

The counterexamples are enumerated in full, by rules that are not ours: items that leave
one by one, and scopes that leave when they are no longer shown.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import LOGGED, ClickMark, Interaction
from rankstream.wire.exposures import pack_exposures
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.reader import Statistics
from tests.event_factory import impression
from tests.streams.fold.plain_statistics import PlainStatistics, applied, comparable

KEEP_MS = 1_000_000
ERA_MS = 50 * KEEP_MS
"""Where the era begins that the impressions are of."""

P_ITEM = Fraction(2, 5)
WORTH = Fraction(9, 10)
N_SHOWN = 3
"""An item's probability to be shown, to be clicked when shown; and its chances."""


class Columns:
    """The real fold, and the topic that it writes."""

    def __init__(self, keep_ms=KEEP_MS):
        kept = StatisticsSettings(groups=2)
        self.fold = StatisticsFold(LimitSettings(), kept, keep_ms, 0)
        self.plain = PlainStatistics(LimitSettings(), kept, keep_ms)
        self.state = {}

    def take(self, *interactions):
        """Closed impressions, counted."""
        self.fold.take(closed_of(interactions))
        for one in interactions:
            self.plain.take(one)

    def read(self, watermark_ms=None):
        """What readers see, at a watermark."""
        if watermark_ms is not None:
            self.fold.advance(watermark_ms)
            self.plain.take(watermark_ms)
        self.state = applied(self.state, self.fold.changes({}))
        return Statistics(self.state.items())


def shown(item, at_ms, *, clicked, intervention="m", unit=0):
    """One of two items, drawn with known probabilities, shown alone."""
    exposures = np.array([[P_ITEM], [1 - P_ITEM]], "<f4")
    one = impression(
        at_ms=at_ms,
        items=["it", "other"],
        shown=[item],
        intervention=intervention,
        policy=LOGGED,
        exposures=pack_exposures(exposures),
        unit=unit,
    )
    return Interaction(one, [ClickMark(1, at_ms, "click")] if clicked else [])


def inverse_estimate(summary):
    """Worth of the item: clicks over their probabilities, a chance."""
    found = [row[3] for row in summary.sums.tolist() if summary.items[row[0]] == "it"]
    return sum(found) / 2**16 / summary.total("impressions")


OUTCOMES = (
    ("it", True, P_ITEM * WORTH),
    ("it", False, P_ITEM * (1 - WORTH)),
    ("other", False, 1 - P_ITEM),
)
"""Item shown, whether it was clicked, and how probable that is."""


def test_items_that_leave_one_by_one_are_overestimated_and_then_worth_nothing():
    """Not our rule: sums of an item go once it was not shown, its exposures stay.

    Worth .9, it is estimated at 1.15 as long as it is there, and at 0 afterwards.
    """
    while_there, p_there, after = Fraction(0), Fraction(0), Fraction(0)
    for path in product(OUTCOMES, repeat=N_SHOWN):
        p = math.prod(each[2] for each in path)
        n_clicks = sum(clicked for _, clicked, _ in path)
        if any(item == "it" for item, _, _ in path):
            while_there += p * n_clicks / P_ITEM / N_SHOWN
            p_there += p
        else:
            after += p * n_clicks
    assert p_there == 1 - (1 - P_ITEM) ** N_SHOWN
    assert round(float(while_there / p_there), 2) == 1.15
    assert after == 0


def test_by_era_an_item_is_worth_what_it_is_until_its_scope_leaves():
    """Enumerated through the real fold: .9 at any watermark, however rarely shown."""
    expected = dict.fromkeys((0, KEEP_MS, 2 * KEEP_MS - 1), 0.0)
    for path in product(OUTCOMES, repeat=N_SHOWN):
        columns = Columns()
        columns.take(
            *(
                shown(item, ERA_MS + n, clicked=clicked)
                for n, (item, clicked, _) in enumerate(path)
            )
        )
        p = math.prod(each[2] for each in path)
        for later_ms in expected:
            statistics = columns.read(ERA_MS + later_ms)
            (name,) = statistics.names("q")
            expected[later_ms] += float(p) * inverse_estimate(statistics.cell(name))
        assert columns.read(ERA_MS + 2 * KEEP_MS).names() == []
    for estimate in expected.values():
        assert estimate == pytest.approx(float(WORTH), abs=1e-5)


def test_a_scope_is_bit_equal_while_it_lives_and_then_gone():
    """Whatever else is shown meanwhile; not one of its items leaves alone."""
    columns = Columns()
    path = [("it", True), ("other", False), ("it", False), ("it", True)]
    columns.take(
        *(
            shown(item, ERA_MS + n, clicked=clicked, unit=n % 2)
            for n, (item, clicked) in enumerate(path)
        )
    )
    first = columns.read(ERA_MS + 10)
    names = first.names("q")
    assert [(name.era, name.group) for name in names] == [(50, 0), (50, 1)]
    before = {name: first.cell(name).encode() for name in names}
    for step in range(20):
        now_ms = ERA_MS + KEEP_MS + step * KEEP_MS // 20
        columns.take(shown("other", now_ms, clicked=bool(step % 3)))
        again = columns.read(now_ms)
        assert {name: again.cell(name).encode() for name in names} == before
    last = columns.read(ERA_MS + 2 * KEEP_MS - 1)
    assert {name: last.cell(name).encode() for name in names} == before
    gone = columns.read(ERA_MS + 2 * KEEP_MS)
    assert not set(names) & set(gone.names("q"))
    with pytest.raises(KeyError):
        gone.cell(names[0])


def test_a_pooled_estimate_is_that_of_the_living_eras_and_says_how_much_left():
    """Interventions and groups over many eras, at watermarks of each."""
    rng = np.random.default_rng(4)
    columns, n_taken = Columns(), 0
    taken: list[Interaction] = []
    shares = []
    for step in range(60):
        now_ms = ERA_MS + step * KEEP_MS // 8
        for _ in range(int(rng.integers(1, 6))):
            item = "it" if rng.random() < P_ITEM else "other"
            at_ms = now_ms - int(rng.integers(KEEP_MS // 2))
            taken.append(
                shown(
                    item,
                    at_ms,
                    clicked=bool(rng.random() < 0.5),
                    intervention=str(rng.choice(["m", "n"])),
                    unit=int(rng.integers(4)),
                )
            )
            columns.take(taken[-1])
            n_taken += 1
        statistics = columns.read(now_ms)
        least = now_ms // KEEP_MS - 1
        living = [one for one in taken if one.impression.at_ms // KEEP_MS >= least]
        shares.append(statistics.share_left())
        assert shares[-1] == (n_taken - len(living)) / n_taken
        pooled = statistics.merged("q")
        assert len(pooled) == len({one.impression.intervention for one in living})
        for (_, intervention), summary in pooled.items():
            of_it = [o for o in living if o.impression.intervention == intervention]
            assert summary.total("impressions") == len(of_it)
            assert inverse_estimate(summary) == expected_estimate(columns.plain, of_it)
    assert shares[0] == 0
    assert shares[-1] > 0.5


def expected_estimate(plain, interactions):
    """The same, of plain counts."""
    one = interactions[0].impression
    place = plain.place_of(one)
    cell = comparable(plain.cell_of(place, interactions, []))
    inverse = cell["sums"].get("it", {}).get("inverse", 0)
    return inverse / 2**16 / len(interactions)


N_EACH = 2
"""Impressions of each of two interventions, before the unluckier is rolled back."""


def rollbacks():
    """Clicks of two interventions of worth .5, each path as probable as another."""
    for clicks in product((0, 1), repeat=2 * N_EACH):
        yield clicks[:N_EACH], clicks[N_EACH:]


def test_the_survivor_of_a_rollback_is_overestimated():
    """Not our rule: what is no longer shown leaves. True .5, the survivor .6875."""
    kept = [Fraction(max(sum(a), sum(b)), N_EACH) for a, b in rollbacks()]
    assert sum(kept) / len(kept) == Fraction(11, 16)


def test_leaving_by_the_calendar_keeps_the_expectation_under_a_rollback():
    """The one rolled back stays as long as the other: .5 for each and for both.

    Through the real fold: the survivor goes on being shown, in the next era, which
    says nothing of how long the first one is kept.
    """
    moments = (KEEP_MS, 2 * KEEP_MS - 1)
    estimates: dict[tuple[int, str], list[float]] = {}
    for of_a, of_b in rollbacks():
        columns = Columns()
        for name, clicks in (("a", of_a), ("b", of_b)):
            for n, clicked in enumerate(clicks):
                one = shown("it", ERA_MS + n, clicked=bool(clicked), intervention=name)
                columns.take(one)
        survivor = "a" if sum(of_a) >= sum(of_b) else "b"
        for at_ms in moments:
            later = shown("it", ERA_MS + at_ms, clicked=True, intervention=survivor)
            columns.take(later)
            statistics = columns.read(ERA_MS + at_ms)
            living = [n for n in statistics.names() if n.era == ERA_MS // KEEP_MS]
            assert [name.intervention for name in living] == ["a", "b"]
            for name in living:
                cell = statistics.cell(name)
                rate = cell.total("clicks") / cell.total("impressions")
                estimates.setdefault((at_ms, name.intervention), []).append(rate)
        gone = columns.read(ERA_MS + 2 * KEEP_MS)
        assert {name.intervention for name in gone.names()} == {survivor}
        assert {name.era for name in gone.names()} == {ERA_MS // KEEP_MS + 1}
    assert len(estimates) == 4
    for rates in estimates.values():
        assert len(rates) == 2 ** (2 * N_EACH)
        assert math.fsum(rates) / len(rates) == 0.5
