"""Kernels that workers of tests need, compiled before the first test.

    python -m tests.session.kernels

keeps them where each process finds them. A trainer gives way to all else on its
machine: on one that is busy it would compile for ten minutes what takes half of one.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from rankstream.configuration.trees import TreesSettings
from rankstream.settings import ModelSettings, Settings
from tests.fire.in_process import MODELS, STATISTICS, TIME, warm_up
from tests.streams.training.shop import Shop, model_of, settings_of

N_LISTS = 400
"""From which something can be learned."""

TREES = TreesSettings(rounds=2, leaves=4, least_items=4)


def compile_stages() -> None:
    """What folds and learns."""
    warm_up(Settings(models=MODELS, time=TIME, statistics=STATISTICS))


def compile_trainings() -> None:
    """What trains rankers from sums: linear ones, and trees."""
    plan = {"first": N_LISTS, "interventions": 1, "epochs": 2, "least_support": 0.0}
    trees = {"kind": "trees", "normalisation": "none", "trees": TREES}
    for model in (model_of(**plan), model_of(**plan, **trees)):
        _train(model)


def _train(model: ModelSettings) -> None:
    shop = Shop(settings_of({"m": model}))
    shop.show(N_LISTS, np.random.default_rng(0))
    shop.pipeline.flush()
    shop.trainer.train("m")


PARTS: tuple[Callable[[], None], ...] = (compile_stages, compile_trainings)


def main() -> int:
    """All of it, on as many cores as there are parts."""
    with ProcessPoolExecutor(len(PARTS)) as processes:
        for done in [processes.submit(part) for part in PARTS]:
            done.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
