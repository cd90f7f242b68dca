"""The curve of bias that clicks tell, from groups that nothing else is fitted on.

Unless asked otherwise it is of position bias (`BY_POSITION`).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from models.bias.examination import FEW_VIEWS
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.position_alone import NOT_TOLD, trust_test
from models.estimators.adaptivity import is_chosen_from_clicks
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import LEAST_TO_SPLIT, Shares, split_groups
from rankstream.configuration.curves import PositionCurve
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.curves.curve_estimator import (
    LEAST_RANKS,
    CurveEnds,
    CurveEstimator,
)
from streams.training.curves.curve_views import Part, every, views_of

OF_VALIDATION = "estimated from clicks of the validation groups"

OF_BOTH = "estimated from clicks of the training and validation groups"

CHOSEN = (
    ", from which policies were chosen, so that ratios may be too large, less so the "
    "more often an item was seen"
)
"""What was clicked by luck is shown further up, and clicked as usual there: it seems
that rank 1 is looked at no more than those below."""

NOT_ONLINE = ", but for lists of models that learn online"

FIXED = ", of lists of policies that were fixed beforehand alone"

NO_INTERVAL = "policies were chosen from the same clicks"
"""Why ratios have no interval: in simulations .4 to .9 of those of 95 % held them."""

BY_POSITION = CurveEstimator(PositionCurve())
"""The default: the estimator `position` of `models.bias.registry`, at ten ranks."""

Takes = Callable[[str], bool]


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
        Of alpha, as far as the curve goes; None without a curve, and where `is_chosen`.
    takes
        Whether it is from lists of an intervention.
    is_chosen
        Whether policies were chosen from these clicks; then nobody knows how far off
        it is.
    is_too_large
        Whether documents were shown so seldom that its ratios come out too large; see
        `models.bias.examination.estimate_examination`.
    """

    curve: BiasCurve | None
    source: str
    groups: tuple[int, ...]
    warning: str = ""
    ends: CurveEnds | None = None
    takes: Takes = every
    is_chosen: bool = False
    is_too_large: bool = False


class ViewsOfGroups(NamedTuple):
    """What some groups say of a curve, and in words whose clicks that are.

    Parameters
    ----------
    views
        Of documents that were shown at several ranks.
    others
        Of all others, by rank.
    takes, is_chosen
        See `EstimatedCurve`.
    """

    views: Views
    others: Views
    source: str
    groups: tuple[int, ...]
    takes: Takes = every
    is_chosen: bool = False


Fit = Callable[[ViewsOfGroups], FittedCurve]


def learned_online(intervention: str, online: Container[str]) -> bool:
    """Whether a model that learns online, from clicks of all groups, made these lists.

    One of its versions that was rolled back to came from them too.

    Parameters
    ----------
    online
        Interventions, other than versions, of such models; see `LearnedOnline`.

    Examples
    --------
    >>> [learned_online(x, ["m"]) for x in ("m", "m@0.12", "other@0.12", "v2")]
    [True, True, False, False]
    """
    if intervention in online:
        return True
    model = intervention.rpartition("@")[0]
    return is_chosen_from_clicks(intervention, ()) and model in online


def interventions_learned_online(
    statistics: Statistics, online: Container[str]
) -> list[str]:
    """Names of what was logged by models that learn online, sorted.

    Parameters
    ----------
    online
        See `learned_online`.
    """
    names = {scope.intervention for scope in statistics.scopes()}
    return sorted(name for name in names if learned_online(name, online))


def fit_of_groups(
    chunks: Iterable[Columns],
    n_groups: int,
    shares: Shares,
    how: CurveEstimator,
    online: Container[str],
    fit: Fit,
) -> tuple[FittedCurve, ViewsOfGroups]:
    """A fit of the clicks that tell most of a curve, of such as are safe where they do.

    Of the validation groups, or of these with the training groups where those do not
    tell two ranks. Never of the selection groups: who is trained under the curve, and
    all that come after, could then be judged by nobody. Groups that are too few to be
    split are taken together.

    Where policies were chosen from clicks that are among these, lists of such policies
    are left out if the others tell as many ranks. Else the fit has no intervals. Lists
    of versions that were trained are not such in the validation groups, as trainings
    take clicks of training groups.

    Parameters
    ----------
    chunks
        In their order; see `streams.statistics.columns`.
    n_groups
        `statistics.groups` of the statistics.
    online
        See `learned_online`.
    fit
        Of views; what it raises ends all.

    Returns
    -------
    The fit, and what it is of; where nothing tells two ranks, that of all that there
    are.
    """
    told = _Told(chunks, n_groups, shares, how, online)
    for each in told.of_all():
        found = fit(each)
        if found.n_known >= LEAST_RANKS:
            break
    if not each.is_chosen:
        return found, each
    for safe in told.of_safe():
        other = fit(safe)
        if other.n_known >= max(found.n_known, LEAST_RANKS):
            return other, safe
    return found.without_intervals(NO_INTERVAL), each


class _Told:
    """What clicks say, of all lists and of those that follow from no such clicks."""

    def __init__(
        self,
        chunks: Iterable[Columns],
        n_groups: int,
        shares: Shares,
        how: CurveEstimator,
        online: Container[str],
    ) -> None:
        self._online = online
        everybody = tuple(range(n_groups))
        self._split: tuple[int, ...] | None = None
        if n_groups >= LEAST_TO_SPLIT:
            splits = split_groups(n_groups, shares)
            self._split, everybody = (
                splits.validation,
                (*splits.training, *splits.validation),
            )
        some = self._split or everybody
        self._parts = (
            Part(some, self._is_not_online),
            Part(everybody, self._is_fixed),
            Part(some),
            Part(everybody),
        )
        self._n_groups = n_groups
        self._views = views_of(chunks, how.asked, self._parts)

    def _is_not_online(self, intervention: str) -> bool:
        return not learned_online(intervention, self._online)

    def _is_fixed(self, intervention: str) -> bool:
        return not is_chosen_from_clicks(intervention, self._online)

    def of_all(self) -> Iterator[ViewsOfGroups]:
        """Of the validation groups, and of all that may be taken."""
        if self._split:
            yield self._of(2, self._of_validation(), is_chosen=self._has_online)
        yield self._of(3, self._of_wider(), is_chosen=self._has_chosen)

    def of_safe(self) -> Iterator[ViewsOfGroups]:
        """The same of lists that no click of theirs chose."""
        if self._split:
            beside = NOT_ONLINE if self._has_online else ""
            yield self._of(0, self._of_validation() + beside)
        yield self._of(1, self._of_wider() + FIXED)

    @property
    def _has_online(self) -> bool:
        return not all(map(self._is_not_online, self._views.interventions))

    @property
    def _has_chosen(self) -> bool:
        return not all(map(self._is_fixed, self._views.interventions))

    def _of_validation(self) -> str:
        first, *_, last = 2 * list(self._split or ())
        return f"{OF_VALIDATION}, {first} to {last}"

    def _of_wider(self) -> str:
        if self._split:
            return f"{OF_BOTH}, as those of the validation groups do not tell it"
        told = f"{self._n_groups} group{'' if self._n_groups == 1 else 's'}"
        return f"estimated from all clicks, as {told} cannot be split"

    def _of(self, n: int, source: str, *, is_chosen: bool = False) -> ViewsOfGroups:
        part = self._parts[n]
        return ViewsOfGroups(
            self._views.views(n),
            self._views.others(n),
            source + self._views.sampled() + (CHOSEN if is_chosen else ""),
            tuple(part.groups),
            part.takes,
            is_chosen,
        )


def estimated_curve(
    chunks: Iterable[Columns],
    n_groups: int,
    shares: Shares,
    how: CurveEstimator = BY_POSITION,
    online: Container[str] = (),
) -> EstimatedCurve:
    """The curve of what was counted, from the validation groups where they tell it.

    Without intervals that take a bootstrap. See `fit_of_groups`; where nothing tells a
    curve there is none.

    Raises
    ------
    ValueError
        Where ratios do not go with the anchor of the estimator.
    """
    found, told = fit_of_groups(
        chunks, n_groups, shares, how, online, lambda each: how.point(each.views)
    )
    curve = how.usable(found)
    if curve is None:
        return EstimatedCurve(
            curve, told.source, told.groups, "", None, told.takes, told.is_chosen
        )
    ends = CurveEnds(found.alpha_low, found.alpha_high, how.curve.confidence)
    return EstimatedCurve(
        curve,
        told.source,
        told.groups,
        found.warning(),
        None if told.is_chosen else ends.first(curve.n_ranks),
        told.takes,
        told.is_chosen,
        FEW_VIEWS in found.reasons[: curve.n_ranks],
    )


def curve_of_groups(
    chunks: Iterable[Columns],
    groups: Sequence[int],
    how: CurveEstimator = BY_POSITION,
    takes: Takes = every,
) -> BiasCurve | None:
    """The curve of what these groups clicked, and nobody else; see `estimated_curve`.

    As of all but one of those that a curve is from, which tells how far it may be off.
    No intervals are made.

    Parameters
    ----------
    takes
        Whether lists of an intervention count.
    """
    views = views_of(chunks, how.asked, [Part(groups, takes)])
    return how.usable(how.point(views.views(0)))


CHOSEN_FROM_CLICKS = "policies were chosen from the same clicks"


def bias_told(
    chunks: Iterable[Columns],
    groups: Sequence[int],
    source: str,
    how: CurveEstimator = BY_POSITION,
    takes: Takes = every,
) -> str:
    """In words which holds, by `models.bias.position_alone`; one pass over columns.

    Parameters
    ----------
    chunks
        In their order; see `streams.statistics.columns`.
    groups
        Whose clicks the curve is from; empty where there is none.
    source
        The same in words: where policies were chosen from these clicks, no test holds.
    how
        The curve was fitted.
    takes
        Whether the curve is from lists of an intervention.
    """
    if not groups:
        return ""
    if CHOSEN in source:
        return NOT_TOLD + CHOSEN_FROM_CLICKS
    # What was never clicked would be left out for having had no luck.
    asked = how.asked._replace(keeps_unclicked=True, is_by_policy=False)
    views = views_of(chunks, asked, [Part(groups, takes)]).views(0)
    rng = np.random.default_rng(how.curve.seed)
    return trust_test(views, rng, n_ranks=asked.n_ranks).told()
