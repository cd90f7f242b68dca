"""A curve of bias as clicks tell it, with its intervals and what they do not tell.

    P(click | item, rank) = alpha[rank] * q(item) + beta[rank]

where q is the probability of a click at rank 1: alpha begins with 1, and beta with 0.
So both are the only parts of a curve that clicks identify without an anchor.
"""

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from models.arrays import Floats
from models.bias.examination import NOT_SHOWN, ExaminationCurve

NEEDS_BOOTSTRAP = "its interval takes a bootstrap"


@dataclass(frozen=True)
class FittedCurve:
    """alpha and beta in units of the first rank, and how well they are known.

    Parameters
    ----------
    alpha, beta : [n_ranks]
        The first are 1 and 0; NaN where the data cannot tell.
    alpha_low, alpha_high, beta_low, beta_high : [n_ranks]
        Ends of intervals, each by itself; NaN where there is none.
    reasons : [n_ranks]
        Why there is no ratio or no interval; empty where there are both.
    log_likelihood, n_turns
        Of a search in turns; None and 0 of what takes none.
    subject
        What a warning calls it.
    """

    alpha: Floats
    beta: Floats
    alpha_low: Floats
    alpha_high: Floats
    beta_low: Floats
    beta_high: Floats
    reasons: tuple[str, ...]
    log_likelihood: float | None = None
    n_turns: int = 0
    subject: str = "the curve"

    @property
    def n_known(self) -> int:
        """Ranks before the first one that is not known."""
        is_known = np.isfinite(self.alpha) & (self.alpha > 0.0)
        return int(np.cumprod(is_known).sum())

    def warning(self) -> str:
        """Ranks without a ratio or an interval, and why; empty where there are none.

        Ranks at which nothing was shown need none.

        Examples
        --------
        >>> three, few = np.ones(3), ("", "seen too seldom", "seen too seldom")
        >>> position_fit(ExaminationCurve(three, three, three, few)).warning()
        'examination is not well known at ranks 2 to 3: seen too seldom'
        """
        told = []
        for reason, same in groupby(enumerate(self.reasons, 1), lambda pair: pair[1]):
            if reason and reason != NOT_SHOWN:
                first, *_, last = 2 * [rank for rank, _ in same]
                ranks = f"ranks {first} to {last}" if last > first else f"rank {first}"
                told.append(f"{ranks}: {reason}")
        return f"{self.subject} is not well known at {'; '.join(told)}" if told else ""

    def without_intervals(self, reason: str) -> "FittedCurve":
        """The same ratios, none of them with an interval."""
        nothing = np.full(len(self.alpha), np.nan)
        reasons = tuple(
            reason if np.isfinite(alpha) else why
            for alpha, why in zip(self.alpha, self.reasons, strict=True)
        )
        return replace(
            self, alpha_low=nothing, alpha_high=nothing, beta_low=nothing,
            beta_high=nothing, reasons=reasons,
        )  # fmt: skip


def position_fit(found: ExaminationCurve) -> FittedCurve:
    """A curve of plain position bias: beta is 0 wherever alpha is known.

    Examples
    --------
    >>> ones = np.ones(2)
    >>> position_fit(ExaminationCurve(ones, ones, ones, ("", ""))).beta.tolist()
    [0.0, 0.0]
    """
    zero = np.where(np.isfinite(found.ratios), 0.0, np.nan)
    no_interval = np.where(np.isfinite(found.low), 0.0, np.nan)
    return FittedCurve(
        found.ratios, zero, found.low, found.high, no_interval, no_interval,
        found.reasons, subject="examination",
    )  # fmt: skip
