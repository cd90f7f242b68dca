"""What policies would be worth, before anybody sees them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from models.estimators.adaptivity import Basis
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.choice import CURVE_REMEDY
from models.estimators.choice import NO_CURVE as UNTOLD
from models.estimators.policy_comparison import PolicyComparison
from models.estimators.policy_reward import (
    RankWeights,
    click_weights_of,
    dcg_weights,
    look_weights,
    relevant_click_weights,
)
from models.estimators.registry import ESTIMATORS, POLICIES
from models.estimators.splits import Shares
from models.training.largest_loss import Fall
from rankstream.operations.answers.as_builtins import Answer, as_builtins
from rankstream.operations.answers.curve import (
    NUMBERS,
    curve_columns,
    numbers_of,
    published_version,
)
from rankstream.operations.answers.policies import Policies
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.support import range_of, support_of
from rankstream.operations.terminal.words import counted
from streams.estimation.curve_replicates import (
    CurveReplicates,
    published_replicates,
    replicated_curve,
)
from streams.estimation.evaluation import Coverage, evaluated
from streams.estimation.policy_rows import (
    PolicyRow,
    no_interval,
    rows_of,
)
from streams.estimation.question import LOGGED, Question
from streams.estimation.valuation_basis import valuation_basis_of
from streams.training.curves.estimated_curve import bias_told
from streams.training.curves.known_curve import GIVEN

WEIGHTS: Mapping[str, Callable[[BiasCurve], RankWeights]] = MappingProxyType(
    {
        "clicks": click_weights_of,
        "relevant-clicks": relevant_click_weights,
        "looks": look_weights,
        "dcg": lambda curve: dcg_weights(curve.n_ranks),
    }
)
"""What an item at a rank is worth, by name."""


class NothingToValue(ValueError):
    """There is nothing that policies could be valued on; it says why."""


Fitting = Callable[[], AbstractContextManager[Callable[[int], object]]]
"""Gives what is told how many fits of a curve are done, while they are made."""


def _untold() -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(lambda _: None)


@dataclass(frozen=True)
class ValueOptions:
    """How policies are to be valued.

    Parameters
    ----------
    weights
        A name of `WEIGHTS`.
    estimator
        Of the values of items; None: the one that what was logged allows.
    examination
        The curve of bias; None: that of the settings of the models, else the newest of
        `curve_model`, else one that is fitted.
    curve_model
        Whose newest curve is asked for.
    n_ranks
        How many items policies show at most; 0: as many as lists did.
    has_classes
        See `streams.estimation.evaluation.Question`.
    """

    weights: str = "clicks"
    estimator: str | None = None
    examination: BiasCurve | None = None
    curve_model: str | None = None
    n_ranks: int = 0
    has_classes: bool = False


@dataclass(frozen=True)
class Values(Answer):
    """What policies are worth.

    Parameters
    ----------
    question
        What was asked.
    weights
        The name of what ranks are worth.
    basis
        Whose clicks it is from.
    coverage
        How much of the log the figures are of.
    comparison
        Of policies that were valued.
    falls
        See `streams.estimation.evaluation.Evaluation`.
    """

    question: Question
    weights: str
    basis: Basis
    coverage: Coverage
    comparison: PolicyComparison
    falls: Mapping[str, Fall]

    @property
    def rows(self) -> list[PolicyRow]:
        """A row for each policy, what was logged first."""
        without = no_interval(self.basis, self.question.curve)
        return rows_of(self.comparison, without)

    def remarks(self) -> Iterator[str]:
        """What who reads the figures must know, the most important first."""
        question, coverage = self.question, self.coverage
        curve = question.curve
        yield self.basis.warning
        yield question.choice.said(coverage.n_as_shown, coverage.n_beside)
        yield _counted(self)
        yield from _left_out(self)
        if coverage.mixed and POLICIES in ESTIMATORS[question.estimator].needs:
            named = ", ".join(repr(name) for name in coverage.mixed[:3])
            more = len(coverage.mixed) - 3
            several = f" and {more} more" if more > 0 else ""
            yield (
                f"lists of {named}{several} had several placements in a query: clicks "
                "per exposure row cannot be told, so each is corrected by their mean"
            )
        yield from curve.curve.remarks()
        yield curve.bias
        yield curve.warning
        for row in self.rows:
            yield from support_of(row, question)

    def to_dict(self) -> dict[str, Any]:
        """All of it, NaN as None."""
        question, coverage = self.question, self.coverage
        curve, naive = question.curve, self.comparison.naive
        return {
            "estimator": question.estimator,
            "chosen": question.choice.said(coverage.n_as_shown, coverage.n_beside),
            "weights": self.weights,
            "against": question.base,
            "groups": list(question.groups),
            "curve": {
                **numbers_of(curve.curve, curve.ends),
                "source": curve.source,
            },
            "policies": as_builtins(self.rows),
            "logged_clicks": as_builtins(
                {
                    "value": float(naive.values[0]),
                    "low": float(naive.low[0]),
                    "high": float(naive.high[0]),
                }
            ),
            "coverage": as_builtins(coverage),
            "remarks": [remark for remark in self.remarks() if remark],
        }

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {
            **dict.fromkeys(("estimator", "chosen", "weights", "against"), str),
            "groups": list[int],
            "curve": {**NUMBERS, "source": str},
            "policies": list[PolicyRow],
            "logged_clicks": dict.fromkeys(("value", "low", "high"), float),
            "coverage": Coverage,
            "remarks": list[str],
        }


def values_of(
    source: CountedLog,
    policies: Policies,
    asked: ValueOptions,
    *,
    fitting: Fitting = _untold,
    valuing: Fitting = _untold,
) -> Values:
    """Value policies on what was counted.

    Parameters
    ----------
    fitting, valuing
        Are told how many fits of the curve, and how many queries, are done; what they
        raise ends all.

    Raises
    ------
    NothingToValue
        Where clicks do not tell the curve, or no list is of candidates that all rank.
    ValueError
        Where models have several curves in the settings.
    """
    grounds = valuation_basis_of(
        source.statistics, *source.policies, policies.fitted_on, asked.estimator
    )
    curve = _curve_of(source, policies, asked, fitting)
    if curve is None:
        raise NothingToValue(f"{UNTOLD}: {CURVE_REMEDY}")
    question = Question(
        grounds.choice,
        curve,
        WEIGHTS[asked.weights],
        grounds.n_groups,
        grounds.basis.groups,
        policies.base,
        asked.n_ranks,
        has_classes=asked.has_classes,
    )
    statistics = source.statistics
    with valuing() as on_queries:
        chunks = statistics.columns(marks_mixed=True)
        found = evaluated(chunks, policies.targets, question, on_queries)
    if found.comparison is None:
        raise NothingToValue(_uncovered(found.coverage))
    return Values(
        question,
        asked.weights,
        grounds.basis,
        found.coverage,
        found.comparison,
        found.falls,
    )


def _curve_of(
    source: CountedLog, policies: Policies, asked: ValueOptions, fitting: Fitting
) -> CurveReplicates | None:
    settings = source.settings
    if asked.examination is not None:
        return CurveReplicates(asked.examination, GIVEN)
    if asked.curve_model is not None:
        return _published(source, asked, fitting)
    told = {
        (*settings.models[model].training.examination,): model
        for model in sorted(policies.models & settings.models.keys())
        if settings.models[model].training.examination
    }
    if len(told) > 1:
        raise ValueError(
            "models that are valued side by side must have one curve; settings of "
            f"{', '.join(told.values())} have several: give --examination"
        )
    for examination, model in told.items():
        where = f"{GIVEN} by models.{model}.training"
        return CurveReplicates(position_curve(examination), where)
    published = _published(source, asked, fitting)
    if published is not None:
        return published
    counts = source.statistics.counted
    shares = Shares(*settings.statistics.split_shares)
    columns = partial(curve_columns, source.statistics, has_classes=asked.has_classes)
    with fitting() as on_fit:
        found = replicated_curve(
            columns,
            counts[0].groups if counts else 1,
            shares,
            on_fit,
            source.policies.models,
        )
    if found is None:
        return None
    bias = bias_told(columns(), found.groups, found.source, takes=found.takes)
    return found._replace(bias=bias)


def _published(
    source: CountedLog, asked: ValueOptions, fitting: Fitting
) -> CurveReplicates | None:
    """The newest curve of a model; None where none was asked for and there is none."""
    found = published_version(source, asked.curve_model)
    if found is None:
        return None
    with fitting() as on_fit:
        return published_replicates(
            source.settings, found, source.statistics, on_fit, source.policies.models
        )


def _uncovered(coverage: Coverage) -> str:
    if not coverage.lacking and coverage.n_left_out:
        return (
            "the estimator that --estimator names must have lists of known policies; "
            f"all {counted(coverage.n_left_out, 'list')} are of unknown ones, or lie "
            "beside such: leave --estimator out"
        )
    if not coverage.lacking:
        return "no list of a known policy was counted in the groups that may be used"
    lacking = ", ".join(coverage.lacking)
    return (
        f"none of {counted(coverage.n_all, 'list')} has candidates that all policies "
        f"rank; {lacking} say nothing of them: name queries as `rankstream statistics "
        "list` does and items as `rankstream statistics show` does, and have models "
        "that log features of candidates"
    )


def _counted(found: Values) -> str:
    """What was clicked, beside the estimate of the same."""
    naive = found.comparison.naive
    told = f"{naive.values[0]:.4f} clicks per list"
    if not naive.reasons[0]:
        told += f" ({range_of(float(naive.low[0]), float(naive.high[0]))})"
    if found.weights != "clicks":
        return f"counted, and not estimated: {told} were logged"
    return (
        f"counted, and not estimated: {told} were logged. The row {LOGGED!r} estimates "
        "the same as all other rows are estimated, so that it compares with them; if "
        "it lies far off, the curve is not that of these users"
    )


def _left_out(found: Values) -> Iterator[str]:
    """What the figures are not of."""
    coverage, curve = found.coverage, found.question.curve
    if coverage.n_classes:
        classes = counted(coverage.n_classes, "class", "classes")
        yield f"items whose ids are equal before # count as one: {classes}"
    yield curve.reason and f"no intervals: {curve.reason}; give --examination"
    for name, n in coverage.lacking.items():
        yield (
            f"{name} says nothing of the candidates of {counted(n, 'list')}, "
            f"{n / coverage.n_all:.1%}: they are left out for all"
        )
    for name, n in coverage.shorter.items():
        yield (
            f"{name} ranks fewer items than {counted(n, 'list')} showed, "
            f"{n / coverage.n_all:.1%}: ranks that it leaves empty are worth nothing; "
            "name more items, or compare the first ones with --ranks"
        )
    if coverage.n_left_out:
        yield (
            f"{counted(coverage.n_left_out, 'list')} left out: in their group of a "
            "scope are some of unknown policies"
        )
    if coverage.n_beyond:
        yield (
            f"the curve has {curve.curve.n_ranks} ranks: "
            f"{counted(coverage.n_beyond, 'click')} further down are left out"
        )
