"""What an epoch takes: of a linear ranker and a network, by each loss."""

import time
from typing import Any

import numpy as np

from models.losses.registry import DEFAULT, LOSSES
from models.rankers.ranker import Ranker
from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker

HIDDEN = 64
"""Units of the network, as in the published experiments."""

Queries = list[QueryChunk]


def training_epochs(training: Queries, held_out: Queries) -> list[dict[str, Any]]:
    """Seconds of CPU for an epoch of each loss, and by the usual one of a network.

    What is timed beside the pass is the DCG of held-out queries, once.
    """
    n_features = training[0].features.shape[1]
    linear = ranker_of("linear", n_features)
    networks = {
        f"{HIDDEN} {units} units": ranker_of(kind, n_features, [HIDDEN])
        for kind, units in (("neural", "sigmoid"), ("neural-relu", "rectified"))
    }
    cases = [
        *((f"linear, {loss}", linear, loss) for loss in LOSSES),
        *((f"{name}, {DEFAULT}", ranker, DEFAULT) for name, ranker in networks.items()),
    ]
    n_queries = sum(chunk.n_queries for chunk in training)
    return [
        _figure(
            f"an epoch of {n_queries:,} queries, {name}",
            _epoch_s(ranker, training, held_out, loss),
        )
        for name, ranker, loss in cases
    ]


def _figure(name: str, spent_s: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": spent_s,
        "unit": "s of CPU",
        "rival": None,
        "ratio": spent_s,
        "goal": None,
        "floor": None,
        "less_is_better": True,
    }


def _epoch_s(ranker: Ranker, training: Queries, held_out: Queries, loss: str) -> float:
    """The shorter of two epochs after the start, which compiles what is not yet."""
    start = ranker.initial_parameters(rng=np.random.default_rng(5))
    plan = TrainingPlan(epochs=2, loss=loss, patience=2)
    ends_s: list[float] = []
    train_ranker(
        ranker, start, training, held_out, plan,
        on_epoch=lambda _: ends_s.append(time.process_time()),
    )  # fmt: skip
    return float(np.diff(ends_s).min())
