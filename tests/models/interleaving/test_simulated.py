"""Comparisons on simulated users: who they compare, and what they find."""

import numpy as np
import pytest

from models.interleaving.simulated import (
    NAMES,
    Queries,
    Users,
    binary_error,
    clicks_on,
    preferences_after,
    rank_by_features,
)

PERFECT = Users(np.array([0.0, 1.0]), np.zeros(2), True)
"""They click on all that is relevant."""


@pytest.fixture
def queries() -> Queries:
    """Two, of which the first ranker knows what is relevant; the second errs."""
    labels = np.array([0, 1, 0, 1, 0, 0, 1])
    features = np.column_stack((labels, 1.0 - labels))
    rng = np.random.default_rng(1)
    return rank_by_features(features, labels, np.array([0, 3, 7]), rng=rng)


def test_each_feature_ranks_the_documents_of_each_query() -> None:
    """Highest first, numbered within their query."""
    features = np.array([[1.0, 5.0], [2.0, 4.0], [0.3, 0.1], [0.1, 0.2], [0.2, 0.3]])
    offsets, labels = np.array([0, 2, 5]), np.zeros(5, np.int64)
    found = rank_by_features(features, labels, offsets, rng=np.random.default_rng(2))
    first, second = found.rankings[:4].reshape(2, 2), found.rankings[4:].reshape(2, 3)
    assert first.tolist() == [[1, 0], [0, 1]]
    assert second.tolist() == [[0, 2, 1], [2, 1, 0]]
    assert found.n_rankers == 2


def test_equal_features_are_ranked_at_random() -> None:
    """By a draw of each ranker's own."""
    features, labels = np.zeros((400, 2)), np.zeros(400, np.int64)
    offsets = np.arange(0, 401, 2)
    found = rank_by_features(features, labels, offsets, rng=np.random.default_rng(3))
    is_first = found.rankings.reshape(200, 2, 2)[:, :, 0] == 0
    chances = [is_first[:, 0], is_first[:, 1], is_first[:, 0] == is_first[:, 1]]
    assert all(abs(each.mean() - 0.5) < 4 * 0.5 / np.sqrt(200) for each in chances)


def test_users_click_down_to_where_they_stop() -> None:
    """At a click, or at any document of a grade."""
    labels, shown = np.array([0, 1, 1]), np.array([0, 1, 2])
    sure, rng = np.ones(2), np.random.default_rng(4)

    def clicks(click: list[float], *, stop_requires_click: bool) -> list[bool]:
        clicked: list[bool] = clicks_on(
            labels, shown, np.array(click), sure, stop_requires_click, rng
        ).tolist()
        return clicked

    assert clicks([0.0, 1.0], stop_requires_click=True) == [False, True, False]
    assert clicks([0.0, 1.0], stop_requires_click=False) == [False, False, False]
    assert clicks([0.0, 0.0], stop_requires_click=True) == [False, False, False]


@pytest.mark.parametrize("method", range(len(NAMES)), ids=NAMES)
def test_the_ranker_that_knows_is_preferred(method: int, queries: Queries) -> None:
    """And the sums at a point are those of fewer impressions and of more."""
    points = np.array([10, 40])
    found = preferences_after(
        method, queries, PERFECT, points, length=3, rng=np.random.default_rng(5)
    )
    alone = preferences_after(
        method, queries, PERFECT, points[:1], length=3, rng=np.random.default_rng(5)
    )
    assert found == pytest.approx(-found.transpose(0, 2, 1))
    assert found[1, 0, 1] > found[0, 0, 1] > 0.0
    assert found[:1].tolist() == alone.tolist()
    assert binary_error(found[1], np.array([[0.0, 1.0], [-1.0, 0.0]])) == 0.0


def test_errors_are_a_share_of_ordered_pairs() -> None:
    """Where two are equal, only a preference of 0 is right."""
    truth = np.array([[0.0, 1.0, 1.0], [-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    assert binary_error(truth, truth) == 0.0
    assert binary_error(-truth, truth) == pytest.approx(4 / 6)
    wrong = truth.copy()
    wrong[1, 2], wrong[2, 1] = 1.0, -1.0
    assert binary_error(wrong, truth) == pytest.approx(2 / 6)
