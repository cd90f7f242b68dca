"""Every list that a method draws is possible, and no other one."""

import itertools

import numpy as np
import pytest

from models.interleaving.method import NO_ONE, NOBODY, Shown
from models.interleaving.possible_lists import is_possible, without_foreign
from models.interleaving.rankings import n_fair_places
from models.interleaving.registry import METHODS, method_of
from tests.interleaving_cases import LENIENT, LISTS_OF, as_rankings

Drawn = set[tuple[tuple[int, ...], tuple[int, ...]]]


def some_rankings(rng: np.random.Generator, n_rankers: int) -> np.ndarray:
    """Four documents, some lists shorter."""
    return as_rankings(
        [rng.permutation(4)[: rng.integers(1, 5)].tolist() for _ in range(n_rankers)]
    )


def drawn(name: str, rankings: np.ndarray, length: int) -> Drawn:
    """All lists of the method with their teams, by enumeration."""
    lists = [each for _, each in LISTS_OF[name](rankings, length)]
    teams = method_of(name).needs_assignments
    return {
        (tuple(each.shown.tolist()), tuple(each.assignments.tolist()) if teams else ())
        for each in lists
    }


@pytest.mark.parametrize("n_rankers", [2, 3])
@pytest.mark.parametrize("name", sorted(METHODS))
def test_what_is_possible_is_what_is_drawn(name: str, n_rankers: int) -> None:
    """Of all orders of documents, and of all teams.

    Below the shortest list, where drafts credit nobody, only that none is refused.
    """
    method = method_of(name)
    if method.traits.is_for_two and n_rankers > 2:
        return
    rng = np.random.default_rng(n_rankers)
    n_refused = 0
    for _ in range(40):
        rankings = some_rankings(rng, n_rankers)
        known = sorted({int(d) for d in rankings.ravel() if d >= 0})
        length = int(rng.integers(1, len(known) + 1))
        expected = drawn(name, rankings, length)
        if method.traits.shows_one_ranker:
            length = min(length, *(len(shown) for shown, _ in expected))
            expected = drawn(name, rankings, length)
        sides: list[tuple[int, ...]] = [()]
        if method.needs_assignments:
            sides = list(itertools.product(range(NOBODY, n_rankers), repeat=length))
        for order in itertools.permutations(known, length):
            for teams in sides:
                each = Shown(rankings, np.array(order), np.array(teams, dtype=np.int64))
                found = is_possible(method, each)
                is_drawn = (order, teams) in expected
                if name in LENIENT and length > n_fair_places(rankings):
                    assert found or not is_drawn
                    continue
                assert found == is_drawn
                n_refused += not is_drawn
    assert n_refused > 50 or name in ("probabilistic", "logging-policy")


def test_rounds_begin_after_what_all_share() -> None:
    """The second round may be the other's first; nobody drafts twice in one."""
    rankings = np.array([[0, 1, 2, 3, 4], [0, 5, 6, 7, 8]])
    for order, is_drawn in (([0, 1, 5, 6, 2], True), ([0, 1, 2, 5, 6], False)):
        each = Shown(rankings, np.array(order), NO_ONE)
        assert is_possible(method_of("sample-scored"), each) == is_drawn


def test_a_list_without_teams_may_be_any_ranker_s() -> None:
    """Where one ranker is shown, it is the top of one of theirs; named, of that one."""
    rankings = np.array([[0, 1, 2], [2, 0, 1], [1, 2, -1]])
    for order, teams, is_shown in (
        ([0, 1], [], True),
        ([1, 2], [], True),
        ([1, 0], [], False),
        ([1, 2], [2, 2], True),
        ([1, 2], [0, 0], False),
    ):
        each = Shown(rankings, np.array(order), np.array(teams, np.int64))
        assert is_possible(method_of("ab"), each) == is_shown


def test_a_repeated_document_is_impossible() -> None:
    """Whatever the method."""
    rankings = np.array([[0, 1, 2], [1, 0, 2]])
    for name in METHODS:
        assert not is_possible(
            method_of(name), Shown(rankings, np.array([0, 1, 0]), NO_ONE)
        )


def test_foreign_documents_take_no_place() -> None:
    """Nor do their clicks; teams stay with their documents."""
    rankings = np.array([[0, 1], [1, 0]])
    shown = Shown(rankings, np.array([5, 0, 3, 1]), np.array([-1, 0, -1, 1]))
    found, clicks = without_foreign(shown, np.array([True, False, True, True]))

    assert found.shown.tolist() == [0, 1]
    assert found.assignments.tolist() == [0, 1]
    assert clicks.tolist() == [False, True]


def test_the_lists_of_every_method_are_enumerated() -> None:
    """So that no law passes a method over."""
    assert sorted(LISTS_OF) == sorted(METHODS)
    assert set(METHODS) >= LENIENT
