"""How likely a click is by rank, of what is relevant and of what is not.

    P(click | item, rank) = alpha[rank] * relevance(item) + beta[rank]

Without trust bias beta is 0, alpha is P(looked at | rank), and relevance is
P(click | looked at). Arrays have the axis ranks; the first is rank 1.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.arrays import Floats

ROUNDING = 1e-12
"""By how much alpha + beta may exceed 1: printed curves add up to 1 at rank 1."""


@dataclass(frozen=True)
class BiasCurve:
    """alpha and beta by rank; ranks beyond their end are not known.

    Parameters
    ----------
    alpha : [n_ranks]
        More than 0.
    beta : [n_ranks]
        At least 0, and alpha + beta at most 1.
    is_ratio_only
        Whether only what clicks identify is given, in units of the first rank: alpha
        is that of rank r over that of rank 1, and beta is beta[r] - beta[1] * alpha[r];
        they begin with 1 and 0. Both may then be anything else, but alpha positive.

    Raises
    ------
    ValueError
        Where something is outside its range.

    References
    ----------
    Vardasbi, Oosterhuis & de Rijke (CIKM 2020), section 3, for alpha and beta.
    """

    alpha: Floats
    beta: Floats
    is_ratio_only: bool = False

    def __post_init__(self) -> None:
        _check_shapes(self.alpha, self.beta)
        if self.is_ratio_only:
            _check_ratios(self.alpha, self.beta)
        elif self.has_trust_bias:
            _check_trust(self.alpha, self.beta)
        else:
            _check_examination(self.alpha)

    @property
    def n_ranks(self) -> int:
        """Ranks that are known."""
        return len(self.alpha)

    @property
    def has_trust_bias(self) -> bool:
        """Whether what is not relevant is clicked too, anywhere."""
        return bool(self.beta.any())

    @property
    def is_rising(self) -> bool:
        """Whether a relevant item is clicked more at some rank than at one above it."""
        return bool((np.diff(self.alpha + self.beta) > ROUNDING).any())

    def remarks(self) -> list[str]:
        """What who reads values under this curve must know, one sentence each."""
        said = []
        if self.is_ratio_only and self.has_trust_bias:
            said.append(
                "trust bias is known in ratios only: a value is the probability of a "
                "click at rank 1, and tells relevance up to scale and offset"
            )
        elif self.is_ratio_only:
            said.append(
                "examination is known relative to rank 1: a value is the probability "
                "of a click at rank 1, and tells relevance up to scale"
            )
        if self.is_rising:
            rank = int((np.diff(self.alpha + self.beta) > ROUNDING).argmax()) + 2
            said.append(
                f"the curve rises at rank {rank}: users would click there more than "
                "above it"
            )
        return said


def position_curve(examination: npt.ArrayLike) -> BiasCurve:
    """The curve of plain position bias: beta is 0, alpha is the examination.

    `examination` [n_ranks].

    Examples
    --------
    >>> position_curve([1.0, 0.5]).has_trust_bias
    False
    """
    alpha = np.asarray(examination, np.float64)
    return BiasCurve(alpha, np.zeros(alpha.shape))


def _check_shapes(alpha: Floats, beta: Floats) -> None:
    if alpha.ndim != 1 or not len(alpha) or alpha.shape != beta.shape:
        raise ValueError(
            "alpha and beta must be of the same ranks, one or more; got shapes "
            f"{alpha.shape} and {beta.shape}"
        )
    for name, numbers in (("alpha", alpha), ("beta", beta)):
        _refuse(~np.isfinite(numbers), numbers, f"{name} must be a number")


def _check_ratios(alpha: Floats, beta: Floats) -> None:
    _refuse(alpha <= 0.0, alpha, "ratios of alpha must be more than 0")
    if alpha[0] != 1.0 or beta[0] != 0.0:
        raise ValueError(
            "a curve of ratios must begin with alpha 1 and beta 0, as it is in units "
            f"of rank 1; got {alpha[0]:g} and {beta[0]:g}"
        )


def _check_examination(alpha: Floats) -> None:
    _refuse(
        (alpha <= 0.0) | (alpha > 1.0),
        alpha,
        "examination must lie in (0, 1], or be given as ratios to rank 1",
    )


def _check_trust(alpha: Floats, beta: Floats) -> None:
    _refuse(alpha <= 0.0, alpha, "alpha must be more than 0")
    _refuse(beta < 0.0, beta, "beta must be at least 0")
    together = alpha + beta
    _refuse(together > 1.0 + ROUNDING, together, "alpha + beta must be at most 1")


def _refuse(is_wrong: npt.NDArray[np.bool_], numbers: Floats, rule: str) -> None:
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(f"{rule}; got {numbers[row]:g} at rank {row + 1}")
