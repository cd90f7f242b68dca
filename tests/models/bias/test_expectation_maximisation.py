"""How many turns an ascent takes."""

import numpy as np
import pytest

from models.arrays import Floats
from models.bias.expectation_maximisation import Turn, ascend


@pytest.mark.parametrize("most_turns", [1, 2, 3, 10, 1_000])
def test_every_turn_is_counted_also_those_ahead(most_turns: int) -> None:
    """None begins after the most, but for the second of a step."""
    target, factors = np.array([0.3, 0.7]), np.array([0.999, 0.5])
    begun: list[Floats] = []

    def turn(point: Floats) -> Turn:
        begun.append(point)
        off = point - target
        return Turn(target + factors * off, -float(off @ off))

    found = ascend(
        np.array([0.9, 0.1]),
        turn,
        lambda x: np.clip(x, 0.0, 1.0),
        lambda x: x,
        most_turns=most_turns,
    )

    assert found.n_turns == len(begun) <= most_turns + 1
    assert found.is_converged == (most_turns == 1_000)
    assert len(found.log_likelihoods) < found.n_turns
