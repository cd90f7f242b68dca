"""Learning curves of linear PDGD on MQ2008: `python -m tests.long_run_pdgd`.

Prints one JSON object a kind of users: NDCG@10 on the test split after 10^4, 10^5
and 10^6 impressions, mean over five folds, the discounted sum of shown NDCG over the
first 10^4, and impressions per second.
"""

import json
import sys
import time

import numpy as np
import numpy.typing as npt

from models.click_models.cascade import CASCADES, cascade_of
from models.evaluation.ndcg import ndcg_of_ranking
from models.learners.pdgd import PdgdConfig
from rankstream.lab.closed_loops.linear_pdgd_loop import LinearPdgdLoop
from rankstream.lab.closed_loops.world import World
from tests import mq2008

CHECKPOINTS = (10_000, 100_000, 1_000_000)
CUTOFF = 10
DISCOUNT = 0.9995


def offline_ndcg(loop: LinearPdgdLoop, split: World) -> float:
    """NDCG@10 of the loop's ranker, over queries with a relevant document."""
    scores = split.features.astype(np.float64) @ loop.parameters
    return mq2008.ndcg_at_10(split, scores)


def shown_ndcg(world: World, shown: npt.NDArray[np.int64]) -> list[float]:
    """NDCG@10 of every list that was shown; 0 where nothing is relevant."""
    found = []
    for query, *rows in shown.tolist():
        labels = world.labels[world.offsets[query] : world.offsets[query + 1]]
        ranking = np.array([row for row in rows if row >= 0])
        found.append(ndcg_of_ranking(labels, ranking, CUTOFF))
    return found


def curve(fold: int, kind: str) -> dict[str, float]:
    """Figures of one run, with users who may stop at any document."""
    train, test = mq2008.split(fold, "train"), mq2008.split(fold, "test")
    users = cascade_of(kind, 3, stop_requires_click=False)
    loop = LinearPdgdLoop(PdgdConfig(46), train, users, rng=np.random.default_rng(fold))
    figures: dict[str, float] = {}
    done = 0
    elapsed = 0.0
    for checkpoint in CHECKPOINTS:
        started = time.perf_counter()
        shown = loop.run(checkpoint - done)
        elapsed += time.perf_counter() - started
        if done == 0:
            values = np.array(shown_ndcg(train, shown))
            discounts = DISCOUNT ** np.arange(len(values))
            figures["online"] = float(values @ discounts)
            figures["last_1000_shown"] = float(values[-1_000:].mean())
        done = checkpoint
        figures[f"ndcg_{checkpoint}"] = offline_ndcg(loop, test)
    figures["impressions_per_s"] = done / elapsed
    return figures


def main() -> int:
    """Print the curves."""
    if not mq2008.is_there():
        sys.stderr.write(f"{mq2008.ABSENT}\n")
        return 1
    for kind in CASCADES:
        runs = [curve(fold, kind) for fold in range(1, 6)]
        means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        json.dump({"users": kind, **means}, sys.stdout)
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
