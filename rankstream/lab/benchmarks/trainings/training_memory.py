"""The memory of a training of more statistics and features than fit into it.

    python -m rankstream.lab.benchmarks.trainings.training_memory GIB [KIND]

trains from so many GiB, statistics and features together, and prints bytes, queries,
seconds of CPU, and bytes that were resident at most. Of a linear ranker, the default,
these must stay below the default of `train.memory_mb`; trees hold a byte of each
feature.

Items stand at one of two ranks by a coin, so that clicks tell the curve of bias, too.
"""

import sys
from collections.abc import Iterator

import msgspec
import numpy as np

from rankstream.configuration.trees import TreesSettings
from rankstream.lab.benchmarks.harness import peak_mib, timed
from rankstream.lab.benchmarks.statistics import GIB, GROUPS, KEEP_MS, many, template_of
from rankstream.lab.benchmarks.workload import START_MS, Workload
from rankstream.settings import ModelSettings, Settings, TrainingSettings
from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.envelope import TREES, features_hash
from rankstream.wire.events import LOGGED
from rankstream.wire.models.training import ASKED
from streams.statistics import keys
from streams.statistics.reader import Statistics
from streams.training.inputs import Inputs, feature_records_for
from streams.training.recorded_inputs import first_version
from streams.training.trained_snapshot import Outcome, train_model

Record = tuple[bytes, bytes]

MODEL = "model"
"""As the workload names it."""

N_FEATURES = 136
N_ITEMS = 60
LISTS = 4_000
"""Of each query."""


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


PLANS = {
    "linear": TrainingSettings(epochs=5),
    TREES: TrainingSettings(trees=TreesSettings(rounds=20)),
}
"""By kind: few passes, as each holds as much as the next one."""


def main(n_gib: float, kind: str = "linear") -> None:
    """Print bytes, queries, seconds of CPU, and bytes that were resident at most."""
    model = ModelSettings(
        features=N_FEATURES,
        kind=kind,
        normalisation="none" if kind == TREES else ModelSettings().normalisation,
        versions="trained",
        training=PLANS[kind],
    )
    parent = first_version(MODEL, model)
    generated = _Generated(n_gib * GIB)
    settings = Settings(models={MODEL: model})

    def trained() -> Outcome:
        statistics = Statistics(generated.statistics())
        features = feature_records_for(settings, MODEL, generated.candidates())
        inputs = Inputs(statistics, features)
        return train_model(MODEL, settings, inputs, parent, reason=ASKED)

    spent_s, found = timed(trained)
    sizes = found.run.sizes
    n_queries = sizes.n_queries + sizes.n_held_out
    assert n_queries == generated.n_queries  # noqa: S101  what was read is measured
    peak = round(peak_mib() * (1 << 20))
    sys.stdout.write(f"{generated.n_bytes} {n_queries} {spent_s} {peak}\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), *sys.argv[2:])
