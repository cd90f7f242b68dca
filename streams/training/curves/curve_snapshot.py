"""A curve of bias fitted on what is counted: a pure function of what it is given.

From the validation groups' columns, where these tell one, so that nothing else is
fitted on the same clicks. Nothing folds for it, and it needs no features.
"""

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

import msgspec

from models.bias.fitted_curve import FittedCurve
from models.bias.registry import bias_estimator
from models.estimators.splits import Shares
from rankstream.settings import Settings
from rankstream.wire.envelope import (
    CURVE,
    Pointer,
    Snapshot,
    encode_snapshot,
    features_hash,
    intervention_of,
    pointer_of,
)
from rankstream.wire.models.curves import ROWS, CurveRecord, curve_weights
from rankstream.wire.models.snapshot_names import parent_of, sha256_of
from rankstream.wire.models.training import SCHEMA
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.checks import check_pointer
from streams.training.curves.curve_estimator import LEAST_RANKS, CurveEstimator
from streams.training.curves.curve_views import TooManyClasses
from streams.training.curves.estimated_curve import (
    ViewsOfGroups,
    bias_told,
    fit_of_groups,
    interventions_learned_online,
)
from streams.training.inputs import (
    TrainingRefused,
    counts_of,
    least_watermark_of,
    watermarks_of,
)
from streams.training.model_lists import LearnedOnline, scopes_for
from streams.training.progress import TrainingProgress


class CurveOutcome(NamedTuple):
    """A snapshot of a curve, and the record of how it came to be."""

    snapshot: Snapshot
    run: CurveRecord


def fit_curve(  # noqa: PLR0913  all that a fit depends on
    name: str,
    settings: Settings,
    statistics: Statistics,
    parent: Snapshot | None,
    *,
    reason: str,
    epoch: int | None = None,
    on_progress: Callable[[TrainingProgress], object] = lambda _: None,
    online: Container[str] | None = None,
) -> CurveOutcome:
    """Fit the curve of a name.

    Parameters
    ----------
    parent
        The version before; None of the first one, which needs none. Nothing but its
        place matters.
    reason
        Why it is fitted; see `rankstream.wire.models.training`.
    epoch
        Of the snapshot; if not given that of the version before, or the next one where
        that is of as many interactions, or more.
    on_progress
        Is told how far it is, from this thread; what it raises ends the fit.
    online
        Interventions whose lists a model that learns online may have made; if not given
        those that settings tell. The record has them.

    Raises
    ------
    TrainingRefused
        Where clicks do not tell two ranks, in words.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 3.3 and section 8.3, for what a curve
    corrects.
    """
    if online is None:
        online = LearnedOnline(settings, tuple)
    fit = _Fit(name, settings, statistics, parent, on_progress, online)
    return fit.outcome(reason, epoch)


class _Fit:
    def __init__(
        self,
        name: str,
        settings: Settings,
        statistics: Statistics,
        parent: Snapshot | None,
        on_progress: Callable[[TrainingProgress], object],
        online: Container[str],
    ) -> None:
        self._name = name
        self._settings = settings
        self._curve = settings.curves[name]
        self._statistics = statistics
        self._parent = parent
        self._tell = on_progress
        self._online = interventions_learned_online(statistics, online)
        self._how = CurveEstimator(self._curve)

    def outcome(self, reason: str, epoch: int | None) -> CurveOutcome:
        counts = counts_of(self._statistics)
        if not sum(counts.values()):
            raise TrainingRefused(
                f"{self._name!r} must have interactions to be fitted on; none are "
                "counted: wait until click windows close"
            )
        pointer = self._pointer(sum(counts.values()), epoch)
        found, told = self._fitted()
        snapshot = self._snapshot(pointer, found, told, counts)
        rows = {name: getattr(found, name).tolist() for name in ROWS}
        parent, how = self._parent, self._how
        run = CurveRecord(
            schema=SCHEMA,
            model=self._name,
            intervention=snapshot.intervention,
            epoch=pointer.epoch,
            version=pointer.version,
            created_ms=snapshot.created_ms,
            reason=reason,
            counts=list(counts.items()),
            watermarks=list(watermarks_of(self._statistics).items()),
            settings=msgspec.to_builtins(self._curve),
            split_shares=list(self._settings.statistics.split_shares),
            parent=None if parent is None else parent_of(parent),
            estimator=how.curve.estimator,
            options=how.curve.options(),
            **rows,
            is_ratio_only=how.is_ratio_only,
            reasons=list(found.reasons),
            groups=list(told.groups),
            source=told.source,
            n_rows=len(told.views.shown),
            n_shown=int(told.views.shown.sum()),
            n_clicked=int(told.views.clicked.sum()),
            log_likelihood=found.log_likelihood,
            n_turns=found.n_turns,
            sha256=sha256_of(encode_snapshot(snapshot)),
            n_partitions=self._settings.kafka.partitions,
            online=self._online,
            bias=bias_told(self._columns(), told.groups, told.source, how, told.takes),
        )
        return CurveOutcome(snapshot, run)

    def _pointer(self, version: int, epoch: int | None) -> Pointer:
        parent = self._parent
        if parent is None:
            return Pointer(epoch or 0, version)
        if parent.kind != CURVE:
            raise TrainingRefused(
                f"version {pointer_of(parent)} of {self._name!r}, the one before, must "
                f"be a curve; it is {parent.kind}: name the curve differently"
            )
        if epoch is None:
            epoch = parent.epoch + (parent.version >= version)
        pointer = Pointer(epoch, version)
        check_pointer(self._name, pointer)
        if pointer <= pointer_of(parent):
            raise TrainingRefused(
                f"a version of {self._name!r} must come after the one before, "
                f"{pointer_of(parent)}; got {pointer}: fit it in epoch "
                f"{parent.epoch + 1}"
            )
        return pointer

    def _columns(self) -> Iterator[Columns]:
        is_wanted = scopes_for(self._curve.learns_from)
        for chunk in self._statistics.columns(is_wanted=is_wanted):
            self._tell(TrainingProgress("reading"))
            yield chunk
        self._tell(TrainingProgress("curve"))

    def _fitted(self) -> tuple[FittedCurve, ViewsOfGroups]:
        n_groups = self._statistics.counted[0].groups
        shares = Shares(*self._settings.statistics.split_shares)
        chunks, how = self._columns(), self._how
        try:
            found, told = fit_of_groups(
                chunks, n_groups, shares, how, self._online, self._fit_of
            )
        except TooManyClasses as error:
            raise TrainingRefused(f"{self._name!r}: {error}") from error
        if found.n_known >= LEAST_RANKS:
            return found, told
        needs = bias_estimator(self._curve.estimator).needs
        raise TrainingRefused(
            f"clicks must tell {LEAST_RANKS} ranks of {self._name!r} or more, from "
            f"{needs}; {found.warning() or 'nothing was shown at two ranks'}: wait for "
            "lists that differ, or set another estimator in "
            f"[curves.{self._name}]"
        )

    def _fit_of(self, told: ViewsOfGroups) -> FittedCurve:
        try:
            return self._how.fit(
                told.views, told.others, lambda: self._tell(TrainingProgress("curve"))
            )
        except ValueError as error:
            raise TrainingRefused(f"{self._name!r}: {error}") from error

    def _snapshot(
        self,
        pointer: Pointer,
        found: FittedCurve,
        told: ViewsOfGroups,
        counts: dict[int, int],
    ) -> Snapshot:
        parent, n_ranks = self._parent, len(found.alpha)
        return Snapshot(
            model=self._name,
            epoch=pointer.epoch,
            version=pointer.version,
            parent=parent.version if parent else 0,
            created_ms=least_watermark_of(self._statistics),
            kind=CURVE,
            hidden=[],
            normalisation="none",
            n_features=n_ranks,
            features_hash=features_hash(n_ranks),
            sources=list(counts.items()),
            updates=(parent.updates if parent else 0) + 1,
            weights=curve_weights([getattr(found, name) for name in ROWS]),
            intervention=intervention_of(self._name, pointer),
            groups=sorted(told.groups),
            parent_epoch=parent.epoch if parent else 0,
        )
