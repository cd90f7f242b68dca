"""How far lists of unequal length go together."""

import itertools

from models.interleaving.rankings import n_fair_places, n_shared
from tests.interleaving_cases import as_rankings


def test_places_are_fair_down_to_the_shortest_list_that_is_not_empty() -> None:
    """Whoever has it, and whoever has none; equal lists share as many."""
    for lengths in itertools.product(range(4), repeat=3):
        shortest = min((n for n in lengths if n), default=0)
        rankings = as_rankings([list(range(n)) for n in lengths])

        assert n_fair_places(rankings) == n_shared(rankings) == shortest
