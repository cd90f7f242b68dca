"""Lists where they are served: the same draws as in the models."""

import numpy as np
import pytest

from models.interleaving.registry import method_of
from rankstream.ranking.combining import combine, list_exposures
from rankstream.ranking.methods import DRAWN, METHODS
from tests.interleaving_cases import as_rankings


def random_lists(rng: np.random.Generator, n_rankers: int) -> list[list[int]]:
    """Unequal lengths over common documents."""
    return [
        rng.permutation(12)[: int(rng.integers(0, 13))].tolist()
        for _ in range(n_rankers)
    ]


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_the_same_seed_gives_the_list_of_the_models(name: str) -> None:
    """Item by item, team by team, over many rankings."""
    rng = np.random.default_rng(0)
    method = method_of(name)
    for seed in range(200):
        n = 2 if METHODS[name].is_for_two else int(rng.integers(2, 6))
        lists = random_lists(rng, n)
        named = {f"r{i}": [f"d{d:02}" for d in row] for i, row in enumerate(lists)}
        ours = combine(name, named, 8, seed=seed)
        theirs = method.combine(as_rankings(lists), 8, rng=np.random.default_rng(seed))

        assert ours.shown == [f"d{d:02}" for d in theirs.shown.tolist()]
        if method.needs_assignments:
            assert ours.assignments == theirs.assignments.tolist()
        else:
            assert ours.assignments is None
        assert ours.rankings == named


def test_what_a_ranker_repeats_counts_once() -> None:
    """Its list is logged without the repeat."""
    found = combine("team-draft", {"a": ["x", "x", "y"], "b": ["y"]}, 5, seed=1)

    assert sorted(found.shown) == ["x", "y"]
    assert found.rankings == {"a": ["x", "y"], "b": ["y"]}


def test_senseless_requests_are_refused() -> None:
    """Unknown methods, one ranker, balanced interleaving of three."""
    two = {"a": ["x"], "b": ["y"]}
    with pytest.raises(ValueError, match="method must"):
        combine("optimized", two, 5, seed=1)
    with pytest.raises(ValueError, match="two or more"):
        combine("team-draft", {"a": ["x"]}, 5, seed=1)
    with pytest.raises(ValueError, match="two rankers"):
        combine("balanced", {**two, "c": []}, 5, seed=1)


@pytest.mark.parametrize(
    "name", sorted(name for name, each in METHODS.items() if each.exposures)
)
def test_exposures_are_those_of_the_models(name: str) -> None:
    """Over random lists of two rankers, unequal and empty ones among them."""
    rng = np.random.default_rng(1)
    items = [f"d{d:02}" for d in range(12)]
    for _ in range(100):
        lists = random_lists(rng, 2)
        named = {f"r{i}": [f"d{d:02}" for d in row] for i, row in enumerate(lists)}
        length = min(8, len({d for row in lists for d in row}))
        ours = list_exposures(name, named, items, length)
        theirs = method_of(name).exposures(as_rankings(lists), length, rng=rng)

        is_cut = len({min(length, len(row)) for row in lists if row}) > 1
        if is_cut and method_of(name).traits.shows_one_ranker:
            assert ours is None  # the ranks of a short list do not hold the long one
            continue
        assert ours is not None
        assert np.abs(ours[: len(theirs)] - theirs).max(initial=0.0) < 1e-12
        assert not ours[len(theirs) :].any()


def test_exposures_without_a_closed_form_are_not_given() -> None:
    """Nor where a ranked item is no candidate."""
    three = {"a": ["x"], "b": ["y"], "c": ["z"]}

    assert list_exposures("probabilistic", three, ["x", "y", "z"], 3) is None
    assert list_exposures("team-draft", three, ["x", "y", "z"], 3) is None
    with pytest.raises(ValueError, match="candidates must"):
        list_exposures("ab", three, ["x"], 3)
