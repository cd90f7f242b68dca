"""Curves of lists that a model made which learned from their clicks.

Ratios are too large there, as at rank 1 stands what was clicked by luck; intervals do
not know it. `python -m tests.long_run_intervals` has more logs.
"""

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from models.bias.registry import ESTIMATORS
from models.estimators.splits import LEAST_TO_SPLIT, Shares
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.events import DETERMINISTIC, ClickMark, Interaction
from rankstream.wire.models.curves import CurveRecord, published
from rankstream.wire.models.training import encode_record
from streams.estimation.curve_replicates import published_replicates, replicated_curve
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.curves.curve_snapshot import CurveOutcome, fit_curve
from streams.training.curves.estimated_curve import (
    CHOSEN,
    FIXED,
    NO_INTERVAL,
    NOT_ONLINE,
    curve_of_groups,
    estimated_curve,
)
from tests.event_factory import impression
from tests.online_lists import FIXED as BY_LUCK
from tests.online_lists import PDGD, ShownLists, online_lists
from tests.planted_bias import with_examination
from tests.streams.training.trusting_lists import (
    GROUPS,
    curve_model,
    records_of,
    settings_with,
)

PLANTED = with_examination(3)
N_LOGS = 20
LEARNS = ModelSettings(features=1, learner="pdgd")


def lists_of(
    seed: int, *, share_fixed: float = 0.0, n_rounds: int = 60, n_queries: int = 40
) -> ShownLists:
    """Of queries whose documents are nearly alike, by a learner in a hurry."""
    rng = np.random.default_rng(seed)
    return online_lists(
        PLANTED, n_rounds, rng, n_queries=n_queries, share_fixed=share_fixed, rate=1.0,
        spread=0.05,
    )  # fmt: skip


@cache
def held(*, share_fixed: float) -> tuple[float, float]:
    """Share of logs whose interval of rank 3 holds it; mean ratio less the true one.

    Of all lists, or of those that luck made where there are some.
    """
    n_held, error = 0, 0.0
    for seed in range(N_LOGS):
        lists = lists_of(seed, share_fixed=share_fixed)
        is_wanted = lists.is_fixed if share_fixed else ~lists.is_fixed
        found = ESTIMATORS["position"].estimate(lists.views(is_wanted), 3)
        n_held += found.alpha_low[2] <= PLANTED.ratios[2] <= found.alpha_high[2]
        error += (found.alpha[2] - PLANTED.ratios[2]) / N_LOGS
    return n_held / N_LOGS, error


def test_intervals_of_lists_that_followed_from_clicks_do_not_hold() -> None:
    """So they are not to be printed."""
    share, error = held(share_fixed=0.0)
    assert share < 0.7
    assert error > 0.03


def test_intervals_of_lists_beside_them_that_were_fixed_do() -> None:
    """Whatever others learned meanwhile."""
    share, error = held(share_fixed=0.5)
    assert share >= 0.9
    assert abs(error) < 0.02


@cache
def records(share_fixed: float, name: str = PDGD) -> list[tuple[bytes, bytes | None]]:
    """What the real fold counts of a log."""
    lists = lists_of(1, share_fixed=share_fixed, n_rounds=150, n_queries=10)
    log = []
    for unit, (is_fixed, query, order, clicked) in enumerate(zip(*lists, strict=True)):
        one = impression(
            query_id=f"q{query}",
            items=list("abc"),
            shown=["abc"[x] for x in order],
            unit=unit,
            policy=DETERMINISTIC,
            intervention=BY_LUCK if is_fixed else name,
        )
        marks = [ClickMark(int(row) + 1, 1, "click") for row in np.flatnonzero(clicked)]
        log.append(Interaction(one, marks))
    return records_of(log)


def fitted(
    share_fixed: float, name: str = PDGD, **models: ModelSettings
) -> CurveOutcome:
    """By the real fit, of ten views a document and more."""
    statistics = Statistics(records(share_fixed, name))
    return fit_curve("c", settings_of(**models), statistics, None, reason="asked")


def settings_of(**models: ModelSettings) -> Settings:
    """A curve, and models beside it."""
    return settings_with(c=curve_model("position", ranks=3), **models)


def has_interval(run: CurveRecord) -> list[bool]:
    """Whether each rank that is printed has one."""
    return [each.alpha_interval is not None for each in published(run).ranks[:3]]


@pytest.mark.parametrize("name", [PDGD, f"{PDGD}@1.200"])
def test_a_fit_of_such_lists_alone_warns_and_has_no_interval(name: str) -> None:
    """Also of a version that was rolled back to."""
    run = fitted(0.0, name, m=LEARNS).run
    assert has_interval(run) == [False] * 3
    assert run.source.endswith(CHOSEN)
    assert NO_INTERVAL in run.warning()
    assert run.online == [name]
    statistics, settings = Statistics(records(0.0, name)), settings_of(m=LEARNS)
    estimated = estimated_curve(statistics.columns(), GROUPS, Shares(), online=[PDGD])
    assert (estimated.is_chosen, NO_INTERVAL in estimated.warning) == (True, True)
    replicates = replicated_curve(statistics.columns, GROUPS, Shares(), online=[PDGD])
    assert replicates is not None
    assert (replicates.without, replicates.reason) == ({}, NO_INTERVAL)
    snapshot = fitted(0.0, name, m=LEARNS).snapshot
    kept = published_replicates(settings, snapshot, statistics, online=[PDGD])
    assert (kept.without, kept.reason) == ({}, NO_INTERVAL)


def test_nobody_who_is_not_known_to_learn_is_suspected() -> None:
    """Names that no settings and no snapshot tell were fixed beforehand."""
    run = fitted(0.0).run
    assert has_interval(run) == [True] * 3
    assert (run.online, run.warning()) == ([], "")


def test_a_fit_takes_the_other_lists_where_they_tell_as_many_ranks() -> None:
    """To the bit as if there were no others; groups and all."""
    run = fitted(0.5, m=LEARNS).run
    assert run.source.endswith(NOT_ONLINE)
    assert has_interval(run) == [True] * 3
    alone = fit_curve(
        "c",
        settings_with(c=curve_model("position", ranks=3, learns_from=[BY_LUCK])),
        Statistics(records(0.5)),
        None,
        reason="asked",
    ).run
    assert (run.alpha, run.alpha_low, run.groups) == (
        alone.alpha,
        alone.alpha_low,
        alone.groups,
    )
    assert run.n_shown == alone.n_shown
    statistics, settings = Statistics(records(0.5)), settings_of(m=LEARNS)
    kept = published_replicates(
        settings, fitted(0.5, m=LEARNS).snapshot, statistics, online=[PDGD]
    )
    without_other = curve_of_groups(statistics.columns(), [3], takes=BY_LUCK.__eq__)
    assert without_other is not None
    assert kept.without[2].alpha.tolist() == without_other.alpha.tolist()


def test_of_too_few_groups_lists_of_fixed_policies_are_taken() -> None:
    """There all clicks are those that versions were trained from, too."""
    version, few = "other@1.200", LEAST_TO_SPLIT - 1
    columns = Statistics(records(0.5, version)).columns()
    found = estimated_curve(columns, few, Shares())
    assert found.source.endswith(FIXED)
    assert not found.is_chosen
    columns = Statistics(records(0.0, version)).columns()
    alone = estimated_curve(columns, few, Shares())
    assert alone.source.endswith(CHOSEN)
    assert alone.warning


def test_the_record_has_all_that_a_fit_knew() -> None:
    """Made again without the settings of the other models, it is the same."""
    run = fitted(0.5, m=LEARNS).run
    again = fit_curve(
        "c", settings_of(), Statistics(records(0.5)), None, reason="asked",
        online=frozenset(run.online),
    ).run  # fmt: skip
    assert encode_record(again) == encode_record(run)
    unaware = fitted(0.5).run
    assert unaware.alpha != run.alpha


def test_where_others_tell_fewer_ranks_all_lists_are_taken() -> None:
    """A shorter curve would lose clicks; it has no intervals then."""
    cut = [
        chunk._replace(
            shown=chunk.shown * _is_kept(chunk),
            by_class=chunk.by_class * _is_kept(chunk),
        )
        for chunk in Statistics(records(0.5)).columns()
    ]
    found = estimated_curve(cut, GROUPS, Shares(), online=[PDGD])
    assert found.source.endswith(CHOSEN)
    assert found.curve is not None
    assert found.curve.n_ranks == 3


def _is_kept(chunk: Columns) -> npt.NDArray[np.bool_]:
    """Rows of PDGD, and the first two ranks of the others."""
    is_online = np.array([each.intervention == PDGD for each in chunk.names])
    return np.asarray(is_online[chunk.scope] | (chunk.rank <= 2))
