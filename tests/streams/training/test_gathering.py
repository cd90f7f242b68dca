"""Features as a training sees them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.estimators.splits import Splits
from rankstream.ranking.checked_weights import CheckedWeights
from streams.training import gathering
from streams.training.feature_records import FeaturesRefused
from streams.training.gathering import Gathered, Scaling
from streams.training.item_tables import N_SPLITS, TRAINED_ON, QueryTables


def scaling(scale: float, normalisation: str = "none") -> Scaling:
    """Of a model of two features, the first of which is scaled."""
    factors = np.array([scale, 1.0], np.float32)
    weights = CheckedWeights(np.zeros(2, np.float32), None, factors)
    return Scaling(weights, normalisation)


@pytest.mark.parametrize("normalisation", ["none", "min-max"])
def test_one_feature_that_overflows_refuses_the_query(normalisation: str) -> None:
    """Though those beside it are finite; with its name."""
    features = np.array([[0.0, 1.0], [3.0, 2.0]], np.float32)
    assert np.isfinite(scaling(1e38, normalisation).of("shoes", features)).all()
    with pytest.raises(FeaturesRefused, match="those of query 'shoes' are not"):
        scaling(3e38, normalisation).of("shoes", features)


def test_it_is_told_now_and_then_how_many_queries_were_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each so many, in whatever chunks they come, and at the end."""
    monkeypatch.setattr(gathering, "QUERIES_AT_ONCE", 3)
    one = QueryTables(
        "shoes", (), (), np.zeros((4, N_SPLITS, 0)), np.ones(N_SPLITS, np.int64)
    )
    monkeypatch.setattr(gathering, "query_tables", lambda _, found: [one] * found.n)
    how: Any = SimpleNamespace(gatherer=lambda: SimpleNamespace(of=lambda x: x))
    without: Any = SimpleNamespace(n_features=2, n_partitions=1, of=lambda *_: None)
    gathered = Gathered(scaling(1.0), without, Splits(9, (0,), (1,), (2,), 0.5), how)
    chunks: Any = [SimpleNamespace(n=n, n_left_out=1) for n in (2, 0, 5, 1)]
    told: list[int] = []
    gathered.take(chunks, told.append)

    assert told == [3, 6, 8]
    assert (gathered.n_queries, gathered.n_without_features) == (8, 8)
    assert gathered.n_left_out == 4


def test_the_share_below_is_that_of_clicks_on_items_of_too_little_support() -> None:
    """Of 10 clicks of the groups that are learned from, 3 and 1 of them."""
    how: Any = SimpleNamespace(
        support=lambda own: own[1], clicked=lambda own: own[3], gatherer=None
    )
    without: Any = SimpleNamespace(n_features=2, n_partitions=1)
    gathered = Gathered(scaling(1.0), without, Splits(9, (0,), (1,), (2,), 0.5), how)
    sides = ([5.0, 0.5], [4.0, 3.0]), ([0.0, 2.0], [1.0, 2.0])
    files: list[Any] = []
    for support, clicked in sides:
        tables = np.full((4, N_SPLITS, 2), 100.0)
        tables[[1, 3], TRAINED_ON] = support, clicked
        chunk = SimpleNamespace(tables=tables)
        files.append(StoredOnce(chunk))
    gathered.training, gathered.held_out = files
    sizes = gathered.sizes(1.0)

    assert (sizes.n_below, sizes.n_clicks, sizes.n_items) == (2, 10, 4)
    assert sizes.share_below == pytest.approx(0.4)


class StoredOnce:
    """A file of one chunk, of one query with two items."""

    n_queries, n_items = 1, 2

    def __init__(self, chunk: Any) -> None:
        self._chunk = chunk

    def __len__(self) -> int:
        return 1

    def stored(self, number: int) -> Any:
        """The chunk."""
        assert number == 0
        return self._chunk
