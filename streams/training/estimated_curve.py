"""The curve of bias that clicks tell, from groups that nothing else is fitted on."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.estimators.adaptivity import is_chosen_from_clicks
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import LEAST_TO_SPLIT, Shares, split_groups
from streams.fold.statistics_columns import Columns
from streams.training.curve_ends import CurveEnds
from streams.training.curve_estimator import LEAST_RANKS, CurveEstimator
from streams.training.curve_views import CurveViews, views_of

OF_VALIDATION = "estimated from clicks of the validation groups"

OF_BOTH = "estimated from clicks of the training and validation groups"

CHOSEN = (
    ", from which policies were chosen, so that ratios may be too large and intervals "
    "too short, less so the more often an item was seen"
)
"""What was clicked by luck is shown further up, and clicked as usual there: it seems
that rank 1 is looked at no more than those below."""

BY_POSITION = CurveEstimator()
"""Examination at ten ranks, as the monitor estimates it."""


class EstimatedCurve(NamedTuple):
    """A curve, None where clicks cannot tell it, and what it is from.

    Parameters
    ----------
    curve
        Up to the first rank without a ratio.
    source
        In words.
    groups
        Whose clicks it was estimated from.
    warning
        Ranks that are not well known, as the monitor says it; else empty.
    ends
        Of alpha, as far as the curve goes; None without a curve.
    """

    curve: BiasCurve | None
    source: str
    groups: tuple[int, ...]
    warning: str = ""
    ends: CurveEnds | None = None


class ViewsOfGroups(NamedTuple):
    """What some groups say of a curve, and in words whose clicks that are.

    Parameters
    ----------
    views
        Of documents that were shown at several ranks.
    others
        Of all others, by rank.
    """

    views: Views
    others: Views
    source: str
    groups: tuple[int, ...]


def views_by_preference(
    chunks: Iterable[Columns], n_groups: int, shares: Shares, how: CurveEstimator
) -> Iterator[ViewsOfGroups]:
    """Views to fit a curve on: the next where those of before do not tell one.

    Those of the validation groups, then these with the training groups. Never those of
    the selection groups: who is trained under the curve, and all that come after, could
    then be judged by nobody. Groups that are too few to be split are taken together.

    Parameters
    ----------
    chunks
        In their order; see `streams.fold.statistics_columns`.
    n_groups
        `statistics.groups` of the statistics.
    """
    everybody = tuple(range(n_groups))
    if n_groups < LEAST_TO_SPLIT:
        told = f"{n_groups} group{'' if n_groups == 1 else 's'}"
        source = f"estimated from all clicks, as {told} cannot be split"
        views = views_of(chunks, how.asked, everybody, everybody)
        yield _of(views, source, everybody, beside=_chosen(views))
        return
    splits = split_groups(n_groups, shares)
    validation, wider = splits.validation, (*splits.training, *splits.validation)
    views = views_of(chunks, how.asked, validation, wider)
    source = f"{OF_VALIDATION}, {validation[0]} to {validation[-1]}"
    yield _of(views, source, validation)
    source = f"{OF_BOTH}, as those of the validation groups do not tell it"
    yield _of(views, source, wider, is_wider=True, beside=_chosen(views))


def _chosen(views: CurveViews) -> str:
    """What is to be said where policies were chosen from clicks of training groups.

    Which models learn online, from all clicks, no list says.
    """
    is_chosen = any(is_chosen_from_clicks(name, ()) for name in views.interventions)
    return CHOSEN if is_chosen else ""


def _of(
    views: CurveViews,
    source: str,
    groups: tuple[int, ...],
    *,
    is_wider: bool = False,
    beside: str = "",
) -> ViewsOfGroups:
    return ViewsOfGroups(
        views.views(is_wider=is_wider),
        views.others(is_wider=is_wider),
        source + views.sampled() + beside,
        groups,
    )


def estimated_curve(
    chunks: Iterable[Columns],
    n_groups: int,
    shares: Shares,
    how: CurveEstimator = BY_POSITION,
) -> EstimatedCurve:
    """The curve of what was counted, from the validation groups where they tell it.

    Without intervals that take a bootstrap. See `views_by_preference`; where nothing
    tells a curve there is none.

    Raises
    ------
    ValueError
        Where ratios do not go with the anchor of the estimator.
    """
    for each in views_by_preference(chunks, n_groups, shares, how):
        found = how.point(each.views)
        if found.n_known >= LEAST_RANKS:
            break
    return _estimated(found, each, how)


def _estimated(
    found: FittedCurve, told: ViewsOfGroups, how: CurveEstimator
) -> EstimatedCurve:
    curve = how.usable(found)
    if curve is None:
        return EstimatedCurve(curve, told.source, told.groups)
    ends = CurveEnds(found.alpha_low, found.alpha_high, how.options.confidence)
    return EstimatedCurve(
        curve, told.source, told.groups, found.warning(), ends.first(curve.n_ranks)
    )


def curve_of_groups(
    chunks: Iterable[Columns],
    groups: Sequence[int],
    how: CurveEstimator = BY_POSITION,
) -> BiasCurve | None:
    """The curve of what these groups clicked, and nobody else; see `estimated_curve`.

    As of all but one of those that a curve is from, which tells how far it may be off.
    No intervals are made.
    """
    views = views_of(chunks, how.asked, groups, groups)
    return how.usable(how.point(views.views()))
