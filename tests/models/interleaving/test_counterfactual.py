"""Of which lists clicks per list can be estimated."""

import numpy as np
import pytest

from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import NO_ONE, Shown
from models.interleaving.split import Split
from tests.interleaving_cases import as_rankings


@pytest.mark.parametrize(
    ("own_length", "length", "n_whole"), [(0, 3, 3), (2, 3, 2), (5, 3, 4), (0, 9, 4)]
)
def test_a_list_is_whole_by_the_length_asked_for(
    own_length: int, length: int, n_whole: int
) -> None:
    """Its own before that of the call, and never more than there is to show."""
    method = Counterfactual(Split(), (1.0,), own_length)
    rankings = as_rankings([[0, 1, 2, 3], [3, 2]])
    for n_shown in range(5):
        shown = Shown(rankings, np.arange(n_shown), NO_ONE)
        assert method.is_whole(shown, length) == (n_shown >= n_whole)


def test_a_list_of_one_ranker_is_whole_where_that_ranker_s_is() -> None:
    """The other one returned more."""
    method = Counterfactual(Split(), (1.0,))
    rankings = as_rankings([[0, 1, 2, 3], [3, 2]])
    for ranker, is_whole in ((0, False), (1, True)):
        shown = Shown(rankings, rankings[ranker, :2], np.full(2, ranker))
        assert method.is_whole(shown, 4) == is_whole
