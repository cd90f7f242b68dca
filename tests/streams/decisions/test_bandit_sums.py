"""Sums of a bandit's own lists, held to the lists that were sent."""

from typing import Any

import numpy as np
import pytest

from models.bandits.cascade_ucb import FirstClicks, take_first_click
from models.bandits.hotfix import take_preferences
from models.counts.definition import ClosedImpression
from models.counts.placements import DETERMINISTIC
from models.counts.scope_record import CONVERTED
from models.estimators.adaptivity import is_chosen_from_clicks
from rankstream.configuration.bandits import BanditSettings
from streams.decisions.bandit_sums import BanditSums, bandit_sums
from streams.decisions.refused import Refused
from streams.statistics.keys import OPEN_SET, ScopeName
from streams.statistics.reader import Statistics
from tests.models.counts.scope_values import ScopeValue
from tests.streams.decisions.bandit_shop import NAME, BanditShop
from tests.streams.statistics.statistics_records import Record, scope_records

ITEMS = ("d", "b", "a")
SCOPE = ScopeName("q", b"s" * 16, f"{NAME}@1.0", 7)


@pytest.fixture(scope="module")
def shop() -> BanditShop:
    """Two queries of six items, whose lists are all counted."""
    rng = np.random.default_rng(8)
    shop = BanditShop(BanditSettings(model="m", length=3), rng.random((2, 6)))
    for _ in range(4):
        shop.look()
        shop.show(150, rng)
    shop.pipeline.end()
    return shop


def test_sums_are_those_of_the_lists_that_were_sent(shop: BanditShop) -> None:
    """By item and rank, down to the first click, and of clicks below what was not."""
    sums = bandit_sums(shop.statistics(), NAME)
    assert sums.lists.tolist() == [300, 300]
    assert not sums.refused
    for number, query in enumerate(sums.sets.queries):
        clicks, shows = np.zeros((2, 6, 3), np.int64)
        first = FirstClicks(*np.zeros((2, 6), np.int64))
        plus, minus = np.zeros((2, 6), np.int64)
        for each in shop.sent:
            if each["query_id"] != query:
                continue
            rows = np.array([shop.items.index(item) for item in each["shown"]])
            clicked = np.array(each["clicked"])
            shows[rows, np.arange(3)] += 1
            clicks[rows, np.arange(3)] += clicked
            take_first_click(first, rows, clicked)
            take_preferences(plus, minus, rows, clicked)
        assert plus.any()
        for found, expected in (
            (sums.by_rank(number, 3), (clicks, shows)),
            (sums.by_rank(number, 2), (clicks[:, :2], shows[:, :2])),
            (sums.first_clicks(number), first),
            (sums.preferred(number), (plus, minus)),
        ):
            np.testing.assert_array_equal(np.array(found), np.array(expected))


def records(name: ScopeName, n_lists: int, **limits: Any) -> list[Record]:
    """A scope of lists of one order, the first item clicked."""
    lists = [ClosedImpression(0, [0, 1, 2], {0: [1]}, DETERMINISTIC, b"", None)]
    value = ScopeValue(ITEMS, **limits).take(lists * n_lists)
    return scope_records(name, value, {})


def sums_of(*scopes: list[Record]) -> BanditSums:
    """Of several scopes."""
    return bandit_sums(Statistics([x for one in scopes for x in one]), NAME)


def test_lists_of_others_are_not_its_own() -> None:
    """Whatever begins alike; eras and interventions of its own add up."""
    others = ("best", "best@1", "best@1.0.2", "best2@1.0", "abest@1.0", "m@0.1")
    own = (f"{NAME}@1.0", f"{NAME}@12.345")
    scopes = [records(SCOPE._replace(intervention=x), 5) for x in (*others, *own)]
    later = records(SCOPE._replace(era=8), 2, most_lists=0)  # rank by rank
    sums = sums_of(*scopes, later)
    assert (sums.lists.tolist(), sums.eras.tolist()) == ([12], [8])
    clicks, shows = sums.by_rank(0, 3)
    # By id: a, b, d.
    assert clicks.tolist() == [[0, 0, 0], [0, 0, 0], [12, 0, 0]]
    assert shows.tolist() == [[0, 0, 12], [0, 12, 0], [12, 0, 0]]
    assert not bandit_sums(Statistics(scopes[0] + scopes[-1]), "b.st").lists.any()


@pytest.mark.parametrize(
    ("name", "limits", "why"),
    [
        (
            SCOPE._replace(candidate_set=OPEN_SET),
            {"is_growing": True},
            Refused.GROWING,
        ),
        (SCOPE, {"flags": CONVERTED}, Refused.CONVERTED),
        (SCOPE, {"is_capped": True}, Refused.CAPPED),
    ],
)
def test_what_is_no_closed_set_is_refused_and_counted(
    name: ScopeName, limits: dict[str, bool | int], why: Refused
) -> None:
    """Nothing could be served there, or placements are not counted."""
    sums = sums_of(records(name, 5, **limits))
    assert sums.refused == {why: 5}
    assert sums.lists.sum() == len(sums.pairs) == 0


def test_lists_of_a_bandit_follow_from_clicks(shop: BanditShop) -> None:
    """By the form of their name: whoever estimates from them is told."""
    names = {each["intervention"] for each in shop.sent}
    assert names
    assert all(is_chosen_from_clicks(each, ()) for each in names)
