"""The memory of a training of more statistics and features than fit into it.

Items stand at one of two ranks by a coin, so that clicks tell the curve of bias, too.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from rankstream.lab.benchmarks.statistics import GIB, GROUPS, KEEP_MS, many, template_of
from rankstream.lab.benchmarks.workload import START_MS, Workload
from rankstream.settings import ModelSettings, Settings, TrainingSettings
from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.envelope import Snapshot, features_hash
from rankstream.wire.events import LOGGED
from rankstream.wire.training import ASKED
from streams.statistics import keys
from streams.statistics.reader import Statistics
from streams.training.inputs import Inputs, feature_records_for
from streams.training.trained_snapshot import train_model

Record = tuple[bytes, bytes]

MODEL = "model"
"""As the workload names it."""

N_FEATURES = 136
N_ITEMS = 60
LISTS = 4_000
"""Of each query."""


def memory(n_gib: float) -> dict[str, Any]:
    """The largest resident size of a process of its own that trains from so many GiB.

    Statistics and features together; the goal is the default of `train.memory_mb`.
    """
    told = subprocess.run(  # noqa: S603  our own module
        [sys.executable, "-m", __name__, str(n_gib)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    n_bytes, n_queries, spent_s, peak = map(float, told.split())
    most = float(Settings().train.memory_mb)
    return {
        "name": f"largest resident size of a training, {n_bytes / GIB:.2f} GiB of "
        f"{n_queries:,.0f} queries in {spent_s:.0f} s of CPU",
        "value": peak / (1 << 20),
        "unit": "MiB",
        "rival": None,
        "ratio": peak / (1 << 20),
        "goal": most,
        "floor": most,
        "less_is_better": True,
    }


class _Generated:
    """Statistics and features of ever more queries, up to so many bytes together."""

    def __init__(self, n_bytes: float) -> None:
        plan = Workload(LISTS, LOGGED, 1, N_ITEMS, 40, clicks_per_list=6.0)
        self._templates = [template_of(plan, seed) for seed in range(5)]
        self._most = n_bytes
        self.n_bytes = self.n_queries = 0

    def statistics(self) -> Iterator[Record]:
        """Records of `statistics`, which say how many queries there are."""
        of_features = 4 * N_FEATURES * N_ITEMS
        for scope in many(self._templates):
            for key, value in scope:
                self.n_bytes += len(value)
                yield key, value
            self.n_queries += 1
            self.n_bytes += of_features
            if self.n_bytes >= self._most:
                break
        counted = keys.Counted(
            groups=GROUPS,
            keep_ms=KEEP_MS,
            classes=("click",),
            reward="click",
            watermark_ms=START_MS,
            sources={0: self.n_queries * LISTS},
            n_left=0,
            oldest=None,
            capped=0,
            clipped=0,
            without_exposure=0,
        )
        yield keys.counted_key(0), keys.encode_counted(counted)

    def candidates(self) -> Iterator[Record]:
        """Records of `candidates` of as many queries."""
        rng = np.random.default_rng(1)
        sets = [next(iter(Statistics(x).columns())) for x in self._templates]
        for number in range(self.n_queries):
            columns = sets[number % len(sets)]
            rows = rng.random((len(columns.items[0]), N_FEATURES), np.float32)
            packed = msgspec.msgpack.encode(columns.items[0])
            value = candidates_value(packed, rows.tobytes(), N_FEATURES)
            name = columns.names[0].candidate_set
            hashed = features_hash(N_FEATURES)
            yield candidates_key(f"query {number}", name, hashed), value


def main(n_gib: float) -> None:
    """Print bytes, queries, seconds of CPU, and bytes that were resident at most."""
    model = ModelSettings(
        features=N_FEATURES, versions="trained", training=TrainingSettings(epochs=5)
    )
    parent = Snapshot(
        MODEL, 0, 0, 0, 0, model.kind, [], model.normalisation, N_FEATURES,
        features_hash(N_FEATURES), [], 0, bytes(4 * N_FEATURES),
    )  # fmt: skip
    generated = _Generated(n_gib * GIB)
    started_s = time.process_time()
    statistics = Statistics(generated.statistics())
    settings = Settings(models={MODEL: model})
    features = feature_records_for(settings, MODEL, generated.candidates())
    found = train_model(
        MODEL,
        settings,
        Inputs(statistics, features),
        parent,
        reason=ASKED,
    )
    sizes = found.run.sizes
    n_queries = sizes.n_queries + sizes.n_held_out
    assert n_queries == generated.n_queries  # noqa: S101  what was read is measured
    spent_s = time.process_time() - started_s
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    sys.stdout.write(f"{generated.n_bytes} {n_queries} {spent_s} {peak}\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
