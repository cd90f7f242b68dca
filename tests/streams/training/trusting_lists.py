"""Statistics of users who trust what stands high, where better items stand higher."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankstream.configuration.curves import ESTIMATORS, Curve
from rankstream.configuration.training import Schedule
from rankstream.settings import (
    KafkaSettings,
    LimitSettings,
    ModelSettings,
    Settings,
    StatisticsSettings,
)
from rankstream.wire.events import DETERMINISTIC, ClickMark, Interaction
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.reader import Statistics
from tests.event_factory import impression
from tests.planted_bias import Planted, with_trust

GROUPS, N_ITEMS = 6, 4
PLANTED = with_trust(N_ITEMS)

Record = tuple[bytes, bytes | None]


def curve_model(estimator="trust", **options):
    """A curve of four ranks."""
    given = {"ranks": N_ITEMS, "schedule": Schedule(after=[1_000]), **options}
    return ESTIMATORS[estimator](**given)


def settings_with(**of: ModelSettings | Curve) -> Settings:
    """Models and curves by name, of one partition."""
    return Settings(
        **by_kind(of),
        statistics=StatisticsSettings(groups=GROUPS),
        kafka=KafkaSettings(partitions=1),
    )


def by_kind(of: Mapping[str, ModelSettings | Curve]) -> dict[str, Any]:
    """What settings have of models and curves that are told together."""
    curves = {name: each for name, each in of.items() if isinstance(each, Curve)}
    models = {name: each for name, each in of.items() if name not in curves}
    return {"models": models, "curves": curves}


def trusting_lists(
    n_lists: int,
    seed: int = 1,
    *,
    planted: Planted = PLANTED,
    n_queries: int = 20,
    apart: float = 1.2,
    interventions: Sequence[str] = ("v0", "v1"),
) -> list[Interaction]:
    """Lists in an order of relevance and luck: the less `apart`, the more of that."""
    rng = np.random.default_rng(seed)
    log = []
    relevance = rng.permuted(
        np.tile(np.linspace(0.05, 0.95, N_ITEMS), (n_queries, 1)), axis=1
    )
    for number in range(n_lists):
        query = int(rng.integers(n_queries))
        luck = rng.gumbel(size=N_ITEMS)
        order = np.argsort(-(apart * 2.0 * relevance[query] + luck))
        chance = planted.alpha * relevance[query, order] + planted.beta
        clicked = np.flatnonzero(rng.random(N_ITEMS) < chance).tolist()
        one = impression(
            query_id=f"q{query}",
            items=list("abcd"),
            shown=["abcd"[x] for x in order],
            unit=number,
            policy=DETERMINISTIC,
            intervention=interventions[number % len(interventions)],
        )
        marks = [ClickMark(row + 1, 1, "click") for row in clicked]
        log.append(Interaction(one, marks))
    return log


def records_of(log: list[Interaction], groups: int = GROUPS) -> list[Record]:
    """What the real fold writes of them."""
    fold = StatisticsFold(LimitSettings(), StatisticsSettings(groups=groups), 10_000, 0)
    fold.take(closed_of(log))
    return [(key, value) for _, key, value in fold.changes({})]


def statistics_of(log: list[Interaction], groups: int = GROUPS) -> Statistics:
    """The same as a reader has it."""
    return Statistics(records_of(log, groups))
