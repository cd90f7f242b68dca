"""What estimators can use of a curve that clicks told."""

from models.bias.fitted_curve import FittedCurve
from models.bias.trust_anchor import Anchor, anchored
from models.estimators.bias_curve import BiasCurve


def usable_curve(fitted: FittedCurve) -> BiasCurve | None:
    """The curve in units of the first rank, up to the first one that is not known.

    Returns
    -------
    None where fewer than two ranks are known: it would correct nothing.
    """
    n = fitted.n_known
    if n < 2:
        return None
    return BiasCurve(fitted.alpha[:n], fitted.beta[:n], is_ratio_only=True)


def anchored_curve(fitted: FittedCurve, anchor: Anchor) -> BiasCurve | None:
    """The curve of ranks that are known, given the bias of the first.

    None as in `usable_curve`.

    Raises
    ------
    ValueError
        Where the anchor does not go with the curve; see `models.bias.trust_anchor`.
    """
    if fitted.n_known < 2:
        return None
    return BiasCurve(*anchored(fitted, anchor))
