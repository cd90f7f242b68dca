"""What pictures of curves of bias hold."""

from collections.abc import Sequence
from dataclasses import replace

from models.estimators.bias_curve import BiasCurve
from rankstream.operations.answers.curve import CurveOfBias
from rankstream.operations.plots.picture import Estimate, Line, Lines, Picture
from rankstream.wire.models.curves import CurveRecord, published
from streams.training.curves.curve_estimator import CurveEnds

TITLE = "curve of bias"

LOOKS = "how often users look at each rank"

BY_RANK = "rank"


def bias_picture(found: CurveOfBias) -> Picture:
    """A curve by rank, with the intervals of alpha."""
    notes = (found.source, found.bias, found.warning)
    panel = replace(bias_panel(found.curve, found.ends), title=LOOKS)
    return Picture(TITLE, [[panel]], notes)


def bias_panel(curve: BiasCurve | None, ends: CurveEnds | None = None) -> Lines:
    """The same as a panel; empty without a curve."""
    if curve is None:
        return Lines(TITLE, "", BY_RANK, [])
    alpha = [Estimate.of(each) for each in curve.alpha]
    if ends is not None:
        alpha = [
            Estimate.of(value, (low, high))
            for value, low, high in zip(curve.alpha, ends.low, ends.high, strict=False)
        ] + alpha[len(ends.low) :]
        if curve.is_ratio_only:
            # The unit is known.
            alpha[0] = Estimate(alpha[0].value, alpha[0].value, alpha[0].value)
    # Of a curve without ends nobody says how well it is known.
    lines = [_line("alpha", alpha, is_estimated=ends is not None)]
    if curve.has_trust_bias:
        beta = [Estimate.of(each) for each in curve.beta]
        lines.append(_line("beta", beta, is_estimated=False))
    name = "alpha and beta" if curve.has_trust_bias else "examination"
    unit = f"{name}, rank 1 = 1" if curve.is_ratio_only else name
    return Lines(TITLE, unit, BY_RANK, lines, is_from_zero=True)


def fitted_picture(record: CurveRecord) -> Picture:
    """The fit of a curve by rank, with the intervals of both of its parts."""
    ranks = published(record).ranks
    lines = [_line("alpha", [Estimate.of(x.alpha, x.alpha_interval) for x in ranks])]
    if any(x.beta for x in ranks):
        beta = [Estimate.of(x.beta, x.beta_interval) for x in ranks]
        lines.append(_line("beta", beta))
    unit = "alpha, rank 1 = 1" if record.is_ratio_only else "alpha"
    panel = Lines(record.estimator, unit, BY_RANK, lines, is_from_zero=True)
    notes = (
        f"from {record.source}; intervals of {record.options['confidence']:.0%}, each "
        "by itself",
        record.bias,
        record.warning(),
    )
    return Picture(record.intervention, [[panel]], notes)


def _line(
    name: str, estimates: Sequence[Estimate], *, is_estimated: bool = True
) -> Line:
    return Line(name, estimates, is_estimated, xs=range(1, len(estimates) + 1))
