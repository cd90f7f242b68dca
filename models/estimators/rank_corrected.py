"""Estimators that correct a click at the rank where it was; no policy need be known."""

import numpy as np

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, LogSums, log_sums
from models.estimators.item_estimates import (
    AS_IRRELEVANT,
    NOT_SHOWN,
    ItemEstimates,
    click_weights,
    divided,
    examination,
    reasons_of,
    remarks_of,
    summed,
    unseen_share,
)


def naive(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of all ranks over lists that have the item among their candidates.

        value = clicks / n

    Its mean is E[alpha] R + E[beta]: relevance only where every list shows the item at
    a rank where looking is sure. Support is the number of lists.

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    curve
        Says which lists could show the item; clicks are not corrected by it.
    least
        Raises nothing: no click weighs more than another.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 7.2.3, the naive estimator.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    lists = np.maximum(sums.impressions.sum(axis=0), least)
    clicked = log.clicked.astype(np.float64)
    # Items of no list that is left have rows, without clicks.
    weights = 1.0 / np.where(lists > 0.0, lists, 1.0)[log.items]
    clicks = click_weights(log.items, clicked, weights, len(lists))
    total = summed(log.items, clicked, len(lists))
    return ItemEstimates(
        divided(total, lists),
        reasons_of(sums),
        lists,
        unseen_share(sums),
        clicks,
        (),
    )


def oblivious(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks, each over the examination of its rank, over lists.

        value = sum over ranks of  clicks / theta  / n

    The policy need not be known. An item that a list does not show counts as seen
    and not clicked, so the mean is P(shown) R: biased by selection, and by trust.

    As in `naive`, with theta = alpha + beta; see
    `models.estimators.item_estimates.examination`. `least` is what it is raised to, in
    training only.

    References
    ----------
    Joachims, Swaminathan & Schnabel (WSDM 2017); Oosterhuis (PhD thesis, 2020), section
    7.2.3, the policy-oblivious estimator and its condition.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    lists = sums.impressions.sum(axis=0)
    return _over_examination(log, curve, sums, lists, least, AS_IRRELEVANT)


def rerank(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks, each over the examination of its rank, over lists that showed the item.

        value = sum over ranks of  clicks / theta  / n_shown

    Unbiased for the relevance of what was shown, given that it was, without trust bias.
    Of all else it says nothing: a reward that leaves items without a value out, as one
    that ranks the shown items again does, is P(ever shown) R of each item, and too
    little.

    As in `oblivious`.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 7.5, the rerank baseline.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    lists = sums.shown.sum(axis=0)
    return _over_examination(log, curve, sums, lists, least, NOT_SHOWN)


def affine(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks less beta, over alpha, of the ranks at which the item was, over lists.

        value = sum over ranks of  (clicks - shown beta) / alpha  / n

    The policy need not be known. An item that a list does not show counts as not
    relevant, so the mean is P(shown) R: biased by selection.

    As in `naive`; `least` is what alpha is raised to, in training only; beta is not.

    References
    ----------
    Vardasbi, Oosterhuis & de Rijke (CIKM 2020), "When Inverse Propensity Scoring does
    not Work", section 4; Oosterhuis (PhD thesis, 2020), section 10.3.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    lists, shown = sums.impressions.sum(axis=0), sums.shown.sum(axis=0)
    is_shown = (log.ranks <= curve.n_ranks) & (log.shown > 0)
    items, rows = log.items[is_shown], log.ranks[is_shown] - 1
    clicked = log.clicked[is_shown].astype(np.float64)
    weights = 1.0 / (np.maximum(curve.alpha[rows], least) * lists[items])
    by_trust = log.shown[is_shown] * curve.beta[rows]
    total = summed(items, (clicked - by_trust) * weights, len(lists))
    return ItemEstimates(
        np.where(lists > 0.0, total, np.nan),
        reasons_of(sums, shown, AS_IRRELEVANT),
        sums.shown_alpha.sum(axis=0),
        unseen_share(sums),
        click_weights(items, clicked, weights, len(lists)),
        remarks_of(log, curve),
    )


def affine_shown(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks less beta of the ranks at which the item was, over alpha of these.

        value = (clicks - sum of shown beta) / sum of shown alpha

    The policy need not be known. Given what lists showed, clicks have the mean
    shown alpha R + shown beta, so lists that leave the item out say nothing of it, and
    add nothing. It is what `intervention_aware` gives where each list was sure: its
    sums, with what was shown in the place of what was expected.

    As in `naive`; `least` is what the average of alpha is raised to, in training only.

    References
    ----------
    Vardasbi, Oosterhuis & de Rijke (CIKM 2020), section 4, for the correction;
    Oosterhuis & de Rijke (WSDM 2021), section 5, for one ratio of all lists.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    shown, clicked, alpha, beta = (
        table.sum(axis=0)
        for table in (sums.shown, sums.clicked, sums.shown_alpha, sums.shown_beta)
    )
    is_there = alpha > 0.0
    by = np.where(is_there, np.maximum(alpha, least * shown), 1.0)
    is_known = log.ranks <= curve.n_ranks
    items = log.items[is_known]
    clicks = log.clicked[is_known].astype(np.float64)
    return ItemEstimates(
        np.where(is_there, (clicked - beta) / by, np.nan),
        reasons_of(sums, alpha, NOT_SHOWN),
        alpha,
        unseen_share(sums),
        click_weights(items, clicks, 1.0 / by[items], len(by)),
        remarks_of(log, curve),
    )


def _over_examination(
    log: ClickLog,
    curve: BiasCurve,
    sums: LogSums,
    lists: Floats,
    least: float,
    why: str,
) -> ItemEstimates:
    theta = np.maximum(examination(curve), least)
    is_clicked = (log.ranks <= curve.n_ranks) & (log.clicked > 0)
    items, rows = log.items[is_clicked], log.ranks[is_clicked] - 1
    clicked = log.clicked[is_clicked].astype(np.float64)
    weights = 1.0 / (theta[rows] * lists[items])
    clicks = click_weights(items, clicked, weights, len(lists))
    return ItemEstimates(
        np.where(lists > 0.0, clicks.total, np.nan),
        reasons_of(sums, sums.shown.sum(axis=0), why),
        sums.shown_alpha.sum(axis=0) + sums.shown_beta.sum(axis=0),
        unseen_share(sums),
        clicks,
        remarks_of(log, curve),
    )
