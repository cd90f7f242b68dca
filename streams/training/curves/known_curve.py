"""The curve that a training corrects by, and how its run records it."""

import hashlib
from typing import NamedTuple

import numpy as np

from models.estimators.bias_curve import BiasCurve
from rankstream.wire.envelope import Snapshot, SnapshotError, is_pointer
from rankstream.wire.models.curves import curve_rows
from rankstream.wire.models.training import CurveUsed, EndsUsed
from streams.training.curves.curve_estimator import LEAST_RANKS, CurveEnds

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
        `models.bias.fitted_curve.FittedCurve.warning`.
    ends
        Of alpha; None where nobody says how well it is known.
    """

    curve: BiasCurve
    source: str
    groups: tuple[int, ...]
    warning: str = ""
    ends: CurveEnds | None = None

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


def published_curve(snapshot: Snapshot) -> KnownCurve:
    """The curve of a snapshot, up to its first rank without a number.

    Raises
    ------
    SnapshotError
        Where it is a ranker, or corrects nothing.
    """
    alpha, low, high, beta, *_ = curve_rows(snapshot)
    n_known = int(np.cumprod(np.isfinite(alpha) & (alpha > 0.0)).sum())
    if n_known < LEAST_RANKS:
        raise SnapshotError(
            "weights",
            f"{snapshot.intervention} must be a curve that corrects; alpha must be "
            f"known at {LEAST_RANKS} ranks or more; got {n_known}",
        )
    # In units of the first rank unless alpha and beta there were given.
    is_ratio_only = bool(n_known and alpha[0] == 1.0 and beta[0] == 0.0)
    try:
        curve = BiasCurve(alpha[:n_known], beta[:n_known], is_ratio_only=is_ratio_only)
    except ValueError as error:
        raise SnapshotError(
            "weights", f"{snapshot.intervention} must be a curve that corrects; {error}"
        ) from error
    without = np.flatnonzero(~np.isfinite(low[:n_known])) + 1
    ranks = f"rank{'s' if len(without) > 1 else ''} {', '.join(map(str, without))}"
    return KnownCurve(
        curve,
        snapshot.intervention,
        tuple(snapshot.groups),
        f"the curve has no interval at {ranks}" if len(without) else "",
        CurveEnds(low, high).first(n_known),
    )


def ends_used(ends: CurveEnds | None) -> EndsUsed | None:
    """What the run says of ends of alpha."""
    if ends is None:
        return None
    return EndsUsed(ends.low.tolist(), ends.high.tolist(), ends.confidence)


def curve_of_run(used: CurveUsed, ends: EndsUsed | None = None) -> KnownCurve | None:
    """The published curve that a run took; None where it took another one."""
    _, mark, pointer = used.source.rpartition("@")
    if not (mark and is_pointer(pointer.encode())):
        return None
    curve = BiasCurve(
        np.array(used.alpha), np.array(used.beta), is_ratio_only=used.is_ratio_only
    )
    known = None
    if ends is not None:
        known = CurveEnds(np.array(ends.low), np.array(ends.high), ends.confidence)
    return KnownCurve(curve, used.source, tuple(used.groups), used.warning, known)
