"""Kernels compiled, or read from their cache, before a partition is taken.

The first compilation takes a minute or two; a worker that did it between
two records would stand still with its partitions, and look like a dead one.
"""

import msgspec
import numpy as np

from models.learners.learner import Learner, TrainingExample
from rankstream.settings import ExperimentSettings, ModelSettings, Settings
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    SCHEMA,
    TAIL_SHUFFLE,
    UNKNOWN,
    Click,
    Element,
    Frontier,
    Impression,
    encode_record,
)
from rankstream.wire.exposures import pack_exposures
from rankstream.wire.routing import identity
from rankstream.wire.topics import EVENTS, INTERACTIONS
from streams.fold.canonical_fold import CanonicalFold
from streams.learning.learn import Learn
from streams.partition_fold import partition_fold
from streams.stage import SourceRecord

ITEMS = ["a", "b", "c"]


def warm_up(settings: Settings) -> None:
    """Fold a few made-up events with every kind of stage, and forget them."""
    limits = msgspec.structs.replace(settings.limits, exposure_rows=1)
    small = msgspec.structs.replace(settings, limits=limits)
    time = settings.time
    fold = partition_fold(0, small)
    models = settings.models or {"": ModelSettings(features=1)}
    shown = [
        _impression(f"{name} {policy} {i}", name, model, policy, i)
        for name, model in models.items()
        for policy in (PLACKETT_LUCE, DETERMINISTIC, TAIL_SHUFFLE, LOGGED)
        for i in range(2)
    ]
    shown += [_compared(name, each) for name, each in settings.experiments.items()]
    clicks = [_click(one, position) for one in shown for position in (1, 2)]
    closed_ms = time.click_window_ms + 1
    passed_ms = closed_ms + time.keep_ms + 2 * 86_400_000
    _fold(fold, 1, [*shown, *clicks, Frontier(0, 1, 1, ACTIVE)])
    state = list(fold.changes())
    _fold(fold, 2, [Frontier(0, 1, closed_ms, ACTIVE)])
    learners = [Learn(p, settings) for p in range(settings.kafka.learner_partitions)]
    for output in fold.outputs():
        if output.topic == INTERACTIONS:
            place = (INTERACTIONS, output.partition, 0, 0, None, output.value, ())
            learners[output.partition].fold(SourceRecord(*place))
    for learner in learners:
        for name, model in learner.models.items():
            model.learner.learn(_example(model.learner, settings.models[name].features))
    state += fold.changes()
    partition_fold(0, small).restore(state)
    _fold(fold, 3, [Frontier(0, 1, passed_ms, ACTIVE)])


def _fold(fold: CanonicalFold, sequence: int, elements: list[Element]) -> None:
    value = encode_record([SCHEMA, 0, sequence, elements])
    fold.fold(SourceRecord(EVENTS, 0, sequence, 0, None, value, ()))
    fold.settle()


def _impression(
    name: str, model: str, of: ModelSettings, policy: int, i: int
) -> Impression:
    rows = np.array([i, 2, 1 - i], "<u2")
    exposures = np.full((len(ITEMS), len(rows)), 0.25, "<f4")
    exposures[i] = 0.0
    return Impression(
        identity("i", name), name, "q", i, model, 0, "", 0, policy,
        msgspec.msgpack.encode(ITEMS), rows.tobytes(), False,
        np.arange(i, i + len(ITEMS)).astype("<f4").tobytes(), pack_exposures(exposures),
        np.ones((len(rows), of.features), "<f4").tobytes(), of.features, 0, b"",
    )  # fmt: skip


def _click(impression: Impression, position: int) -> Click:
    mark = identity("c", impression.impression_id, str(position))
    item = "c" if position == 2 else ""
    return Click(
        mark, impression.identity, item, position, 1, "click", b"", ("", 0, 0, 0)
    )


def _compared(name: str, of: ExperimentSettings) -> Impression:
    """An impression of an experiment: each ranker begins with another item."""
    rankers = sorted(of.rankers)
    extra = {
        "experiment": {"id": name, "epoch": of.epoch, "method": of.method},
        "rankings": {
            ranker: [ITEMS[(i + n) % len(ITEMS)] for n in range(len(ITEMS))]
            for i, ranker in enumerate(rankers)
        },
        "assignments": [i % len(rankers) for i in range(len(ITEMS))],
    }
    plain = _impression(f"compared {name}", "", ModelSettings(features=1), UNKNOWN, 0)
    return msgspec.structs.replace(
        plain,
        shown=np.arange(len(ITEMS)).astype("<u2").tobytes(),
        extra=msgspec.msgpack.encode(extra),
    )


def _example(learner: Learner, n_features: int) -> TrainingExample:
    """A list with all that any learner may need."""
    config = getattr(learner, "config", None)
    width = 1 + getattr(config, "n_candidates", 1)
    ranks = np.tile(np.array([[1], [2]]), width)
    ranks[:, 1] = [2, 1]
    return TrainingExample(
        scores=np.arange(3, dtype="<f4"),
        shown=np.arange(2),
        clicks=np.array([False, True]),
        features=np.ones((2, n_features), "<f4"),
        seed=1,
        ranks=ranks,
        teams=np.array([0, 1]),
        candidates=np.ones((3, n_features), "<f4"),
    )
