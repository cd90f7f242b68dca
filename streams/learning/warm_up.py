"""Kernels of learners compiled, or read from their cache, before a record is folded.

The first compilation takes a minute or two; a worker that did it between two records
would stand still with its partitions, and look like a dead one.
"""

import msgspec
import numpy as np

from models.learners.learner import Learner, TrainingExample
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.events import (
    PLACKETT_LUCE,
    SCHEMA,
    ClickMark,
    Impression,
    Interaction,
    encode_record,
)
from rankstream.wire.routing import identity
from rankstream.wire.topics import INTERACTIONS
from streams.learning.learn import Learn
from streams.stage import SourceRecord


def warm_up(settings: Settings) -> None:
    """Let every model learn from a few made-up lists, and forget them."""
    for partition in range(settings.kafka.learner_partitions):
        stage = Learn(partition, settings)
        shown = [_shown(name, settings.models[name]) for name in stage.models]
        if not shown:
            continue
        value = encode_record([SCHEMA, 0, 1, shown])
        stage.fold(SourceRecord(INTERACTIONS, partition, 0, 0, None, value, ()))
        for name, model in stage.models.items():
            model.learner.learn(_example(model.learner, settings.models[name].features))


def _shown(name: str, of: ModelSettings) -> Interaction:
    impression = Impression(
        identity("i", name), name, "q", 0, name, 0, "", 0, PLACKETT_LUCE,
        msgspec.msgpack.encode(["a", "b", "c"]), np.array([1, 0], "<u2").tobytes(),
        False, np.arange(3, dtype="<f4").tobytes(), b"",
        np.ones((2, of.features), "<f4").tobytes(), of.features, 0, b"",
    )  # fmt: skip
    return Interaction(impression, [ClickMark(1, 1, "click")])


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
