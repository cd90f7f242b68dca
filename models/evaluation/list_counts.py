"""What lists of several rankers were like: the counts behind health checks."""

import numpy as np
import numpy.typing as npt

from models.arrays import Integers
from models.interleaving.rankings import lengths_of
from models.kernels.compilation import compiled

TOTALS = (
    "impressions",
    "clicked_lists",
    "clicks",
    "foreign_clicks",
    "shown_places",
    "too_heavy",
    "without_assignments",
)
"""Counts of credited impressions. A foreign click is on what no ranker returned."""

BY_RANKER = (
    "empty",
    "documents",
    "places",
    "first_places",
    "lists",
    "clicks",
    "clicks_squared",
)
"""Counts of each ranker.

Lists that it left empty, documents that it returned; by assignment: its places,
lists whose first owned place was its own, lists that it owns a place of, clicks on
its places and their squares by list. The last four are of lists for which all rankers
returned something, so that those of one ranker are of the same queries as another's.
"""


@compiled
def count_list(
    rankings: Integers,
    shown: Integers,
    assignments: Integers,
    clicks: npt.NDArray[np.bool_],
    totals: Integers,
    by_ranker: Integers,
) -> None:
    """Count one list.

    Parameters
    ----------
    rankings : [n_rankers, depth]
    shown, clicks : [k]
    assignments : [k]
        Empty where the method has none.
    totals : [7]
        See `TOTALS`.
    by_ranker : [n_rankers, 7]
        See `BY_RANKER`.
    """
    n_clicks = clicks.sum()
    totals[0] += 1
    totals[1] += n_clicks > 0
    totals[2] += n_clicks
    totals[4] += shown.shape[0]
    if n_clicks > 0:
        totals[3] += _n_foreign(rankings, shown, clicks)
    lengths = lengths_of(rankings)
    by_ranker[:, 0] += lengths == 0
    by_ranker[:, 1] += lengths
    if assignments.shape[0] > 0:
        _count_teams(assignments, clicks, bool(lengths.all()), by_ranker)


@compiled
def _n_foreign(
    rankings: Integers, shown: Integers, clicks: npt.NDArray[np.bool_]
) -> int:
    """Clicks on documents that no ranker returned."""
    n_foreign = 0
    for place in range(shown.shape[0]):
        if clicks[place]:
            n_foreign += not (rankings == shown[place]).any()
    return n_foreign


@compiled
def _count_teams(
    assignments: Integers,
    clicks: npt.NDArray[np.bool_],
    all_took_part: bool,
    by_ranker: Integers,
) -> None:
    is_first = True
    places = np.zeros(by_ranker.shape[0], np.int64)
    own = np.zeros(by_ranker.shape[0], np.int64)
    for place in range(assignments.shape[0]):
        ranker = assignments[place]
        if ranker >= 0:
            places[ranker] += 1
            own[ranker] += clicks[place]
            by_ranker[ranker, 3] += is_first and all_took_part
            is_first = False
    by_ranker[:, 2] += places
    if all_took_part:
        by_ranker[:, 4] += places > 0
        by_ranker[:, 5] += own
        by_ranker[:, 6] += own * own
