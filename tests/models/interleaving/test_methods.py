"""Lists as they are drawn, what they expose, and what nobody is credited for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.interleaving.method import NOBODY, Method, Shown
from models.interleaving.optimized import Optimized
from models.interleaving.rankings import (
    ABSENT,
    n_fair_places,
    n_shared,
    ranks_of,
)
from models.interleaving.registry import METHODS, method_of
from models.interleaving.team_draft import two_team_exposures
from tests import interleaving_cases as cases
from tests.interleaving_cases import as_rankings

CONSIDERATE = sorted(set(METHODS) - {"probabilistic", "logging-policy"})
FOR_TWO = {name for name in METHODS if method_of(name).traits.is_for_two}


@st.composite
def some_rankings(draw: st.DrawFn, n_rankers: int | None = None) -> np.ndarray:
    """Lists of unequal length, some empty, over a few documents."""
    n = n_rankers or draw(st.integers(2, 5))
    n_documents = draw(st.integers(1, 12))
    lists = [
        draw(st.permutations(range(n_documents)))[: draw(st.integers(0, n_documents))]
        for _ in range(n)
    ]
    return as_rankings(lists)


def bad_places(rankings: np.ndarray, shown: np.ndarray) -> int:
    """Places whose document every ranker would show further down."""
    best = ranks_of(rankings, shown).min(axis=0, initial=ABSENT)
    return int((best > np.arange(1, len(shown) + 1)).sum())


@pytest.mark.parametrize("name", CONSIDERATE)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), length=st.integers(1, 12))
def test_every_list_is_considerate(
    name: str, data: st.DataObject, seed: int, length: int
) -> None:
    """No document above the best rank that a ranker gives it; none twice."""
    rankings = data.draw(some_rankings(2 if name in FOR_TWO else None))
    method = method_of(name)
    rng = np.random.default_rng(seed)
    if name == "optimized":
        method = Optimized(n_lists=8)
    found = method.combine(rankings, length, rng=rng)
    shown = Shown(rankings, found.shown, found.assignments)
    clicks = np.random.default_rng(seed + 1).random(len(found.shown)) < 0.5
    preferences = method.infer(shown, clicks)
    bounds = method.bounds(rankings, length)
    empty = (rankings >= 0).sum(axis=1) == 0

    assert bad_places(rankings, found.shown) == 0
    assert len(set(found.shown.tolist())) == len(found.shown)
    assert (preferences == -preferences.T).all()
    assert (np.abs(preferences) <= bounds + 1e-12).all()
    assert not preferences[empty].any()
    if not method.traits.shows_one_ranker:
        assert len(found.shown) == min(length, len(set(rankings.ravel()) - {-1}))


@settings(max_examples=60, deadline=None)
@given(rankings=some_rankings(), seed=st.integers(0, 2**32))
def test_bounds_of_probabilistic_hold(rankings: np.ndarray, seed: int) -> None:
    """Both outcomes, lists of unequal length."""
    rng = np.random.default_rng(seed)
    for outcome in ("sign", "clicks"):
        method = method_of("probabilistic", {"outcome": outcome})
        found = method.combine(rankings, 8, rng=rng)
        shown = Shown(rankings, found.shown, found.assignments)
        clicks = rng.random(len(found.shown)) < 0.5

        found_at_most = method.bounds(rankings, 8) + 1e-12
        assert (np.abs(method.infer(shown, clicks)) <= found_at_most).all()


@pytest.mark.parametrize("name", ["pairwise-preference", "team-draft", "probabilistic"])
def test_draws_follow_the_enumerated_distribution(name: str) -> None:
    """Twenty thousand lists against the probability of each."""
    rng = np.random.default_rng(0)
    rankings = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [3, 1, 2, 0]])
    lists = {
        "pairwise-preference": cases.pairwise_lists(rankings, 3),
        "team-draft": cases.draft_lists(rankings, 3),
        "probabilistic": cases.soft_lists(rankings, 3, 3.0),
    }[name]
    expected = {(*s.shown.tolist(), *s.assignments.tolist()): p for p, s in lists}
    counts = dict.fromkeys(expected, 0)
    method, n = method_of(name), 20_000
    for _ in range(n):
        found = method.combine(rankings, 3, rng=rng)
        counts[*found.shown.tolist(), *found.assignments.tolist()] += 1

    for key, p in expected.items():
        assert abs(counts[key] / n - p) < 5 * np.sqrt(p * (1 - p) / n) + 1e-12


def exposures_of(lists: cases.Lists, n_documents: int, length: int) -> np.ndarray:
    """P(document at rank) of enumerated lists."""
    found = np.zeros((n_documents, length))
    for p, shown in lists:
        found[shown.shown, np.arange(len(shown.shown))] += p
    return found


def test_exposures_equal_the_enumeration() -> None:
    """Pairwise preference, team draft of two, in closed form; a hundred cases."""
    rng = np.random.default_rng(1)
    ppm = method_of("pairwise-preference")
    for _ in range(100):
        n = int(rng.integers(2, 6))
        length = int(rng.integers(1, n + 1))
        many = cases.random_rankings(rng, int(rng.integers(2, 4)), n)
        two = cases.random_rankings(rng, 2, n)
        if two[0, -1] == two[1, -1]:
            two = two[:, ::-1].copy()  # now they share a prefix
        exact = exposures_of(cases.pairwise_lists(many, length), n, length)
        drafted = exposures_of(cases.draft_lists(two, length), n, length)

        assert np.abs(ppm.exposures(many, length, rng=rng) - exact).max() < 1e-12
        assert np.abs(two_team_exposures(two, length) - drafted).max() < 1e-12


def test_exposures_of_optimized_are_those_that_its_seed_draws() -> None:
    """Given the seed: every list that follows the same sampled choice."""
    rankings = cases.random_rankings(np.random.default_rng(2), 4, 8)
    method = Optimized(n_lists=10)
    exposures = method.exposures(rankings, 5, rng=np.random.default_rng(7))
    found = method.combine(rankings, 5, rng=np.random.default_rng(7))

    assert exposures.sum(axis=0) == pytest.approx(np.ones(5))
    assert (exposures[found.shown, np.arange(5)] > 0).all()


def test_lists_of_unequal_length_favour_nobody() -> None:
    """Ten results against four, clicks at random: nothing below rank four counts."""
    rankings = as_rankings([range(10), [10, 11, 12, 13]])
    rng = np.random.default_rng(3)
    for name in ("team-draft", "probabilistic"):
        method = method_of(name)
        total = np.zeros(4_000)
        for i in range(len(total)):
            found = method.combine(rankings, 10, rng=rng)
            clicks = rng.random(10) < 0.3
            shown = Shown(rankings, found.shown, found.assignments)
            total[i] = method.infer(shown, clicks)[0, 1]
            clicks[:4] = False
            assert not method.infer(shown, clicks).any()
        assert abs(total.mean()) < 4 * total.std() / np.sqrt(len(total))


def test_a_shared_prefix_credits_nobody() -> None:
    """Both begin with 5, 6: whoever won the toss did not find them."""
    rankings = as_rankings([[5, 6, 0, 1], [5, 6, 1, 2]])
    for seed in range(20):
        found = method_of("team-draft").combine(
            rankings, 4, rng=np.random.default_rng(seed)
        )
        assert found.shown[:2].tolist() == [5, 6]
        assert found.assignments[:2].tolist() == [NOBODY, NOBODY]
        assert sorted(found.assignments[2:].tolist()) == [0, 1]
        for name in METHODS:
            shown = Shown(rankings, found.shown, np.full(4, NOBODY))
            method: Method = method_of(name)
            preferences = method.infer(shown, np.array([True, True, False, False]))
            if name != "pairwise-preference":
                assert not preferences.any(), name


def test_only_those_who_returned_something_take_part() -> None:
    """An empty list wins nothing, loses nothing and shortens nothing."""
    rankings = as_rankings([[0, 1, 2], [], [2, 1, 0]])

    assert n_fair_places(rankings) == 3
    assert n_shared(rankings) == 0
    for name in sorted(set(METHODS) - FOR_TWO):
        method = method_of(name)
        found = method.combine(rankings, 3, rng=np.random.default_rng(0))
        shown = Shown(rankings, found.shown, found.assignments)
        every = np.ones(3, np.bool_)
        every[-1] = False
        assert not method.infer(shown, every)[1].any()
        assert 1 not in found.assignments


def test_a_document_of_nobody_is_nobodys() -> None:
    """An advertisement among the results, and a list without any ranking."""
    rankings = as_rankings([[0, 1], [1, 0]])
    shown = Shown(rankings, np.array([7, 8]), np.array([NOBODY, NOBODY]))
    for name in METHODS:
        assert not method_of(name).infer(shown, np.array([True, False])).any()


@pytest.mark.parametrize(
    "lists", [[[0, 1, 1], [0]], [[0], [3, 3]], [[0, 1]], [], [[0, -2], [1]]]
)
def test_rankings_of_no_use_are_refused(lists: list[list[int]]) -> None:
    """Repeats, fewer than two rankers, documents that are no numbers from 0."""
    with pytest.raises(ValueError, match="must"):
        as_rankings(lists)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("best", {}),
        ("probabilistic", {"tau": 0}),
        ("probabilistic", {"outcome": "luck"}),
        ("optimized", {"credit": "luck"}),
        ("optimized", {"n_lists": 0}),
        ("team-draft", {"tau": 3}),
        ("counterfactual:ab", {}),
        ("counterfactual:ab", {"examination": [1.0, 0.0]}),
    ],
)
def test_unknown_methods_and_options_are_refused(name: str, options: dict) -> None:
    """By name."""
    with pytest.raises(ValueError, match="must"):
        method_of(name, options)


@pytest.mark.parametrize("name", ["team-draft", "ab"])
def test_assignments_must_be_there(name: str) -> None:
    """Whose place it was cannot be told from the list; nobody is guessed."""
    rankings = as_rankings([[0, 1], [1, 0]])
    shown = Shown(rankings, np.array([0, 1]), cases.EMPTY)
    with pytest.raises(ValueError, match="assignments must"):
        method_of(name).infer(shown, np.array([True, False]))
