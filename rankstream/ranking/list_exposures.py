"""P(item at rank) of combined lists in closed form, where they are served.

With it the event says `policy = "logged"`, and the statistics keep exact propensities
while rankers are compared. The same numbers as `models.interleaving`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from rankstream.ranking.closed_forms import Floats
from rankstream.ranking.methods import METHODS, check_method


def list_exposures(
    method: str,
    rankings: Mapping[str, Sequence[str]],
    candidates: Sequence[str],
    length: int,
) -> Floats | None:
    """P(candidate at rank) of the lists that `combining.combine` draws.

    Parameters
    ----------
    candidates
        All items of the rankings, and maybe more.
    length
        Of the lists that are asked for; fewer are shown where there are fewer items.

    Returns
    -------
    [n_candidates, length]
        None where no closed form is known: probabilistic multileaving, and team
        drafts of more than two rankers; and for A/B lists of unequal length, as the
        ranks of a shorter one do not hold what the longer one would have shown.

    Raises
    ------
    ValueError
        Where a ranked item is no candidate, or the method is unknown.
    """
    check_method(method)
    row_of = {item: row for row, item in enumerate(candidates)}
    lists = [list(dict.fromkeys(rankings[name])) for name in sorted(rankings)]
    unknown = {item for row in lists for item in row} - set(row_of)
    if unknown:
        raise ValueError(f"candidates must name every ranked item; not {min(unknown)}")
    found = np.zeros((len(candidates), length))
    fill = METHODS[method].exposures
    return found if fill is not None and fill(lists, row_of, found) else None
