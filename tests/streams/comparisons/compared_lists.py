"""Lists of an experiment and clicks on them, for tests."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from rankstream.ranking.combining import combine
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import (
    MULTILEAVE,
    ClickMark,
    Impression,
    Interaction,
)
from rankstream.wire.topics import PREFERENCES
from streams.comparisons.preference_fold import (
    PreferencesFold,
)
from streams.stage import Change
from tests.event_factory import START_MS, impression

ITEMS = [f"d{i}" for i in range(12)]
BOOST = ExperimentSettings(
    rankers={"a": "", "b": "", "c": ""},
    method="team-draft",
    also={"sample-scored": {}},
)
EXPERIMENTS = {"boost": BOOST}


def compared(i: int, rng: np.random.Generator, **changes: Any) -> Impression:
    """An impression of the experiment, drawn as a client does."""
    names = sorted(BOOST.rankers)
    rankings = {name: [ITEMS[d] for d in rng.permutation(12)[:6]] for name in names}
    found = combine(changes.get("method", "team-draft"), rankings, 6, seed=i)
    extra: dict[str, Any] = {
        "experiment": {"id": "boost", "epoch": 1, "method": BOOST.method},
        "rankings": found.rankings,
        "session": f"s{i // 3}",
    }
    if found.assignments is not None:
        extra["assignments"] = found.assignments
    extra |= changes.get("extra", {})
    extra = {key: value for key, value in extra.items() if value is not None}
    return impression(
        f"i{i}",
        START_MS + i,
        items=ITEMS,
        shown=found.shown,
        policy=MULTILEAVE,
        query_id=f"q{i % 5}",
        extra=msgspec.msgpack.encode(extra),
    )


def clicked(one: Impression, rng: np.random.Generator) -> Interaction:
    """Clicks at random, some twice."""
    places = np.flatnonzero(rng.random(len(one.shown) // 2) < 0.3) + 1
    marks = [ClickMark(int(p), one.at_ms + 1, "click") for p in places]
    return Interaction(one, marks + marks[:1])


def some_interactions(n: int, seed: int = 0, **changes: Any) -> list[Interaction]:
    """A log of the experiment."""
    rng = np.random.default_rng(seed)
    return [clicked(compared(i, rng, **changes), rng) for i in range(n)]


OUTCOMES = {"consumed": 9, "late": 2}


def state_of(
    fold: PreferencesFold, outcomes: Mapping[str, int] | None = None
) -> dict[bytes, bytes]:
    """What the fold wrote."""
    changes = fold.changes(OUTCOMES if outcomes is None else outcomes)
    return {key: value for _, key, value in changes if value is not None}


def as_changes(state: dict[bytes, bytes]) -> list[Change]:
    """The same, as it is read back."""
    return [Change(PREFERENCES, key, value) for key, value in state.items()]
