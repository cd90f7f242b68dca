"""Clicks that a policy would get, estimated from what other policies showed.

    clicks per list = sum over items and ranks of
                      P(item at rank) (alpha[rank] value(item) + beta[rank])

Values are estimates from groups of sessions that the policy was not trained on: from
those that it was, the figure would say how well it knows their noise. It is a point:
policies that logged were chosen from clicks, and pooled propensities then have no
interval (see `models.estimators.intervention_aware`).

References
----------
Oosterhuis & de Rijke (SIGIR 2020) for policies that show the first ranks alone,
(WSDM 2021) for values from several policies.
"""

from typing import NamedTuple

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.plackett_luce.placement import placement_batch
from models.rankers.ranker import Scorer
from models.training.exploration import Placements
from models.training.query_chunk import ChunkSource
from models.training.ranker_scores import linear_unless, spans


class Reward(NamedTuple):
    """What a policy would get per list.

    Parameters
    ----------
    clicks
        None where it is refused. Items without a value count as if never clicked but
        by trust bias, so that it is rather too low.
    unsupported
        Share, in [0, 1], of what the policy would have looked at (expected alpha) that
        goes to items without a value.
    reason
        Why it is refused; empty where it is not.
    """

    clicks: float | None
    unsupported: float
    reason: str


def estimated_reward(  # noqa: PLR0913  all that an estimate depends on
    weights: Floats,
    chunks: ChunkSource,
    curve: BiasCurve,
    *,
    cutoff: int,
    most_unsupported: float,
    placements: Placements = placement_batch,
    ranker: Scorer | None = None,
) -> Reward:
    """Estimated clicks per list of the Plackett-Luce policy of a ranker.

    Parameters
    ----------
    weights : [n_parameters]
        As served, exploration and all.
    chunks
        Values are `models.estimators.intervention_aware.estimates` of the selection
        groups, kept with enough support; weights are shares of lists.
    curve
        Ranks that it does not have count nothing.
    cutoff
        Ranks that are shown.
    most_unsupported
        Above this share the estimate is refused.
    placements
        Computes probabilities of ranks.
    ranker
        A linear one if not given.
    """
    ranker = linear_unless(ranker, len(weights))
    clicks = looked = unknown = total = 0.0
    n_ranks = min(cutoff, curve.n_ranks)
    for number in range(len(chunks)):
        chunk = chunks[number]
        shares = chunk.weights.tolist()
        scores = ranker.item_scores(weights, chunk.features)
        for share, (begin, end) in zip(shares, spans(chunk), strict=True):
            shown = min(n_ranks, end - begin)
            total += share
            if not shown:
                continue
            placed = placements(scores[None, begin:end], shown)[0]
            seen = placed @ curve.alpha[:shown]
            kept = chunk.is_kept[begin:end]
            gained = float((seen * chunk.values[begin:end])[kept].sum())
            clicks += share * (gained + float((placed @ curve.beta[:shown]).sum()))
            looked += share * float(seen.sum())
            unknown += share * float(seen[~kept].sum())
    if not looked:
        return Reward(None, 0.0, "no list of the selection groups has items")
    unsupported = unknown / looked
    if unsupported > most_unsupported:
        reason = (
            f"items of too little support in the selection groups would get "
            f"{unsupported:.1%} of what is looked at, more than {most_unsupported:.1%}"
        )
        return Reward(None, unsupported, reason)
    return Reward(clicks / total, unsupported, "")
