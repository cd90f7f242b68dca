"""Which of position bias and trust bias clicks show, of those a curve is from."""

from collections.abc import Iterable, Sequence

import numpy as np

from models.bias.position_alone import NOT_TOLD, trust_test
from streams.statistics.columns import Columns
from streams.training.curve_estimator import CurveEstimator
from streams.training.curve_views import Part, every, views_of
from streams.training.estimated_curve import BY_POSITION, CHOSEN, Takes

CHOSEN_FROM_CLICKS = "policies were chosen from the same clicks"


def bias_told(
    chunks: Iterable[Columns],
    groups: Sequence[int],
    source: str,
    how: CurveEstimator = BY_POSITION,
    takes: Takes = every,
) -> str:
    """In words which holds, by `models.bias.position_alone`; one pass over columns.

    Parameters
    ----------
    chunks
        In their order; see `streams.statistics.columns`.
    groups
        Whose clicks the curve is from; empty where there is none.
    source
        The same in words: where policies were chosen from these clicks, no test holds.
    how
        The curve was fitted.
    takes
        Whether the curve is from lists of an intervention.
    """
    if not groups:
        return ""
    if CHOSEN in source:
        return NOT_TOLD + CHOSEN_FROM_CLICKS
    # What was never clicked would be left out for having had no luck.
    asked = how.asked._replace(keeps_unclicked=True, is_by_policy=False)
    views = views_of(chunks, asked, [Part(groups, takes)]).views(0)
    rng = np.random.default_rng(how.curve.seed)
    return trust_test(views, rng, n_ranks=asked.n_ranks).told()
