import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.ranker import Ranker
from rankstream.ranking import compiled_trees
from rankstream.ranking.compiled_trees import compiled_scores
from rankstream.ranking.tree_scoring import PATHS_AT_ONCE, TreeScorer
from rankstream.wire.envelope import TREES
from rankstream.wire.models.forests import NAN_IS_MISSING, NO_TREES
from tests.forest_factory import (
    drawn_forest,
    packed,
    scored_by_hand,
    telling_documents,
)
from tests.snapshot_factory import envelope


def bits(values: np.ndarray) -> list[int]:
    """What tells 0 from -0, and one rounding from another."""
    found: list[int] = np.asarray(values, np.float64).view(np.int64).tolist()
    return found


FORESTS = {
    "all kinds of missing": (drawn_forest(1), 6),
    "plain": (drawn_forest(2, kinds=[NAN_IS_MISSING]), 6),
    "one leaf": (drawn_forest(3, n_trees=3, n_leaves=1), 1),
    "one feature": (drawn_forest(4, n_features=1), 1),
    "a thousand trees": (drawn_forest(5, n_trees=1_000, n_leaves=4), 6),
    "none": (NO_TREES, 4),
}


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("is_whole", [True, False])
def test_compiled_and_numpy_give_the_same_bits(name: str, *, is_whole: bool) -> None:
    """Those of a walk from node to node, in the order of the trees."""
    forest, n_features = FORESTS[name]
    features = telling_documents(forest, 40, n_features, seed=7)
    if is_whole:
        features[np.isnan(features)] = 0.25
    scorer = TreeScorer(forest)
    expected = bits(np.array(scored_by_hand(forest, features)))

    assert bits(scorer.scores_in_numpy(features)) == expected
    assert compiled_scores() is not None
    assert bits(scorer.scores(features)) == expected


def test_many_documents_are_scored_in_parts_to_the_same_bits() -> None:
    """More paths than numpy follows at once; a matrix that is not contiguous, too."""
    forest = drawn_forest(6, n_trees=9)
    features = telling_documents(forest, PATHS_AT_ONCE // 4, 12, seed=2)[:, ::2]
    scorer = TreeScorer(forest)
    assert bits(scorer.scores_in_numpy(features)) == bits(scorer.scores(features))
    one_by_one = [scorer.scores(features[n : n + 1])[0] for n in range(50)]
    assert bits(scorer.scores(features)[:50]) == bits(np.array(one_by_one))


def test_no_documents_have_no_scores() -> None:
    """Whichever way they are made."""
    features = np.zeros((0, 6), np.float32)
    for scores in (
        TreeScorer(drawn_forest(1)).scores,
        TreeScorer(drawn_forest(1)).scores_in_numpy,
    ):
        assert scores(features).shape == (0,)


def test_leaves_that_are_minus_zero_sum_to_zero() -> None:
    """As each sum begins with 0, whichever way it is made."""
    forest = drawn_forest(1, n_trees=2, n_leaves=1)._replace(
        leaves=np.array([-0.0] * 2)
    )
    features = np.zeros((3, 1), np.float32)
    for scores in (TreeScorer(forest).scores, TreeScorer(forest).scores_in_numpy):
        assert bits(scores(features)) == [0, 0, 0]


def test_scores_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is missing, is none, or has no such function, numpy scores."""
    forest = drawn_forest(1)
    features = telling_documents(forest, 10, 6)
    expected = bits(TreeScorer(forest).scores(features))
    monkeypatch.setattr(compiled_trees, "FOLDER", tmp_path)
    for content in (None, b"no library"):
        compiled_scores.cache_clear()
        if content is not None:
            (tmp_path / "libfold.core.so").write_bytes(content)
        assert compiled_scores() is None
        assert bits(TreeScorer(forest).scores(features)) == expected
    compiled_scores.cache_clear()
    monkeypatch.undo()
    monkeypatch.setattr(compiled_trees, "FUNCTION", "forest_scores_0")
    assert compiled_scores() is None
    compiled_scores.cache_clear()


def ranker_of_trees(**fields: Any) -> Ranker:
    """A ranker that has loaded trees over six features."""
    given = envelope(3, kind=TREES, n_features=6, weights=packed(), **fields)
    ranker = Ranker("m", source=lambda: given)
    ranker.load()
    return ranker


def test_a_ranker_serves_trees() -> None:
    """Its scores are those of the forest, in single precision, as they are logged."""
    forest = drawn_forest(1)
    features = np.random.default_rng(3).normal(size=(9, 6)).astype(np.float32)
    ranking = ranker_of_trees().rank(features, cutoff=4, policy="deterministic")

    expected = np.array(scored_by_hand(forest, features))
    assert ranking.scores.tolist() == expected.astype(np.float32).tolist()
    assert ranking.order.tolist() == np.argsort(-expected, kind="stable")[:4].tolist()
    assert ranking.features.tolist() == features.tolist()


def logged(ranker: Ranker, features: np.ndarray, **fields: Any) -> dict[str, object]:
    """The event of a list of all documents."""
    items = [f"item {number}" for number in range(len(features))]
    ranking = ranker.rank(features, cutoff=len(items), seed=5)
    event = ranker.query_event(
        ranking, query_id="q", items=items, at_ms=1_700_000_000_000, **fields
    )
    found: dict[str, object] = json.loads(event)
    return found


def test_features_that_are_missing_are_ranked_by_and_not_logged() -> None:
    """An event has finite numbers only; lists that lack nothing are logged whole."""
    features = np.random.default_rng(4).normal(size=(5, 6)).astype(np.float32)
    ranker = ranker_of_trees(log_candidates=True)
    whole = logged(ranker, features)
    assert {"features", "candidate_features", "features_hash"} <= whole.keys()

    features[2, 3] = np.nan
    lacking = logged(ranker, features, log_candidates=True)
    assert {"scores", "candidates"} <= lacking.keys()
    assert not {"features", "candidate_features", "features_hash"} & lacking.keys()
    other = Ranker("m", source=lambda: envelope(3, n_features=6))
    other.load()
    with pytest.raises(ValueError, match="features must be finite"):
        other.rank(features)


def test_what_trees_cannot_do_is_refused() -> None:
    """Infinite features, and random candidates near a ranker without weights."""
    ranker, features = ranker_of_trees(), np.zeros((3, 6), np.float32)
    with pytest.raises(ValueError, match="policy must be another than 'multileave'"):
        ranker.rank(features, policy="multileave")
    features[1, 2] = np.inf
    with pytest.raises(ValueError, match="features must be finite"):
        ranker.rank(features)
