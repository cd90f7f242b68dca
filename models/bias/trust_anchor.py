"""A curve of trust bias made absolute, where alpha and beta of rank 1 are known.

An anchor says how often two relevances are clicked at rank 1: beta there is what is
not relevant, alpha + beta what is surely relevant. All other ranks follow:

    alpha[r] = alpha[1] alpha'[r]        beta[r] = beta'[r] + beta[1] alpha'[r]

with alpha' and beta' in units of the first rank.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.bias.fitted_curve import FittedCurve

BEHIND_UNKNOWN = "a rank above it is not known"

SLACK = 0.02
"""By which a probability may lie outside of 0 and 1, as clicks are few."""


class Anchor(NamedTuple):
    """Bias of the first rank.

    Parameters
    ----------
    alpha
        More than 0.
    beta
        At least 0; with alpha at most 1.
    """

    alpha: float
    beta: float


class Absolute(NamedTuple):
    """Bias of ranks, all of them known.

    Parameters
    ----------
    alpha, beta : [n_known]
        Of the ranks before the first one that is not known.
    """

    alpha: Floats
    beta: Floats


def anchored(curve: FittedCurve, anchor: Anchor) -> Absolute:
    """Alpha and beta of ranks that are known, given those of the first.

    What is outside of probabilities by no more than `SLACK` is moved to their end.

    Raises
    ------
    ValueError
        Where the anchor is no bias of a rank, or some rank's would be none.

    Examples
    --------
    >>> nothing = np.zeros(2)
    >>> known = np.array([1.0, 1.5]), np.array([0.0, -0.7])
    >>> fit = FittedCurve(*known, nothing, nothing, nothing, nothing, ("", ""))
    >>> [each.round(3).tolist() for each in anchored(fit, Anchor(0.4, 0.6))]
    [[0.4, 0.6], [0.6, 0.2]]
    """
    if not (anchor.alpha > 0.0 <= anchor.beta and sum(anchor) <= 1.0 + 1e-12):
        raise ValueError(
            "an anchor must have alpha more than 0, beta at least 0 and a sum of at "
            f"most 1; got {anchor.alpha:g} and {anchor.beta:g}"
        )
    ratios, offsets = curve.alpha[: curve.n_known], curve.beta[: curve.n_known]
    noise = offsets + anchor.beta * ratios
    sure = noise + anchor.alpha * ratios
    for name, values in (("beta", noise), ("alpha + beta", sure)):
        wrong = np.flatnonzero((values < -SLACK) | (values > 1.0 + SLACK))
        if len(wrong):
            raise ValueError(
                f"{name} must lie in [0, 1] at every rank; got {values[wrong[0]]:.3f} "
                f"at rank {wrong[0] + 1}: take an anchor in the range that "
                "leaves every rank in it"
            )
    noise = np.clip(noise, 0.0, 1.0)
    return Absolute(np.clip(sure, 0.0, 1.0) - noise, noise)


def anchored_fit(curve: FittedCurve, anchor: Anchor) -> FittedCurve:
    """The same with intervals, given alpha and beta of the first rank.

    Ends of alpha are those of its ratio. How alpha and beta of a rank vary together is
    not in a curve, so the ends of beta are sums of the ends of both: no narrower than
    they must be, whatever that is. The first rank is known exactly. Ranks behind one
    that is not known have none.

    Raises
    ------
    ValueError
        As `anchored`.
    """
    found, n = anchored(curve, anchor), curve.n_known
    numbers = np.full((6, len(curve.alpha)), np.nan)
    numbers[0, :n], numbers[1, :n] = found
    for row, name in ((2, "low"), (3, "high")):
        alpha, beta = getattr(curve, f"alpha_{name}"), getattr(curve, f"beta_{name}")
        numbers[row, :n] = anchor.alpha * alpha[:n]
        numbers[row + 2, :n] = beta[:n] + anchor.beta * alpha[:n]
    reasons = tuple(
        BEHIND_UNKNOWN if rank > n and not why else why
        for rank, why in enumerate(curve.reasons, 1)
    )
    alpha, beta, *ends = numbers
    return replace(
        curve, alpha=alpha, beta=beta, alpha_low=ends[0], alpha_high=ends[1],
        beta_low=ends[2], beta_high=ends[3], reasons=reasons,
    )  # fmt: skip
