"""The curve that rewards are estimated under, and what it is without each group."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from models.estimators.adaptivity import is_chosen_from_clicks
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import Shares
from rankstream.settings import Settings
from rankstream.wire.envelope import Snapshot
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.curves.curve_estimator import CurveEnds, CurveEstimator
from streams.training.curves.curve_views import every
from streams.training.curves.estimated_curve import (
    BY_POSITION,
    NO_INTERVAL,
    EstimatedCurve,
    Takes,
    curve_of_groups,
    estimated_curve,
)
from streams.training.curves.known_curve import KnownCurve, published_curve
from streams.training.model_lists import scopes_for

NO_FIT = "without some group of those that it is from, clicks do not tell the curve"

TOO_LARGE = (
    "items were shown too seldom for the curve, whose ratios further down come out too "
    "large"
)
"""At 94 lists of 40 queries, 7 of 10 intervals of 95 % held the truth or fewer."""


class CurveReplicates(NamedTuple):
    """A curve, and its fits without one group at a time.

    Parameters
    ----------
    curve
        Of bias.
    source
        In words.
    without
        The curve without the clicks of a group, of each that it is from; no entries
        where it was given.
    warning
        What is not well known of it; see `streams.training.curves.estimated_curve`.
    reason
        Why errors cannot have that of the fit; empty where they can.
    ends
        Of alpha; None where it was given.
    groups
        That it is from; empty where it was given.
    bias
        Whether clicks show trust bias, where that was asked; see
        `streams.training.curves.estimated_curve`.
    takes
        Whether it is from lists of an intervention.
    """

    curve: BiasCurve
    source: str
    without: Mapping[int, BiasCurve] = MappingProxyType({})
    warning: str = ""
    reason: str = ""
    ends: CurveEnds | None = None
    groups: tuple[int, ...] = ()
    bias: str = ""
    takes: Takes = every

    def without_group(self, group: int | None) -> BiasCurve:
        """The fit that leaves out a group, or none of them."""
        return self.curve if group is None else self.without.get(group, self.curve)


def replicated_curve(
    read: Callable[[], Iterable[Columns]],
    n_groups: int,
    shares: Shares,
    on_fit: Callable[[int], object] = lambda _: None,
    online: Container[str] = (),
) -> CurveReplicates | None:
    """The curve that trainings would estimate, and its fits without each group.

    All of them end where the first one does: a reward of fewer ranks is another
    reward. Columns are read once for each fit.

    Parameters
    ----------
    read
        Gives all columns in their order, anew with each call.
    n_groups
        `statistics.groups` of the statistics.
    on_fit
        Is told how many fits are done; what it raises ends all.
    online
        Interventions whose lists a model that learns online may have made; see
        `streams.training.model_lists`.

    Returns
    -------
    None where clicks do not tell it.
    """
    found = estimated_curve(read(), n_groups, shares, online=online)
    if found.curve is None:
        return None
    on_fit(1)
    known = KnownCurve(
        found.curve, found.source, found.groups, found.warning, found.ends
    )
    if found.is_chosen:
        return _alone(known, NO_INTERVAL)._replace(takes=found.takes)

    if found.is_too_large:
        # Fits without a group are as far off, so that no interval would know it.
        return _alone(known, TOO_LARGE)._replace(takes=found.takes)

    def fit(rest: Sequence[int]) -> BiasCurve | None:
        return curve_of_groups(read(), rest, BY_POSITION, found.takes)

    return _replicated(known, fit, on_fit)._replace(takes=found.takes)


def _alone(known: KnownCurve, reason: str) -> CurveReplicates:
    """A curve whose errors nobody knows, and why."""
    return CurveReplicates(
        known.curve,
        known.source,
        warning=known.warning,
        reason=reason,
        ends=known.ends,
        groups=known.groups,
    )


def published_replicates(
    settings: Settings,
    published: Snapshot,
    statistics: Statistics,
    on_fit: Callable[[int], object] = lambda _: None,
    online: Container[str] = (),
) -> CurveReplicates:
    """A curve that a model published, and its fits without each group.

    By the model's estimator, of what is counted now of the groups that it is from, but
    one. What was counted since it was fitted is in these too. Lists are left out as a
    fit would leave them out now.

    Parameters
    ----------
    published
        Of a model of the settings that is a curve.
    on_fit
        As in `replicated_curve`; is called while columns are read too.
    online
        As in `replicated_curve`.

    Raises
    ------
    SnapshotError
        Where it is no curve.
    """
    curve = settings.curves[published.model]
    how, known = CurveEstimator(curve), published_curve(published)
    is_wanted = scopes_for(curve.learns_from)

    n_done = 0

    def read() -> Iterator[Columns]:
        for chunk in statistics.columns(is_wanted=is_wanted):
            on_fit(n_done)
            yield chunk

    def count(n: int) -> None:
        nonlocal n_done
        n_done = n - 1
        on_fit(n_done)

    takes: Takes = every
    names = {scope.intervention for scope in statistics.scopes() if is_wanted(scope)}
    if any(is_chosen_from_clicks(name, online) for name in names):
        now = _fitted_now(read(), settings, statistics, how, online)
        if now.groups == known.groups:
            takes = now.takes
            if now.is_chosen:
                return _alone(known, NO_INTERVAL)

    return _replicated(
        known, lambda rest: _fitted_without(read(), rest, how, takes), count
    )


def _fitted_without(
    chunks: Iterable[Columns], rest: Sequence[int], how: CurveEstimator, takes: Takes
) -> BiasCurve | None:
    try:
        return curve_of_groups(chunks, rest, how, takes)
    except ValueError:
        # Without some group its ratios do not go with the anchor.
        return None


def _fitted_now(
    chunks: Iterable[Columns],
    settings: Settings,
    statistics: Statistics,
    how: CurveEstimator,
    online: Container[str],
) -> EstimatedCurve:
    """What a fit would be of; of nobody where ratios do not go with the anchor now."""
    shares = Shares(*settings.statistics.split_shares)
    n_groups = statistics.counted[0].groups
    try:
        return estimated_curve(chunks, n_groups, shares, how, online)
    except ValueError:
        return EstimatedCurve(None, "", ())


def _replicated(
    found: KnownCurve,
    fit: Callable[[Sequence[int]], BiasCurve | None],
    on_fit: Callable[[int], object],
) -> CurveReplicates:
    """A curve, and what `fit` makes of all of its groups but one."""
    without: dict[int, BiasCurve] = {}
    for group in found.groups:
        rest = [other for other in found.groups if other != group]
        fitted = fit(rest) if rest else None
        if fitted is None:
            return _alone(found, NO_FIT)
        without[group] = fitted
        on_fit(1 + len(without))
    n_ranks = min(each.n_ranks for each in (found.curve, *without.values()))
    source = found.source
    if n_ranks < found.curve.n_ranks:
        source += f", to rank {n_ranks}, beyond which one group tells it alone"
    return CurveReplicates(
        _first(found.curve, n_ranks),
        source,
        {group: _first(each, n_ranks) for group, each in without.items()},
        found.warning,
        ends=None if found.ends is None else found.ends.first(n_ranks),
        groups=found.groups,
    )


def _first(curve: BiasCurve, n_ranks: int) -> BiasCurve:
    """The same curve, of its first ranks."""
    return BiasCurve(curve.alpha[:n_ranks], curve.beta[:n_ranks], curve.is_ratio_only)
