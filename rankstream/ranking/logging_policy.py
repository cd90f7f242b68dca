"""Lists of a logging policy where they are served: what it sees, and what it draws by.

A policy is a version of a model. Its features are those that the service logs, and
then what two rankers differ in (`EXTRAS`), so that a version is trained, published and
taken back as any other. Nothing here needs more than numpy.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.ranking.draws import ranked_items
from rankstream.ranking.methods import LOGGING_POLICY
from rankstream.wire.events import PLACKETT_LUCE, POLICIES

Floats = npt.NDArray[np.float64]

EXTRAS = ("difference", "size", "square", "equal", "first-more", "rank-a", "rank-b")
"""The last features of a model of logging policies, in this order.

`difference` is P(looked at) in the list of the ranker whose name comes first, less that
in the other's, and lies in [-1, 1]; ranks are shares of the longer list, 1 for what a
ranker did not return.
"""


def differences_of(
    rankings: Mapping[str, Sequence[str]], theta: Sequence[float], length: int
) -> Floats:
    """P(looked at) in the list of the first ranker, less that in the other's.

    Parameters
    ----------
    rankings
        Two, by name; they are taken in the order of their names.
    theta : [n_ranks]
        P(looked at | rank).
    length
        Of each list.

    Returns
    -------
    [n_items]
        Of all that was ranked, in sorted order.
    """
    first, second = (
        _looked_at(rankings[name], theta, length) for name in sorted(rankings)
    )
    items = ranked_items([list(row) for row in rankings.values()])
    return np.array([first.get(x, 0.0) - second.get(x, 0.0) for x in items])


def _looked_at(
    ranking: Sequence[str], theta: Sequence[float], length: int
) -> dict[str, float]:
    return dict(zip(ranking[:length], theta, strict=False))


def policy_features(
    features: npt.NDArray[np.floating],
    rankings: Mapping[str, Sequence[str]],
    differences: Floats,
) -> npt.NDArray[np.float32]:
    """What a policy sees of each item, [n_items, n_features + len(EXTRAS)].

    Parameters
    ----------
    features : [n_items, n_features]
        Of all that was ranked, in sorted order; maybe of no columns.
    rankings
        As of `differences_of`.
    differences : [n_items]
        What that gives.
    """
    n, n_features = features.shape
    found = np.ones((n, n_features + len(EXTRAS)), np.float32)
    found[:, :n_features] = features
    extras, ranks = found[:, n_features:].T, found[:, -2:].T
    extras[0], extras[1], extras[2] = differences, np.abs(differences), differences**2
    extras[3], extras[4] = differences == 0.0, differences > 0.0
    items = ranked_items([*map(list, rankings.values())])
    row_of = {item: row for row, item in enumerate(items)}
    longest = max(map(len, rankings.values()))
    for column, name in zip(ranks, sorted(rankings), strict=True):
        own = rankings[name]
        rows = [row_of[item] for item in own]
        column[rows] = np.arange(len(own)) / longest
    return found


def floored(
    scores: npt.NDArray[np.floating], differences: Floats, least: float
) -> npt.NDArray[np.float32]:
    """Scores by which each item that rankers differ in comes first often enough.

    What comes first with probability `least` is looked at with at least that times
    P(looked at | rank 1). Items below are raised to it, and nothing else is changed:
    the others keep their ratios. So it needs no placements where lists are served.

    Parameters
    ----------
    scores, differences : [n_items]
        Scores are finite.
    least
        At most 1 / number of items with a difference.

    Returns
    -------
    [n_items]
        Logarithms of shares, as they are logged.
    """
    shares = np.exp(scores.astype(np.float64) - scores.max())
    matters = differences != 0.0
    is_raised = np.zeros(len(shares), np.bool_)
    while not is_raised.all():
        rest = ~is_raised
        shares[rest] *= (1.0 - least * is_raised.sum()) / shares[rest].sum()
        is_below = matters & rest & (shares < least)
        if not is_below.any():
            break
        is_raised |= is_below
        shares[is_below] = least
    smallest = np.finfo(np.float32).tiny  # whose logarithm is finite
    logs: npt.NDArray[np.floating] = np.log(np.maximum(shares, smallest))
    return logs.astype(np.float32)


def logged_scores(
    method: str,
    rankings: Mapping[str, Sequence[str]],
    scores: Mapping[str, float] | None,
) -> dict[str, float] | None:
    """What a logging policy draws by, to the bit that is logged; None for others.

    Parameters
    ----------
    scores
        Of every ranked item; None: all are as likely.

    Raises
    ------
    ValueError
        Where scores are not those of the ranked items, or the method draws by none.
    """
    if method != LOGGING_POLICY:
        if scores is not None:
            raise ValueError(
                f"scores must be left out for lists of {method}; the method "
                f"{LOGGING_POLICY} draws by them"
            )
        return None
    items = ranked_items([list(row) for row in rankings.values()])
    given = dict.fromkeys(items, 0.0) if scores is None else scores
    if set(given) != set(items) or not all(map(math.isfinite, given.values())):
        raise ValueError(
            "scores must be finite, one of each ranked item and of no other; got "
            f"{len(given)} for {len(items)} items"
        )
    values = np.array([given[item] for item in items], np.float32)
    return dict(zip(items, values.tolist(), strict=True))


def policy_fields(
    scores: Mapping[str, float], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """What an event says of a logging policy: its exposures follow from it exactly.

    Parameters
    ----------
    scores
        By item, those that the list was drawn by.
    fields
        Of the event; `candidates` says in which order items are named.

    Raises
    ------
    ValueError
        Where candidates are not what the policy draws from.
    """
    candidates = list(fields.get("candidates") or scores)
    if set(candidates) != set(scores):
        raise ValueError(
            "candidates must be the ranked items, which the logging policy draws from; "
            f"got {len(candidates)} for {len(scores)} items"
        )
    values = np.array([scores[item] for item in candidates], "<f4")
    return {
        "policy": POLICIES[PLACKETT_LUCE],
        "candidates": candidates,
        "scores": base64.b64encode(values.tobytes()).decode("ascii"),
    }
