"""What DBGD and MGD draw and step by in their compiled loop."""

import numpy as np
import pytest

from models.click_models.cascade import cascade_of
from models.learners.duel_learner import ORACLE, TEAM_DRAFT, DuelConfig
from rankstream.lab.closed_loops.duel_loop import (
    DuelLoop,
    Duels,
    add_winners,
    fill_directions,
    make_list,
)
from rankstream.lab.closed_loops.world import World


@pytest.mark.parametrize("unit", [0.25, 1.0, 3.0])
def test_directions_have_the_length_asked_for(unit: float) -> None:
    """In every direction alike."""
    directions = np.empty((4_000, 5), np.float32)
    fill_directions(directions, unit, np.random.default_rng(1))

    lengths = np.linalg.norm(directions.astype(np.float64), axis=1)
    assert lengths == pytest.approx(np.full(4_000, unit), rel=1e-6)
    assert np.abs(directions.mean(axis=0)).max() < 4.5 * unit / np.sqrt(5 * 4_000)


def test_winners_move_it_by_their_mean() -> None:
    """Not by their sum; who lost does not count."""
    directions = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    gradient = np.full(3, 7.0)
    is_winner = np.array([False, True, False, True, False])
    add_winners(directions, is_winner, 2, gradient)

    assert gradient.tolist() == directions[[0, 2]].mean(axis=0).tolist()


@pytest.mark.parametrize("own_ties", [False, True])
@pytest.mark.parametrize("comparison", [TEAM_DRAFT, ORACLE])
def test_lists_are_made_by_the_comparison_asked_for(
    comparison: int, own_ties: bool
) -> None:
    """Teams take turns with their best; an oracle judges lists that users like."""
    rng = np.random.default_rng(3)
    duels = Duels(1, comparison, 1.0, 3.0, 0, own_ties)
    scores = np.array([[3, 0], [2, 1], [1, 2], [0, 3]], np.float32)
    shares, order = np.full(4, 0.25), np.empty(4, np.int64)
    ranks = np.zeros((4, 2), np.int32)
    rows, teams = np.full((2, 2), -1)
    for _ in range(20):
        make_list(scores, duels, shares, order, ranks, rows, teams, rng)

        assert ranks.tolist() == [[1, 4], [2, 3], [3, 2], [4, 1]]
        if comparison == ORACLE:
            assert rows.tolist() == [0, 1]
        else:
            assert sorted(teams) == [0, 1]
            assert rows.tolist() == [3 * team for team in teams]


@pytest.mark.parametrize("n_candidates", [1, 9])
def test_the_first_step_is_as_long_as_the_vectors(n_candidates: int) -> None:
    """The rate times the unit for one candidate, and less for a mean of several."""
    rng = np.random.default_rng(2)
    world = World(
        rng.random((12, 6)).astype(np.float32),
        rng.integers(3, size=12),
        np.array([0, 12]),
    )
    config = DuelConfig(6, learning_rate=0.5, n_candidates=n_candidates, unit=2.0)
    loop = DuelLoop(config, world, cascade_of("perfect", 3), rng=rng)
    while loop.updates == 0:
        loop.run(1)
    length = np.linalg.norm(loop.parameters)

    if n_candidates == 1:
        assert length == pytest.approx(1.0, rel=1e-6)
    else:
        assert 0.01 < length <= 1.0 + 1e-6
