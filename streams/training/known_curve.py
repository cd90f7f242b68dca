"""The curve that a training corrects by, and how its run records it."""

import hashlib
from typing import NamedTuple

import numpy as np

from models.estimators.bias_curve import BiasCurve
from rankstream.wire.training import CurveUsed

GIVEN = "given"
"""The source of a curve that settings have."""


class KnownCurve(NamedTuple):
    """A curve that there is.

    Parameters
    ----------
    curve
        Of bias.
    source
        In words.
    groups
        Whose clicks it was estimated from; none where it was given.
    warning
        Ranks whose examination is not well known; see
        `models.bias.examination.ExaminationCurve.warning`.
    """

    curve: BiasCurve
    source: str
    groups: tuple[int, ...]
    warning: str = ""

    def used(self) -> CurveUsed:
        """What the run says of it."""
        alpha, beta, is_ratio_only = (
            self.curve.alpha,
            self.curve.beta,
            self.curve.is_ratio_only,
        )
        digest = hashlib.blake2b(digest_size=16)
        for part in (alpha, beta):
            digest.update(np.asarray(part, "<f8").tobytes())
        digest.update(bytes([is_ratio_only]))
        return CurveUsed(
            alpha.tolist(),
            beta.tolist(),
            is_ratio_only,
            self.source,
            list(self.groups),
            digest.digest(),
            self.warning,
        )
