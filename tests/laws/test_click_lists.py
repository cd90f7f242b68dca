"""Lists made of sums of clicks: their sums again, and any division as likely."""

import itertools
import math
from collections import Counter

import numpy as np

from rankstream.lab.reproduction.top_k.clicks import (
    ClickSums,
    Shown,
    drawn_clicks,
    ranks_of,
    shown_by,
)
from rankstream.lab.reproduction.top_k.plan import Logging
from rankstream.lab.reproduction.trees.click_lists import ClickLists, click_lists

SIZES = (6, 3, 1, 8)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
N_DRAWS = 4_000


def lists_of(found: ClickLists) -> Counter[tuple[tuple[int, ...], tuple[bool, ...]]]:
    """How often each list was shown, by its documents and what was clicked."""
    return Counter(
        {
            (
                tuple(found.documents[begin:end].tolist()),
                tuple(found.clicked[begin:end].tolist()),
            ): n_times
            for (begin, end), n_times in zip(
                itertools.pairwise(found.offsets.tolist()),
                found.times.tolist(),
                strict=True,
            )
        }
    )


def test_clicks_of_lists_are_the_sums_that_they_are_made_of() -> None:
    """Where the first document has none, no list is left out that has a click."""
    ranks = ranks_of(np.random.default_rng(5).random(sum(SIZES)), OFFSETS)
    shown = shown_by(ranks, OFFSETS, Logging(3, True, 0))
    wanted = np.where(ranks == 1, 0.0, 0.4)
    rng = np.random.default_rng(7)
    clicks = drawn_clicks(shown, wanted, OFFSETS, 5_000, rng=rng)
    found = click_lists(clicks, shown, OFFSETS, rng=rng)
    times = np.repeat(found.times, np.diff(found.offsets))
    clicked = np.bincount(found.documents, found.clicked * times, minlength=sum(SIZES))

    assert clicked.tolist() == clicks.clicked.tolist()
    assert found.ranks.tolist() == shown.ranks[found.documents].tolist()
    of_documents = np.bincount(found.documents, times, minlength=sum(SIZES))
    assert (of_documents <= clicks.shown).all()
    for begin, end in itertools.pairwise(found.offsets.tolist()):
        assert found.ranks[begin:end].tolist() == [*range(1, end - begin + 1)]
        assert 0 < found.clicked[begin:end].sum() < end - begin
    # Of three documents all are shown; of one there is no order.
    n_shown = {len(documents) for documents, _ in lists_of(found)}
    assert n_shown == {3}
    assert len(lists_of(found)) == len(found.times)


def test_any_division_of_clicks_among_lists_is_as_likely() -> None:
    """Two lists end with document 1, one with document 2; one click each on 0 and 1.

    Of 3 * 2 divisions, one document's click each on any list that it was on, by hand.
    """
    shown = Shown(np.array([1, 2, 2]), np.array([1.0, 0.5, 0.5]))
    clicks = ClickSums(np.array([3]), np.array([3, 2, 1]), np.array([1, 1, 0]))
    rng = np.random.default_rng(1)
    found = Counter(
        frozenset(
            lists_of(click_lists(clicks, shown, np.array([0, 3]), rng=rng)).items()
        )
        for _ in range(N_DRAWS)
    )
    first, second = ((0, 1), (True, False)), ((0, 1), (False, True))
    other = ((0, 2), (True, False))
    # Both clicks on one list leave none: all of it was clicked.
    wanted = {
        frozenset(): 2 / 6,
        frozenset([(first, 1), (second, 1)]): 2 / 6,
        frozenset([(other, 1), (second, 1)]): 2 / 6,
    }

    assert found.keys() == wanted.keys()
    for lists, chance in wanted.items():
        error = math.sqrt(chance * (1.0 - chance) / N_DRAWS)
        assert abs(found[lists] / N_DRAWS - chance) < 5.0 * error
