"""Laws of how exact the fields that correct clicks must be."""

import pytest

from streams.recount.differences import Verdict, compare_weights
from streams.recount.weights import ItemWeights

CLICKED, BETA, ALPHA = 1_000, 1_000.0 - 1e-6, 500.0
"""Clicks that bias explains nearly: their difference has lost most of its digits."""


@pytest.mark.parametrize(
    ("off_by", "is_found"), [(1e-9, False), (5e-7, True), (1e-3, True)]
)
def test_a_difference_is_as_exact_as_what_it_is_taken_of(
    off_by: float, is_found: bool
) -> None:
    """What two orders of adding differ by is nothing wrong; a part in 1e9 is."""
    expected = {"item": ItemWeights(3_000, CLICKED, ALPHA, BETA)}
    found = {"item": ItemWeights(3_000, CLICKED, ALPHA, BETA + off_by)}
    verdict = Verdict()
    compare_weights("q", expected, found, verdict)
    assert bool(verdict.wrong) is is_found


def test_an_item_that_is_not_there_is_wrong() -> None:
    """Whatever its size."""
    verdict = Verdict()
    compare_weights(
        "q", {"item": ItemWeights(3_000, CLICKED, ALPHA, BETA)}, {}, verdict
    )
    assert verdict.wrong >= 4
