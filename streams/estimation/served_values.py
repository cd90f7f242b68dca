"""Versions of a model valued on the log that others and they themselves made."""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from models.estimators.policy_reward import click_weights_of
from rankstream.wire.envelope import Snapshot, SnapshotError, pointer_of
from rankstream.wire.models.model_evaluations import UNKNOWN, ModelValues, PolicyValue
from rankstream.wire.verdicts import Ends
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.evaluation import Coverage, Evaluation, evaluated
from streams.estimation.policy_rows import PolicyRow, no_interval, rows_of
from streams.estimation.question import LOGGED, Question
from streams.estimation.targets import SnapshotTarget, Target
from streams.estimation.valuation_basis import (
    FittedOn,
    ValuationBasis,
    valuation_basis_of,
)
from streams.statistics.columns import Columns
from streams.training.inputs import Inputs

NO_FEATURES = "of no list all policies have features of the candidates"

OTHER_FEATURES = "it ranks by another list of features"

NO_LISTS = "no list of a known policy was counted in the groups that may be used"


NOTHING = Coverage(0, 0, 0, 0, {}, 0, 0, ())


class Served(NamedTuple):
    """Versions of a model, and what is known of the policies that logged.

    Parameters
    ----------
    newest, parent
        What is served, and the version that it came from, where that is there.
    lacking
        Policies that cannot be valued, by name, and why.
    online
        Models that learn online; see `models.estimators.adaptivity`.
    fitted_on
        Groups whose clicks policies that logged came from, where that is known.
    """

    newest: Snapshot
    parent: Snapshot | None
    lacking: Mapping[str, str]
    online: Container[str]
    fitted_on: FittedOn

    @property
    def model(self) -> str:
        """Its name."""
        return self.newest.model

    @property
    def versions(self) -> dict[str, Snapshot]:
        """Those that are there, by name: MODEL@EPOCH.VERSION."""
        both = self.newest, self.parent
        return {f"{x.model}@{pointer_of(x)}": x for x in both if x is not None}


def values_of(
    served: Served,
    log: Inputs,
    curve: CurveReplicates | str,
    check: Callable[[], object] = lambda: None,
) -> ModelValues:
    """What versions of a model are worth per list, beside what was logged.

    Clicks per list, by the estimator that `rankstream evaluate` takes where nothing
    else is asked for.

    Parameters
    ----------
    log
        Statistics, and features of the model's list.
    curve
        Of bias, or why there is none.
    check
        Is called again and again; what it raises ends all.

    Raises
    ------
    ValueError
        Where the log is spoilt.
    """
    lacking = dict(served.lacking)
    targets: dict[str, Target] = {}
    own: dict[str, frozenset[int] | None] = {}
    for name, snapshot in served.versions.items():
        if snapshot.features_hash != log.features.features_hash:
            lacking[name] = OTHER_FEATURES
            continue
        try:
            targets[name] = SnapshotTarget(snapshot, log.features)
        except SnapshotError as error:
            lacking[name] = str(error)
            continue
        if snapshot.groups or snapshot.updates:
            own[name] = frozenset(snapshot.groups) or None
    basis = valuation_basis_of(log.statistics, served.online, served.fitted_on, own)
    every = (LOGGED, *targets)
    if isinstance(curve, str):
        return _record(served, log, basis, dict.fromkeys(every, curve) | lacking)
    question = Question(
        basis.choice,
        curve,
        click_weights_of,
        basis.n_groups,
        basis.basis.groups,
    )
    found = evaluated(_chunks(log, check), targets, question, lambda _: check())
    if found.comparison is None:
        why = NO_FEATURES if found.coverage.lacking else NO_LISTS
        lacking = dict.fromkeys(every, why) | lacking
    return _record(served, log, basis, lacking, (curve, found))


def _chunks(log: Inputs, check: Callable[[], object]) -> Iterator[Columns]:
    statistics = log.statistics
    for chunk in statistics.columns(marks_mixed=True):
        check()
        yield chunk


def _record(
    served: Served,
    log: Inputs,
    basis: ValuationBasis,
    lacking: Mapping[str, str],
    answer: tuple[CurveReplicates, Evaluation] | None = None,
) -> ModelValues:
    policies: list[PolicyValue] = []
    source, coverage, remarks = "", NOTHING, [basis.basis.warning]
    if answer is not None:
        coverage = answer[1].coverage
    remarks.append(basis.choice.said(coverage.n_as_shown, coverage.n_beside))
    if answer is not None:
        curve, found = answer
        source = curve.source
        remarks += _remarks(coverage, curve)
        if found.comparison is not None:
            without = no_interval(basis.basis, curve)
            policies = [_value(row) for row in rows_of(found.comparison, without)]
    policies += [
        PolicyValue(policy=name, interval=UNKNOWN, difference_interval=UNKNOWN, why=why)
        for name, why in lacking.items()
    ]
    return ModelValues(
        model=served.model,
        at_ms=log.watermark_ms,
        estimator=basis.choice.estimator,
        curve=source,
        groups=list(basis.basis.groups),
        queries=coverage.n_queries,
        lists=coverage.n_lists,
        clicks=coverage.n_clicks,
        lists_all=coverage.n_all,
        policies=policies,
        remarks=[each for each in remarks if each],
    )


def _value(row: PolicyRow) -> PolicyValue:
    is_logged = row.name == LOGGED
    return PolicyValue(
        policy=row.name,
        value=_or_none(row.reward),
        interval=_ends(row.low, row.high),
        difference=None if is_logged else _or_none(row.difference),
        difference_interval=(
            UNKNOWN if is_logged else _ends(row.difference_low, row.difference_high)
        ),
        unseen=_or_none(row.unseen),
        largest_share=_or_none(row.largest_share),
        effective_clicks=_or_none(row.effective_clicks),
        why=row.reason,
    )


def _remarks(coverage: Coverage, curve: CurveReplicates) -> Iterator[str]:
    """What must be known of all figures, the most important first."""
    if curve.reason:
        yield f"no intervals: {curve.reason}"
    if coverage.n_lists < coverage.n_all:
        n = coverage.n_all - coverage.n_lists
        yield f"of {n:,} lists no features are there; they are left out"
    if coverage.n_left_out:
        n = coverage.n_left_out
        yield f"{n:,} lists beside some of unknown policies are left out"
    if coverage.n_beyond:
        yield f"{coverage.n_beyond:,} clicks at ranks beyond the curve are left out"
    yield curve.warning


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _ends(low: float, high: float) -> Ends:
    return _or_none(low), _or_none(high)
