"""Statistics of random lists, in several interventions, eras, sets and policies."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    UNKNOWN,
    ClickMark,
    Interaction,
)
from rankstream.wire.exposures import pack_exposures
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import impression

GROUPS, KEEP_MS = 8, 1_000
Record = tuple[bytes, bytes | None]


def lists(
    n: int, rng: np.random.Generator, *, n_queries: int = 7
) -> Iterator[Interaction]:
    """Lists of closed and open sets; a few are of unknown policies."""
    for number in range(n):
        size = int(rng.integers(3, 7))
        items = [f"d{x}" for x in sorted(rng.choice(9, size, replace=False).tolist())]
        policy = int(
            rng.choice(
                [DETERMINISTIC, LOGGED, PLACKETT_LUCE, UNKNOWN],
                p=[0.4, 0.29, 0.3, 0.01],
            )
        )
        shown = [items[x] for x in rng.permutation(size).tolist()[:3]]
        fields: dict[str, Any] = {"is_open_set": bool(rng.random() < 0.2)}
        if policy == LOGGED:
            exposures = np.full((size, 3), 1.0 / size, np.float32)
            fields["exposures"] = pack_exposures(exposures)
        if policy == PLACKETT_LUCE:
            fields["scores"] = rng.normal(size=size).astype("<f4").tobytes()
        clicked = np.flatnonzero(rng.random(3) < 0.4).tolist()
        one = impression(
            items=items,
            shown=shown,
            query_id=f"q{rng.integers(n_queries)}",
            unit=int(rng.integers(1_000)),
            policy=policy,
            intervention=str(rng.choice(["m", "m@0.5", "other"])),
            at_ms=KEEP_MS * 10 + int(rng.integers(2 * KEEP_MS)),
            **fields,
        )
        marks = [ClickMark(row + 1, number, "click") for row in clicked]
        yield Interaction(one, marks)


def records_of(interactions: list[Interaction]) -> list[Record]:
    """What the real fold writes of them."""
    fold = StatisticsFold(
        LimitSettings(), StatisticsSettings(groups=GROUPS), KEEP_MS, 0
    )
    fold.take(closed_of(interactions))
    return [(key, value) for _, key, value in fold.changes({})]
