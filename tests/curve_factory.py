"""Curves of bias as models publish them, with numbers that a test chooses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.estimators.bias_curve import BiasCurve
from rankstream.configuration.curves import TrustCurve
from rankstream.wire.envelope import CURVE, Snapshot, encode_snapshot, features_hash
from rankstream.wire.models.curves import ROWS, CurveRecord, curve_weights
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import SCHEMA

UNKNOWN = float("nan")


def ratio_curve(curve: BiasCurve) -> BiasCurve:
    """What clicks can tell of a curve: the same in units of its first rank.

    alpha'[r] = alpha[r] / alpha[1] and beta'[r] = beta[r] - beta[1] * alpha'[r].
    """
    alpha = curve.alpha / curve.alpha[0]
    return BiasCurve(alpha, curve.beta - curve.beta[0] * alpha, is_ratio_only=True)


def curve_snapshot(
    alpha: Sequence[float],
    beta: Sequence[float] = (),
    *,
    model: str = "eyes",
    epoch: int = 0,
    version: int = 100,
    half: float = 0.1,
) -> Snapshot:
    """Of intervals that are `half` to each side."""
    numbers = np.array(alpha)
    offsets = np.array(beta) if len(beta) else 0.0 * numbers
    rows = [
        numbers, numbers - half, numbers + half, offsets, offsets - half,
        offsets + half,
    ]  # fmt: skip
    n_ranks = len(numbers)
    return Snapshot(
        model, epoch, version, 0, 1_000, CURVE, [], "none", n_ranks,
        features_hash(n_ranks), [(0, version)], 1, curve_weights(rows),
        f"{model}@{epoch}.{version}", groups=[2, 3],
    )  # fmt: skip


def curve_record(snapshot: Snapshot, **changes: Any) -> CurveRecord:
    """The record of a fit that made it."""
    numbers = np.frombuffer(snapshot.weights).reshape(len(ROWS), -1)
    rows = {name: row.tolist() for name, row in zip(ROWS, numbers, strict=True)}
    reasons = ["" if np.isfinite(x) else "not shown" for x in rows["alpha"]]
    fields = {
        "schema": SCHEMA,
        "model": snapshot.model,
        "intervention": snapshot.intervention,
        "epoch": snapshot.epoch,
        "version": snapshot.version,
        "created_ms": snapshot.created_ms,
        "reason": "asked",
        "counts": [(0, snapshot.version)],
        "watermarks": [(0, 1_000)],
        "settings": {},
        "split_shares": [0.65, 0.15, 0.2],
        "parent": None,
        "estimator": "trust",
        "options": TrustCurve().options(),
        **rows,
        "is_ratio_only": True,
        "reasons": reasons,
        "groups": snapshot.groups,
        "source": "estimated from clicks of the validation groups, 2 to 3",
        "n_rows": 12,
        "n_shown": 3_400,
        "n_clicked": 560,
        "log_likelihood": -12.5,
        "n_turns": 7,
        "sha256": sha256_of(encode_snapshot(snapshot)),
        **changes,
    }
    return CurveRecord(**fields)
