"""The whole pipeline in one process, with users, data and a ranker around it.

Simulated users click on the lists of a ranker that learns from their clicks; events
pass the same folds as on Kafka. Relevance and position bias are planted, so that
what is learned can be held against the truth.
"""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from models.click_models.position_based import PositionBasedModel
from models.evaluation.ndcg import mean_ndcg
from producers.formats.letor import LetorData, generated_queries, read_letor
from producers.simulation import Plan, Progress, simulate, step_ms_for
from rankstream.lab.demonstration.view import DemoState
from rankstream.ranker import Ranker
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.settings import ModelSettings, Settings, load_settings
from rankstream.snapshots import decode_snapshot
from rankstream.wire.topics import CLICKS
from streams.local import LocalPipeline, local_settings
from streams.statistics.keys import decode, decode_set
from streams.statistics.newest_scopes import NewestScopes

Floats = npt.NDArray[np.floating]
Weights = npt.NDArray[np.float32]

MODEL = "demo"
CUTOFF = 10
REDRAW_S = 0.25
MEASURE_EVERY = 60
ESTIMATE_EVERY = 600


class Mishaps:
    """What happens to events on their way: repeats, strays and garbage, a few each.

    The pipeline must sort them out, and the screen shows that it does.
    """

    def __init__(self, pipeline: LocalPipeline, rng: np.random.Generator) -> None:
        self._pipeline = pipeline
        self._rng = rng

    def send(self, topic: str, value: bytes, key: bytes | None = None) -> None:
        """Pass an event on; now and then twice, or with something else behind it."""
        self._pipeline.send(topic, value, key)
        luck = self._rng.random()
        if luck < 0.02:
            self._pipeline.send(topic, value, key)
        elif luck < 0.025:
            self._pipeline.send(CLICKS, value[: len(value) // 2])
        elif luck < 0.03 and topic == CLICKS:
            event = msgspec.json.decode(value)
            event["impression_id"] = "nobody saw this"
            self._pipeline.send(CLICKS, msgspec.json.encode(event))

    def flush(self) -> None:
        """Pass on what waits."""
        self._pipeline.flush()

    def end(self) -> None:
        """End every source."""
        self._pipeline.end()


class ExaminationCounts:
    """Shown and clicked by (query, document) and rank, from the statistics' state."""

    def __init__(self, n_ranks: int) -> None:
        self._n_ranks = n_ranks
        self._items: dict[tuple[str, bytes, int], list[str]] = {}
        self._scopes = NewestScopes()
        self._document_of: dict[tuple[str, str], int] = {}

    def take(self, pipeline: LocalPipeline) -> None:
        """Take what changed in the statistics since the last time."""
        for change in pipeline.statistics():
            if self._scopes.take(change.key, change.value) is None and change.value:
                kind, *rest = decode(change.key)
                if kind == "set":
                    query, candidate_set, era = rest
                    items = decode_set(change.value)
                    self._items[query, candidate_set, era] = items

    def estimate(self) -> ExaminationCurve | None:
        """Examination by rank, relative to the first."""
        tables = []
        for name, pairs in self._scopes.pairs():
            items = self._items[name.query, name.candidate_set, name.era]
            rows = [
                self._document_of.setdefault((name.query, item), len(self._document_of))
                for item in items
            ]
            documents = np.array(rows, np.int64)[pairs[:, 0]]
            tables.append(np.column_stack((documents, pairs[:, 1:])))
        if not tables:
            return None
        return estimate_examination(*np.concatenate(tables).T, n_ranks=self._n_ranks)


class Demonstration:
    """Data, users, pipeline and ranker, joined.

    Parameters
    ----------
    data
        A LETOR file; None for made-up queries.
    n_impressions
        Lists to show.
    seed
        Of every random draw.

    Raises
    ------
    ValueError
        Where the data hold fewer than two queries.
    FileUnreadable
        Where the data do not parse.
    """

    def __init__(self, data: Path | None, *, n_impressions: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._train, self._test = queries_of(data, self._rng)
        self._n_grades = int(max(self._train.labels.max(), self._test.labels.max())) + 1
        self._examination = [1.0 / rank for rank in range(1, CUTOFF + 1)]
        grades = np.linspace(0.0, 1.0, self._n_grades)
        self._users = PositionBasedModel(
            tuple(self._examination), tuple((0.05 + 0.9 * grades**1.5).tolist())
        )
        settings = load_settings(None)
        features = self._train.features.shape[1]
        self._pipeline = _pipeline(settings, features, seed)
        self._settings = settings
        self._ranker = Ranker(
            MODEL, source=lambda: self._pipeline.snapshots.get(MODEL.encode())
        )
        self._production = production_weights(self._train)
        self._started = time.monotonic()
        self._drawn = 0.0
        self._impressions = n_impressions
        self.state = DemoState(
            title=str(data or "generated data, planted relevance and bias"),
            n_impressions=n_impressions,
            production_ndcg=self._ndcg(self._production),
            examination=self._examination,
        )
        self._counter = ExaminationCounts(CUTOFF)

    def run(self, draw: Callable[[], None]) -> None:
        """Show every list, and end."""
        self._pipeline.start()
        self._ranker.refresh()
        time_settings = self._settings.time
        step_ms = step_ms_for(
            200,
            window_ms=time_settings.click_window_ms,
            disorder_ms=time_settings.disorder_ms,
        )
        plan = Plan(
            n_impressions=self._impressions,
            start_ms=int(time.time() * 1_000) - self._impressions * step_ms,
            step_ms=step_ms,
            cutoff=CUTOFF,
        )
        sink = Mishaps(self._pipeline, self._rng)
        self._started = time.monotonic()
        simulate(
            self._train, self._users, self._ranker, sink, plan,
            rng=self._rng, on_progress=lambda progress: self._follow(progress, draw),
        )  # fmt: skip
        self._pipeline.end()
        self._ranker.refresh()
        self._measure()
        draw()

    def results(self) -> list[tuple[str, float, float]]:
        """Name, NDCG@10 and expected clicks a list of each ranker."""
        learned = self._learned()
        test = self._test
        ideal: list[Floats] = [
            test.labels[start:end].astype(np.float64) for start, end in bounds_of(test)
        ]
        rows = []
        for name, scores in (
            ("production", scores_by_query(test, self._production)),
            ("learned", scores_by_query(test, learned)),
            ("ideal", ideal),
        ):
            flat = np.concatenate(scores).astype(np.float64)
            ndcg = mean_ndcg(test.labels, flat, test.offsets, CUTOFF)
            rows.append((name, ndcg, self._expected_clicks(scores)))
        return rows

    def _follow(self, progress: Progress, draw: Callable[[], None]) -> None:
        state, now = self.state, time.monotonic()
        state.shown = progress.shown
        if progress.shown % ESTIMATE_EVERY == 0:
            self._measure()
        elif progress.shown % MEASURE_EVERY == 1:
            state.ndcg.append(self._ndcg(self._learned()))
        if now - self._drawn >= REDRAW_S:
            self._drawn = now
            state.seconds = now - self._started
            state.version = self._ranker.version
            state.behind = progress.shown - self._ranker.version
            draw()

    def _measure(self) -> None:
        state = self.state
        state.version = self._ranker.version
        state.behind = state.shown - state.version
        state.seconds = time.monotonic() - self._started
        state.ndcg.append(self._ndcg(self._learned()))
        self._counter.take(self._pipeline)
        state.estimated = self._counter.estimate()
        counts = self._pipeline.counters()
        letters = counts["dead_letter"] + counts["ingestion_dead_letter"]
        state.counts = {**counts, "dead_letters": letters}

    def _learned(self) -> Weights:
        value = self._pipeline.snapshots[MODEL.encode()]
        return np.frombuffer(decode_snapshot(value).weights, "<f4").astype(np.float32)

    def _ndcg(self, weights: Weights) -> float:
        test = self._test
        scores = np.concatenate(scores_by_query(test, weights)).astype(np.float64)
        return mean_ndcg(test.labels, scores, test.offsets, CUTOFF)

    def _expected_clicks(self, scores: Sequence[Floats]) -> float:
        expected = []
        for (start, end), of_query in zip(bounds_of(self._test), scores, strict=True):
            order = np.argsort(-of_query, kind="stable")[:CUTOFF]
            labels = self._test.labels[start:end][order]
            expected.append(self._users.click_probabilities(labels).sum())
        return float(np.mean(expected))


def _pipeline(settings: Settings, n_features: int, seed: int) -> LocalPipeline:
    model = ModelSettings(features=n_features, seed=seed)
    own = msgspec.structs.replace(local_settings(settings), models={MODEL: model})
    return LocalPipeline(own, now=lambda: int(time.time() * 1_000))


def queries_of(
    path: Path | None, rng: np.random.Generator
) -> tuple[LetorData, LetorData]:
    """Queries to learn from, and a fifth held out.

    Raises
    ------
    ValueError
        Where there are fewer than two.
    FileUnreadable
        Where the file does not parse.
    """
    if path is None:
        whole = generated_queries(n_queries=250, n_documents=20, n_features=16, rng=rng)
    else:
        whole = read_letor(path)
    n_queries = len(whole.query_ids)
    if n_queries < 2:
        raise ValueError(f"the data must hold at least 2 queries; got {n_queries}")
    order = rng.permutation(n_queries)
    n_test = max(1, n_queries // 5)
    return _chosen(whole, order[n_test:]), _chosen(whole, order[:n_test])


def _chosen(data: LetorData, queries: npt.NDArray[np.int64]) -> LetorData:
    bounds = bounds_of(data)
    rows = np.concatenate([np.arange(*bounds[query]) for query in queries.tolist()])
    sizes = [bounds[query][1] - bounds[query][0] for query in queries.tolist()]
    return LetorData(
        [data.query_ids[query] for query in queries.tolist()],
        data.labels[rows],
        data.features[rows],
        np.concatenate(([0], np.cumsum(sizes))),
        data.first_feature,
    )


def bounds_of(data: LetorData) -> list[tuple[int, int]]:
    """The rows of each query: where they begin and end."""
    offsets = data.offsets.tolist()
    return list(pairwise(offsets))


def scores_by_query(data: LetorData, weights: Weights) -> list[Floats]:
    """Scores [n_documents] of each query, by linear `weights` [n_features]."""
    return [
        scores_of(normalised(data.features[start:end], "min-max"), weights, [])
        for start, end in bounds_of(data)
    ]


def production_weights(data: LetorData) -> Weights:
    """A ranker such as one has before there are clicks: fitted to three queries."""
    bounds = bounds_of(data)[:3]
    features = np.concatenate(
        [normalised(data.features[start:end], "min-max") for start, end in bounds]
    ).astype(np.float64)
    labels = data.labels[: bounds[-1][1]].astype(np.float64)
    penalty = 3.0 * np.eye(features.shape[1])
    weights = np.linalg.solve(
        features.T @ features + penalty, features.T @ (labels - labels.mean())
    )
    return weights.astype(np.float32)
