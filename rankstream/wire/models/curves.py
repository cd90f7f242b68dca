"""Curves of bias as they are published: snapshot, record of its fit, and JSON.

The weights of a snapshot of a curve are little-endian float64 [6, n_ranks]: alpha, the
ends of its intervals, beta, and the ends of those; NaN where clicks cannot tell. They
are in units of the first rank, unless alpha and beta there were given. The record lies
in `training` beside runs, the JSON on `evaluations` under the key of the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.wire.envelope import CURVE, Snapshot, SnapshotError, pointer_of
from rankstream.wire.models.snapshot_names import Parent

Floats = npt.NDArray[np.float64]

TYPE = "curve"
"""The member `type` of the JSON, by which it is told from what else has a model."""


class CurveRecord(msgspec.Struct, frozen=True, array_like=True):
    """A fit: all that a curve is a function of, and what came of it.

    Attributes
    ----------
    intervention
        The name of the snapshot, MODEL@EPOCH.VERSION. No list has it.
    created_ms
        The least watermark of the statistics.
    reason
        Why it was fitted; see `rankstream.wire.models.training`.
    counts
        Interactions that were counted, by partition of `events`, sorted.
    watermarks
        That of each partition, sorted; None before there is one.
    settings
        Those of the model, as `msgspec.to_builtins` gives them.
    split_shares
        `statistics.split_shares`.
    parent
        None of the first one.
    estimator
        A name of `models.bias.registry`.
    options
        All of them, also those that nobody set.
    alpha, alpha_low, alpha_high, beta, beta_low, beta_high : [n_ranks]
        As in the snapshot.
    is_ratio_only
        Whether all are in units of the first rank.
    reasons : [n_ranks]
        Why there is no number or no interval; empty where there are both.
    groups
        Whose clicks it was fitted on, ascending.
    source
        The same in words.
    n_rows
        Rows of document and rank that are not zero, of documents shown at several
        ranks: what the fit rests on.
    n_shown, n_clicked
        Of these rows.
    log_likelihood, n_turns
        Of a search in turns; None and 0 of what takes none.
    sha256
        Of the snapshot's envelope.
    request
        Id of the request that it answers; empty where the schedule began it.
    n_partitions
        Of `events` then.
    online
        Interventions of the statistics whose lists models that learn online made, as
        far as was known then, sorted.
    bias
        Whether these clicks show trust bias, in words; empty of records of before.
    """

    schema: int
    model: str
    intervention: str
    epoch: int
    version: int
    created_ms: int
    reason: str
    counts: list[tuple[int, int]]
    watermarks: list[tuple[int, int | None]]
    settings: dict[str, Any]
    split_shares: list[float]
    parent: Parent | None
    estimator: str
    options: dict[str, Any]
    alpha: list[float]
    alpha_low: list[float]
    alpha_high: list[float]
    beta: list[float]
    beta_low: list[float]
    beta_high: list[float]
    is_ratio_only: bool
    reasons: list[str]
    groups: list[int]
    source: str
    n_rows: int
    n_shown: int
    n_clicked: int
    log_likelihood: float | None
    n_turns: int
    sha256: bytes
    request: str = ""
    n_partitions: int = 1
    online: list[str] = []
    bias: str = ""

    @property
    def n_ranks(self) -> int:
        """Ranks that were estimated."""
        return len(self.alpha)

    def warning(self) -> str:
        """Ranks without a number or an interval, and why; empty where all have both."""
        told = [f"rank {n}: {why}" for n, why in enumerate(self.reasons, 1) if why]
        return f"the curve is not well known at {'; '.join(told)}" if told else ""


ROWS = ("alpha", "alpha_low", "alpha_high", "beta", "beta_low", "beta_high")
"""Of the weights, by the names of the record."""


def curve_weights(rows: Sequence[Floats]) -> bytes:
    """The weights of a snapshot, of `ROWS`; `rows` [6][n_ranks]."""
    return np.stack(rows).astype("<f8").tobytes()


def curve_rows(snapshot: Snapshot) -> Floats:
    """What `curve_weights` made, [6, n_ranks].

    Raises
    ------
    SnapshotError
        With the reason kind, where it is a ranker.
    """
    if snapshot.kind != CURVE:
        raise SnapshotError(
            "kind",
            f"a curve must be of the kind {CURVE!r}; version {pointer_of(snapshot)} of "
            f"{snapshot.model!r} is {snapshot.kind}: name one of [curves.NAME]",
        )
    numbers = np.frombuffer(snapshot.weights, "<f8").astype(np.float64)
    return numbers.reshape(len(ROWS), snapshot.n_features)


class CurveOfRank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a curve, for people's tools; what is not known is null."""

    rank: int
    alpha: float | None
    alpha_interval: tuple[float, float] | None
    beta: float | None
    beta_interval: tuple[float, float] | None
    why: str


class PublishedCurve(msgspec.Struct, frozen=True, kw_only=True, tag=TYPE):
    """What a record of a fit says, for people's tools.

    Attributes
    ----------
    confidence
        Of each rank's interval, by itself.
    digest
        SHA-256 of the snapshot's envelope, in hexadecimal digits.
    bias
        Whether these clicks show trust bias, in words; empty of records of before.
    """

    model: str
    version: str
    at_ms: int
    estimator: str
    options: dict[str, Any]
    confidence: float
    is_ratio_only: bool
    ranks: list[CurveOfRank]
    groups: list[int]
    source: str
    interactions: int
    watermarks: list[tuple[int, int | None]]
    rows: int
    shown: int
    clicked: int
    log_likelihood: float | None
    turns: int
    digest: str
    bias: str = ""


def published(record: CurveRecord) -> PublishedCurve:
    """The JSON of a record."""
    return PublishedCurve(
        model=record.model,
        version=f"{record.epoch}.{record.version}",
        at_ms=record.created_ms,
        estimator=record.estimator,
        options=record.options,
        confidence=record.options["confidence"],
        is_ratio_only=record.is_ratio_only,
        ranks=ranks_of({name: getattr(record, name) for name in ROWS}, record.reasons),
        groups=record.groups,
        source=record.source,
        interactions=sum(n for _, n in record.counts),
        watermarks=record.watermarks,
        rows=record.n_rows,
        shown=record.n_shown,
        clicked=record.n_clicked,
        log_likelihood=record.log_likelihood,
        turns=record.n_turns,
        digest=record.sha256.hex(),
        bias=record.bias,
    )


def ranks_of(
    rows: Mapping[str, Sequence[float]], reasons: Sequence[str]
) -> list[CurveOfRank]:
    """Rank by rank; `rows` by the names of `ROWS`, each [n_ranks]."""
    return [
        CurveOfRank(
            rank=rank,
            alpha=_known(rows["alpha"][rank - 1]),
            alpha_interval=_ends(rows, "alpha", rank),
            beta=_known(rows["beta"][rank - 1]),
            beta_interval=_ends(rows, "beta", rank),
            why=why,
        )
        for rank, why in enumerate(reasons, 1)
    ]


def _known(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _ends(
    rows: Mapping[str, Sequence[float]], name: str, rank: int
) -> tuple[float, float] | None:
    low, high = (_known(rows[f"{name}_{end}"][rank - 1]) for end in ("low", "high"))
    return None if low is None or high is None else (low, high)


encode_published = msgspec.json.Encoder().encode
