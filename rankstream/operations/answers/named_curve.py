"""The curve of bias by the estimator that is asked for, whatever settings say."""

import msgspec

from rankstream.configuration.curves import ESTIMATORS
from rankstream.operations.answers.curve import CurveOfBias
from rankstream.operations.answers.sources import CountedLog
from rankstream.wire.models.training import ASKED
from rankstream.wire.nearest_name import suggestion
from streams.training.curves.curve_snapshot import fit_curve
from streams.training.curves.known_curve import published_curve
from streams.training.inputs import TrainingRefused

NAME = "bias"
"""Of a curve that has no settings."""


def estimated_by(source: CountedLog, estimator: str) -> CurveOfBias:
    """The curve by one estimator, with its defaults.

    Parameters
    ----------
    estimator
        A name of `[curves.NAME]`; see `docs/curves.md`.

    Returns
    -------
    Without a curve, and with the reason as its warning, where clicks do not tell it.

    Raises
    ------
    ValueError
        Where there is no such estimator.
    """
    kind = ESTIMATORS.get(estimator)
    if kind is None:
        raise ValueError(
            f"an estimator of bias must be one of {', '.join(ESTIMATORS)}; got "
            f"{estimator!r}{suggestion(estimator, ESTIMATORS)}"
        )
    settings = msgspec.structs.replace(source.settings, curves={NAME: kind()})
    try:
        found = fit_curve(
            NAME, settings, source.statistics, None,
            reason=ASKED, online=source.policies.models,
        )  # fmt: skip
    except TrainingRefused as error:
        return CurveOfBias(None, "", str(error))
    known = published_curve(found.snapshot)
    told = f"by {estimator}, {found.run.source}"
    return CurveOfBias(known.curve, told, known.warning, known.ends, found.run.bias)
