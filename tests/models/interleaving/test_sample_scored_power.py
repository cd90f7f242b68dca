"""Credit of sample-scored multileaving falls with the cube of the rank."""

import numpy as np
import pytest

from models.interleaving.method import NO_ONE, Shown
from models.interleaving.sample_scored import credits_of_places
from rankstream.settings import ExperimentSettings
from streams.comparisons.comparison import Comparison

N_SHOWN = 12


def ranked_at(places: tuple[int, ...]) -> list[int]:
    """A ranking of documents 0 .. 11 with 0, 1 .. at these ranks."""
    others = iter(range(len(places), N_SHOWN))
    return [
        places.index(rank) if rank in places else next(others)
        for rank in range(1, N_SHOWN + 1)
    ]


@pytest.mark.parametrize(
    ("one", "other", "preferred", "powers"),
    [
        # 1/4^3 + 1/10^3 + 1/11^3 + 1/12^3 = .0180 > .0169 = 1/5^3 + 1/6^3 + 1/7^3 + ..
        ((4, 10, 11, 12), (5, 6, 7, 9), 1.0, (1.0, 2.0, 2.5)),
        # 1/5^3 + 1/10^3 + 1/11^3 + 1/12^3 = .0103 < .0109 = 1/6^3 + 1/7^3 + 1/8^3 + ..
        ((5, 10, 11, 12), (6, 7, 8, 9), -1.0, (3.5, 4.0, 5.0)),
    ],
)
def test_no_other_power_decides_as_the_cube_does(
    one: tuple[int, ...],
    other: tuple[int, ...],
    preferred: float,
    powers: tuple[float, ...],
) -> None:
    """By hand, of clicks on four documents at these ranks of two rankers."""
    rankings = np.array([ranked_at(one), ranked_at(other)])
    shown = Shown(rankings, np.arange(N_SHOWN), NO_ONE)
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, method="sample-scored")
    method = Comparison("x", settings).methods["sample-scored"]

    def by_hand(power: float) -> float:
        gain, loss = (sum(1.0 / rank**power for rank in each) for each in (one, other))
        return float(np.sign(gain - loss))

    assert by_hand(3.0) == preferred
    assert [by_hand(power) for power in powers] == [-preferred] * len(powers)
    assert method.infer(shown, np.arange(N_SHOWN) < 4)[0, 1] == preferred


def test_ranks_count_among_the_shown_documents_only() -> None:
    """Ranks 2, 4 and 5 of a ranking are 1, 2 and 3 of the list: 1, 1/8, 1/27."""
    rankings = np.array([[5, 0, 6, 1, 2], [2, 1, 0, 3, 4]])
    found = credits_of_places(Shown(rankings, np.array([0, 1, 2]), NO_ONE))

    assert found[0].tolist() == pytest.approx([1.0, 1 / 8, 1 / 27])
    assert found[1].tolist() == pytest.approx([1 / 27, 1 / 8, 1.0])
