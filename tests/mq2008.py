"""MQ2008 (LETOR 4.0) for tests, where it lies beside the repository."""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from models.evaluation.ndcg import mean_ndcg
from rankstream.lab.closed_loops.world import World
from rankstream.ranking.scoring import normalised

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "MQ2008"
ABSENT = f"MQ2008 is not at {FOLDER}, so nothing was checked on real data"


def is_there() -> bool:
    """Whether the data set can be read."""
    return (FOLDER / "folds.json").exists()


def split(fold: int, name: str) -> World:
    """The "train", "vali" or "test" split of a fold 1 to 5, min-max by query."""
    folds = json.loads((FOLDER / "folds.json").read_text(encoding="utf-8"))
    labels: list[int] = []
    rows: list[list[float]] = []
    offsets = [0]
    last = ""
    for file in folds[f"Fold{fold}"][name]:
        with gzip.open(FOLDER / f"{file}.txt.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                label, query, *features = line.partition("#")[0].split()
                if query != last and labels:
                    offsets.append(len(labels))
                last = query
                labels.append(int(label))
                rows.append([float(pair.partition(":")[2]) for pair in features])
    offsets.append(len(labels))
    raw = np.array(rows)
    scaled = [
        normalised(raw[begin:end], "min-max")
        for begin, end in itertools.pairwise(offsets)
    ]
    return World(
        np.concatenate(scaled).astype(np.float32), np.array(labels), np.array(offsets)
    )


def ndcg_at_10(world: World, scores: npt.NDArray[np.float64]) -> float:
    """Mean NDCG@10 over the queries with a relevant document."""
    return mean_ndcg(world.labels, scores, world.offsets, 10)
