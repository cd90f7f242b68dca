"""How likely each item was at each rank of a list, by the policy that drew it."""

import numpy as np
import numpy.typing as npt

from rankstream.ranking.ranked_list import Ranking
from streams.native.placing import placements_of_scores

Floats = npt.NDArray[np.float64]


def exposures_of(ranking: Ranking) -> Floats:
    """P(item at rank), [n_items, n_ranks], items in the order of the request.

    Raises
    ------
    ValueError
        For a policy that has no closed form.
    """
    n_ranks, n_items = len(ranking.order), len(ranking.scores)
    if ranking.policy == "plackett-luce":
        scores = ranking.scores.astype(np.float64)
        found: Floats = placements_of_scores(scores[None, :], n_ranks)[0]
        return found
    if ranking.policy not in ("deterministic", "tail-shuffle"):
        raise ValueError(
            "exposures must be asked for with a policy that has a closed form; got "
            f"{ranking.policy!r}"
        )
    placed = np.zeros((n_items, n_ranks))
    by_score = np.argsort(-ranking.scores, kind="stable")
    n_fixed = n_ranks if ranking.policy == "deterministic" else n_ranks - 1
    placed[by_score[:n_fixed], np.arange(n_fixed)] = 1.0
    if n_fixed < n_ranks:
        placed[by_score[n_fixed:], n_fixed] = 1.0 / (n_items - n_fixed)
    return placed
