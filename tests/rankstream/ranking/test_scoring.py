import itertools
import math

import numpy as np
import pytest

from models.rankers.registry import KINDS, ranker_of
from rankstream.ranking.scoring import draw_list, normalised, scores_of

FEATURES = np.random.default_rng(3).normal(2.0, 50.0, (17, 6)).astype(np.float32)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("hidden", [(4,), (5, 3)])
def test_scores_are_those_of_the_learner(kind: str, hidden: tuple[int, ...]) -> None:
    """Served scores equal the learner's, to the precision of float32."""
    hidden = () if kind == "linear" else hidden
    ranker = ranker_of(kind, 6, hidden)
    parameters = np.random.default_rng(4).normal(size=ranker.n_parameters)
    scaled = normalised(FEATURES, "min-max")
    served = scores_of(scaled, parameters.astype(np.float32), list(hidden), kind)
    learned = ranker.score(parameters, scaled.astype(np.float64))
    np.testing.assert_allclose(served, learned, atol=1e-5)


def test_min_max_runs_from_0_to_1_and_constants_are_0() -> None:
    """Each feature by itself; none leaves all as they are."""
    features = np.array([[1.0, 7.1, -2.0], [3.0, 7.1, 0.0], [2.0, 7.1, 6.0]], "f4")
    expected = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.25], [0.5, 0.0, 1.0]]

    assert normalised(features, "min-max").tolist() == expected
    assert normalised(features, "none").tolist() == features.tolist()


def test_standard_has_mean_0_and_deviation_1_and_constants_are_0() -> None:
    """A constant that rounds badly is still a constant; one document is alone."""
    features = FEATURES.copy()
    features[:, 2] = 0.1
    scaled = normalised(features, "standard")

    assert scaled.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-6)
    assert scaled.std(axis=0) == pytest.approx([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    for how in ("min-max", "standard"):
        assert not normalised(FEATURES[:1], how).any()


def test_features_far_off_and_wide_keep_their_order() -> None:
    """Neither the largest floats nor close neighbours far from 0 break a scale."""
    wide = np.array([[-3e38], [3e38], [0.0]], np.float32)
    assert normalised(wide, "min-max").ravel().tolist() == [0.0, 1.0, 0.5]
    near = np.array([[2.0**24], [2.0**24 + 2], [2.0**24 + 4]], np.float32)
    assert normalised(near, "min-max").ravel().tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="normalisation must be"):
        normalised(wide, "ranks")


def test_a_seed_draws_the_same_list_again() -> None:
    """What was shown can be made again from scores and seed."""
    scores = FEATURES[:, 0] / np.float32(50)
    for policy in ("plackett-luce", "deterministic", "tail-shuffle"):
        lists = [
            draw_list(scores, cutoff=5, policy=policy, seed=seed).tolist()
            for seed in (1, 2, 1)
        ]
        assert lists[0] == lists[2]
        assert len(set(lists[0])) == 5
    assert len(draw_list(scores, cutoff=50, policy="plackett-luce", seed=1)) == 17


def test_lists_are_drawn_as_plackett_luce_says() -> None:
    """Frequencies of all rankings of three documents lie near their probabilities."""
    scores, n_draws = np.array([0.9, 0.0, -0.7], np.float32), 6_000
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(n_draws):
        drawn = draw_list(scores, cutoff=3, policy="plackett-luce", seed=seed)
        ranking = tuple(drawn.tolist())
        counts[ranking] = counts.get(ranking, 0) + 1
    for order in itertools.permutations(range(3)):
        weights = [math.exp(scores[row]) for row in order]
        chance = weights[0] / sum(weights) * weights[1] / sum(weights[1:])
        deviation = math.sqrt(n_draws * chance * (1 - chance))
        assert abs(counts[order] - n_draws * chance) < 4.5 * deviation


def test_tail_shuffle_draws_the_last_place_only() -> None:
    """The first places are sorted, every other document comes last equally often."""
    scores = np.array([0.0, 3.0, 1.0, 2.0, -1.0], np.float32)
    drawn = [
        draw_list(scores, cutoff=3, policy="tail-shuffle", seed=seed).tolist()
        for seed in range(900)
    ]
    assert {tuple(order[:2]) for order in drawn} == {(1, 3)}
    for row in (0, 2, 4):
        n_last = sum(order[2] == row for order in drawn)
        assert abs(n_last - 300) < 4.5 * math.sqrt(900 * 2 / 9)


def test_wrong_draws_are_refused() -> None:
    """A policy must be known and a list not empty."""
    scores = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="policy must be one of"):
        draw_list(scores, cutoff=3, policy="random", seed=1)
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        draw_list(scores, cutoff=0, policy="deterministic", seed=1)
