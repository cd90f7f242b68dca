"""A split by which 0 is missing goes to RankLib where it sends 0 as comparisons do."""

import numpy as np
import pytest

from rankstream.operations.tree_files.ranklib_xml import read_ranklib, write_ranklib
from rankstream.operations.tree_files.tree_file import ModelFileRefused
from rankstream.wire.models.forests import MISSING_LEFT, ZERO_IS_MISSING
from tests.forest_factory import drawn_forest


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("side", [0, MISSING_LEFT])
def test_zero_goes_where_a_comparison_sends_it_or_is_refused(
    threshold: float, side: int
) -> None:
    """At most the threshold is left: 0 at a threshold of 0, too."""
    drawn = drawn_forest(1, n_trees=1, n_leaves=2)
    forest = drawn._replace(
        thresholds=np.array([threshold]),
        missing=np.array([ZERO_IS_MISSING + side], np.uint8),
    )
    if (side == MISSING_LEFT) != (threshold >= 0.0):
        with pytest.raises(ModelFileRefused, match="compare 0 like other numbers"):
            write_ranklib(forest, [], 6)
        return
    found = read_ranklib(write_ranklib(forest, [], 6))
    assert found.forest.thresholds.tolist() == [threshold]
