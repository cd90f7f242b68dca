"""A site in process: generated queries, users who look down lists, models trained."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from models.evaluation.ndcg import mean_ndcg, ndcg_of_ranking
from producers.formats.letor import LetorData, generated_queries
from rankstream.configuration.curves import Curve
from rankstream.ranker import Ranker
from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.scoring import normalised
from rankstream.settings import (
    ModelSettings,
    Settings,
    StatisticsSettings,
    TimeSettings,
    TrainingSettings,
)
from rankstream.snapshots import Snapshot, decode_snapshot
from rankstream.wire.envelope import encode_snapshot
from rankstream.wire.topics import CLICKS, EVENTS, QUERIES
from streams.local import LocalPipeline, local_settings
from streams.stage import Output
from streams.training.local_trainer import LocalTrainer
from streams.training.verification import made_again
from tests.streams.training.trusting_lists import by_kind

N_FEATURES = 6
START_MS = 1_700_000_000_000
STEP_MS = 50
EXAMINATION = 1.0 / np.arange(1, 6)


def model_of(**fields: Any) -> ModelSettings:
    """A model that is trained; its schedule and plan are fields of its training."""
    own = {
        name: fields.pop(name)
        for name in ModelSettings.__struct_fields__
        if name in fields
    }
    plan = {"cutoff": 5, "epochs": 10, "least_support": 5.0, **fields}
    return ModelSettings(
        **{"features": N_FEATURES, "versions": "trained", **own},
        training=TrainingSettings(**plan),
    )


def settings_of(
    models: Mapping[str, ModelSettings | Curve],
    *,
    partitions: int = 1,
    groups: int = 10,
) -> Settings:
    """Short windows, so that lists close while the loop runs."""
    whole = Settings(
        **by_kind(models),
        statistics=StatisticsSettings(groups=groups),
        time=TimeSettings(disorder_ms=100, click_window_ms=500, remember_ms=500),
    )
    kafka = msgspec.structs.replace(
        local_settings(whole).kafka, partitions=partitions, input_partitions=1
    )
    return msgspec.structs.replace(whole, kafka=kafka)


def queries_of(n_queries: int = 60, n_documents: int = 8, seed: int = 3) -> LetorData:
    """Queries with grades that follow their features."""
    return generated_queries(
        n_queries=n_queries,
        n_documents=n_documents,
        n_features=N_FEATURES,
        rng=np.random.default_rng(seed),
    )


class Shop:
    """Shows lists of a model, has them clicked, and keeps the log.

    Parameters
    ----------
    shown
        The model whose lists are shown; the first one of the settings if not given.
    """

    def __init__(
        self, settings: Settings, *, shown: str = "", data: LetorData | None = None
    ) -> None:
        self.settings = settings
        self.data = data or queries_of()
        self.log: list[tuple[int, bytes]] = []
        self.outputs: list[Output] = []
        self.n_lists = 0
        self.shown_ndcg: list[float] = []
        self.pipeline = LocalPipeline(
            settings, now=lambda: START_MS, on_output=self._take
        )
        self.trainer = LocalTrainer(settings, self.pipeline)
        self.pipeline.start()
        self.model = shown or next(iter(settings.models))
        key = self.model.encode()
        self.ranker = Ranker(
            self.model, source=lambda: self.pipeline.snapshots.get(key)
        )

    def _take(self, output: Output) -> None:
        self.outputs.append(output)
        if output.topic == EVENTS:
            self.log.append((output.partition, output.value or b""))

    def show(
        self,
        n_lists: int,
        rng: np.random.Generator,
        *,
        every: int = 50,
        change: Callable[[dict[str, Any]], None] = lambda _: None,
        cutoff: int = 5,
    ) -> None:
        """Show so many lists to users, and train what comes due meanwhile.

        `change` may alter each query event.
        """
        data = self.data
        for _ in range(n_lists):
            if self.n_lists % every == 0:
                self.trainer.flush()
                self.ranker.refresh()
            query = int(rng.integers(len(data.query_ids)))
            rows = slice(data.offsets[query], data.offsets[query + 1])
            ranking = self.ranker.rank(
                data.features[rows], cutoff=cutoff, seed=int(rng.integers(2**62))
            )
            at_ms = START_MS + self.n_lists * STEP_MS
            labels = data.labels[rows][ranking.order]
            found = ndcg_of_ranking(data.labels[rows], ranking.order, cutoff)
            self.shown_ndcg.append(found)
            event = self.ranker.query_event(
                ranking,
                query_id=data.query_ids[query],
                items=[f"d{row}" for row in range(rows.stop - rows.start)],
                at_ms=at_ms,
                impression_id=f"i{self.n_lists}",
                user=f"user {int(rng.integers(4_000))}",
            )
            fields = msgspec.json.decode(event)
            change(fields)
            self.pipeline.send(QUERIES, msgspec.json.encode(fields))
            looked = rng.random(len(labels)) < EXAMINATION[: len(labels)]
            liked = rng.random(len(labels)) < 0.05 + 0.2 * labels
            for row in np.flatnonzero(looked & liked).tolist():
                click = {
                    "impression_id": f"i{self.n_lists}",
                    "query_id": data.query_ids[query],
                    "position": row + 1,
                    "at_ms": at_ms + 10,
                }
                self.pipeline.send(CLICKS, msgspec.json.encode(click))
            self.n_lists += 1

    def end(self) -> None:
        """End all sources, and train what is due then."""
        self.pipeline.end()
        self.trainer.flush()

    def snapshot(self, model: str = "") -> Snapshot:
        """What is served of a model."""
        return decode_snapshot(self.pipeline.snapshots[(model or self.model).encode()])

    def ndcg(self, snapshot: Snapshot, cutoff: int = 5) -> float:
        """Mean NDCG of the order that a snapshot gives, over all queries."""
        data, numbers = self.data, checked_weights(snapshot, None)
        scores = [
            numbers.scores(
                normalised(data.features[start:end], snapshot.normalisation), snapshot
            )
            for start, end in zip(
                data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True
            )
        ]
        flat = np.concatenate(scores).astype(np.float64)
        return mean_ndcg(data.labels, flat, data.offsets, cutoff)


def verify(settings, run, parent, events):
    """The envelope of a run's snapshot, made from the log alone."""
    return encode_snapshot(made_again(settings, run, parent, events).snapshot)
