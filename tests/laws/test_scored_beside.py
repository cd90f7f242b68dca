"""What may be scored beside the method that drew the lists, by enumeration."""

import numpy as np
import pytest

from models.interleaving.method import Shown
from models.interleaving.registry import METHODS, method_of
from rankstream.ranking.methods import METHODS as SERVED
from rankstream.ranking.scored_beside import scored_methods
from rankstream.settings import ExperimentSettings
from tests import interleaving_cases as cases
from tests.interleaving_cases import as_rankings

LENGTH = 4
BY_RANK = np.tile(0.9 / np.arange(1, LENGTH + 1)[:, None], (1, LENGTH))


def largest_preference(main: str, name: str, options: dict, n_rankers: int) -> float:
    """Of clicks that ignore relevance, over random rankings."""
    rng, largest = np.random.default_rng(1), 0.0
    method = method_of(name, options)
    for _ in range(8):
        rankings = cases.random_rankings(rng, n_rankers, LENGTH)
        lists = cases.LISTS_OF[main](rankings, LENGTH)
        chances = cases.independent_chances(lists, BY_RANK)
        found = cases.expectation(lists, cases.outcomes(method, lists), chances)
        largest = max(largest, float(np.abs(found).max()))
    return largest


OPTIONS = {
    "largest_weight": 1.5,
    "largest_preference": 2.0,
    "outcome": "clicks",
    "most_clicks": 1,
    "groups": 0,
    "selection": 2,
}
SAME = [
    *((main, other, {}) for main in SERVED for other in SERVED[main].fair_beside),
    *(
        (main, main, {option: OPTIONS[option]})
        for main in SERVED
        for option in SERVED[main].options_of_credit
    ),
]


@pytest.mark.parametrize(("main", "name", "options"), SAME)
def test_what_may_be_named_is_as_fair_as_on_its_own_lists(
    main: str, name: str, options: dict
) -> None:
    """Zero where clicks ignore relevance, but for methods that never are."""
    for n_rankers in (2,) if SERVED[main].is_for_two else (2, 3):
        found = largest_preference(main, name, options, n_rankers)
        own = largest_preference(name, name, options, n_rankers)
        assert found == pytest.approx(own, abs=1e-12)
        assert found < 1e-9 or not method_of(name).traits.is_fair


@pytest.mark.parametrize(
    ("main", "name"),
    [
        ("pairwise-preference", "probabilistic"),
        ("team-draft", "pairwise-preference"),
        ("probabilistic", "pairwise-preference"),
        ("ab", "probabilistic"),
        ("team-draft", "probabilistic"),
        ("balanced", "pairwise-preference"),
    ],
)
def test_other_methods_would_name_false_winners_and_are_refused(
    main: str, name: str
) -> None:
    """A preference of clicks that ignore relevance, and an error that says so."""
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""}, method=main, also={name: {}}
    )

    assert largest_preference(main, name, {}, 2) > 0.01
    with pytest.raises(ValueError, match="favours rankers on lists that it did not"):
        scored_methods(settings)


@pytest.mark.parametrize("lists", [[[0], [1, 2, 0]], [[0, 1, 2], [3, 0]]])
def test_click_rates_of_unequal_lists_are_unbiased(lists: list[list[int]]) -> None:
    """A/B and its counterfactual, whichever list is shown; bounds hold for all."""
    theta, relevance = np.array([1.0, 0.5, 0.3]), np.array([0.8, 0.2, 0.1, 0.6])
    options = {"examination": theta.tolist(), "length": 3}
    rankings = as_rankings(lists)
    truth = [sum(theta[i] * relevance[d] for i, d in enumerate(row)) for row in lists]
    for name in ("ab", "counterfactual:ab"):
        method = method_of(name, options if ":" in name else {})
        bounds, expected = method.bounds(rankings, 3), np.zeros((2, 2))
        for ranker, row in enumerate(lists):
            team = np.full(len(row), ranker)
            shown = Shown(rankings, np.array(row), team)
            rates = theta[: len(row)] * relevance[row]
            for clicks in cases.patterns(len(row)):
                chance = 0.5 * np.where(clicks, rates, 1.0 - rates).prod()
                found = method.infer(shown, clicks)
                assert (np.abs(found) <= bounds + 1e-12).all()
                expected += chance * found
        assert expected[0, 1] == pytest.approx(truth[0] - truth[1], abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"optimized"}))
def test_methods_are_fair_on_their_own_lists_where_they_say_so(name: str) -> None:
    """And not where they do not; the lists of `optimized` have chances of their own."""
    traits = method_of(name).traits
    for n_rankers in (2,) if traits.is_for_two else (2, 3):
        assert (largest_preference(name, name, {}, n_rankers) < 1e-9) == traits.is_fair


def test_as_published_pairwise_preference_says_that_it_is_not_fair() -> None:
    """Nor is it."""
    options = {"published": True}
    name = "pairwise-preference"

    assert not method_of(name, options).traits.is_fair
    assert largest_preference(name, name, options, 2) > 0.01
