"""The whole pipeline in one process, with users, data and a ranker around it.

Simulated users click on the lists of a ranker that learns from their clicks; events
pass the same folds as on Kafka. Relevance and position bias are planted, so that
what is learned can be held against the truth.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from models.bias.examination import ExaminationCurve, estimate_examination
from models.click_models.position_based import PositionBasedModel
from models.evaluation.ndcg import mean_ndcg
from producers.simulation import Plan, Progress, simulate, step_ms_for
from rankstream.lab.demonstration.compared import (
    COMPARISON,
    EXPERIMENT,
    LEARNED,
    PRODUCTION,
    ComparedLists,
)
from rankstream.lab.demonstration.queries import (
    Floats,
    Weights,
    bounds_of,
    production_weights,
    queries_of,
    scores_by_query,
)
from rankstream.lab.demonstration.view import DemoState
from rankstream.ranker import Ranker
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.settings import (
    ExperimentSettings,
    ModelSettings,
    Settings,
    load_settings,
)
from rankstream.snapshots import Snapshot, decode_snapshot
from rankstream.wire.topics import CLICKS
from rankstream.wire.verdicts import Verdict
from streams.comparisons.verdicts import verdict_of
from streams.local import LocalPipeline, local_settings
from streams.statistics.keys import decode, decode_set
from streams.statistics.newest_scopes import NewestScopes

MODEL = "demo"
CUTOFF = 10
REDRAW_S = 0.25
MEASURE_EVERY = 60
WARM_UP = 100
"""Lists that are shown before all others, so that everything is compiled."""

COMPILING = "compiling, a minute or two the first time"
ESTIMATE_EVERY = 600
COMPARE_EVERY = 2
"""Lists between two of the experiment."""


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
    is_compared
        Whether users also compare what is learned with the ranker before it, on lists
        of an experiment beside the others.

    Raises
    ------
    ValueError
        Where the data hold fewer than two queries.
    FileUnreadable
        Where the data do not parse.
    """

    def __init__(
        self,
        data: Path | None,
        *,
        n_impressions: int,
        seed: int,
        is_compared: bool = False,
    ) -> None:
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
        experiments = {EXPERIMENT: COMPARISON} if is_compared else {}
        self._pipeline = _pipeline(settings, features, seed, experiments)
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
        self._sink = Mishaps(self._pipeline, self._rng)
        self._compared = (
            ComparedLists(self._train, self._users, self._sink, self._rng)
            if is_compared
            else None
        )
        self._at_ms = self._step_ms = 0
        self._per_s = math.inf

    def run(
        self,
        draw: Callable[[], None],
        *,
        per_s: float = math.inf,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Show every list, and end.

        Parameters
        ----------
        per_s
            Lists a second at most, for who wants to watch.
        """
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
        self._at_ms, self._step_ms, self._per_s = plan.start_ms, step_ms, per_s
        self._started = time.monotonic()
        simulate(
            self._train, self._users, self._ranker, self._sink, plan,
            rng=self._rng, on_progress=lambda progress: self._follow(progress, draw),
            is_stopped=is_stopped,
        )  # fmt: skip
        self._pipeline.end()
        self._ranker.refresh()
        self._measure()
        draw()

    @property
    def snapshot(self) -> Snapshot:
        """What was learned last."""
        return decode_snapshot(self._pipeline.snapshots[MODEL.encode()])

    def counters(self) -> dict[str, int]:
        """What became of all events, by the names of the workers' counts."""
        return self._pipeline.counters()

    def verdicts(self) -> list[Verdict]:
        """What lists of the experiment say so far; none where nobody compares."""
        return [verdict_of(each) for each in self._pipeline.comparisons()]

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
        state = self.state
        state.shown = progress.shown
        if self._compared is not None and progress.shown % COMPARE_EVERY == 0:
            at_ms = self._at_ms + self._step_ms * progress.shown
            self._compared.show(self._orders_of, at_ms)
        time.sleep(
            max(0.0, self._started + progress.shown / self._per_s - time.monotonic())
        )
        now = time.monotonic()
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

    def _orders_of(self, query: int) -> dict[str, list[int]]:
        """Rows of a query as each ranker orders them."""
        start, end = self._train.offsets[query : query + 2].tolist()
        features = normalised(self._train.features[start:end], "min-max")
        by_ranker = {LEARNED: self._learned(), PRODUCTION: self._production}
        return {
            ranker: np.argsort(
                -scores_of(features, weights, []), kind="stable"
            ).tolist()
            for ranker, weights in by_ranker.items()
        }

    def _learned(self) -> Weights:
        return np.frombuffer(self.snapshot.weights, "<f4").astype(np.float32)

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


def warm_up(
    data: Path | None, *, seed: int, is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Compile everything by a few lists that nobody sees; as `Demonstration`."""
    few = Demonstration(data, n_impressions=WARM_UP, seed=seed)
    few.run(lambda: None, is_stopped=is_stopped)


def _pipeline(
    settings: Settings,
    n_features: int,
    seed: int,
    experiments: dict[str, ExperimentSettings],
) -> LocalPipeline:
    model = ModelSettings(features=n_features, seed=seed)
    own = msgspec.structs.replace(
        local_settings(settings), models={MODEL: model}, experiments=experiments
    )
    return LocalPipeline(own, now=lambda: int(time.time() * 1_000))
