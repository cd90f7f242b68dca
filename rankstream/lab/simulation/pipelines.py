"""Queries of a simulation, and where events go: Kafka and Redis, or this process."""

import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from models.evaluation.ndcg import mean_ndcg
from producers.event_producer import EventProducer
from producers.formats.letor import LetorData, generated_queries, read_fold, read_letor
from producers.readiness import Waiting
from producers.simulation import Sink
from producers.topic_reader import TopicReader, newest_ms
from rankstream.lab.simulation.awaited_interventions import AwaitedInterventions
from rankstream.lab.simulation.interventions import Interventions, OwnInterventions
from rankstream.ranker import Ranker
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot, decode_snapshot, store_of
from rankstream.wire.envelope import encode_snapshot
from streams.local import LocalPipeline, local_settings
from streams.training.local_trainer import LocalTrainer

SETTLE_S = 60.0
"""How long to wait, at the end, for the learner to have folded everything."""

MOST_GRADES = 5

START_WAIT_S, TRY_FOR_S = 300.0, 2.0


class Joined(NamedTuple):
    """Where events go, who ranks, and who trains.

    `after_ms` is what event times must come after; None where nothing was before.
    """

    sink: Sink
    ranker: Ranker
    interventions: Interventions
    after_ms: int | None = None


@contextlib.contextmanager
def in_process(
    settings: Settings, name: str, *, weights: npt.NDArray[np.float32] | None = None
) -> Iterator[Joined]:
    """The pipeline of this process, with the model of a name and no other.

    Parameters
    ----------
    weights : [n_features]
        What a model that is trained serves first, instead of zeros.
    """
    model = settings.models[name]
    own = msgspec.structs.replace(local_settings(settings), models={name: model})
    pipeline = LocalPipeline(own, now=lambda: time.time_ns() // 1_000_000)
    interventions = Interventions()
    if name in own.trained:
        interventions = OwnInterventions(name, LocalTrainer(own, pipeline))
    pipeline.start()
    key = name.encode()
    if weights is not None:
        first = decode_snapshot(pipeline.snapshots[key])
        begun = msgspec.structs.replace(first, weights=weights.astype("<f4").tobytes())
        pipeline.snapshots[key] = encode_snapshot(begun)
    ranker = Ranker(name, source=lambda: pipeline.snapshots.get(key))
    ranker.refresh()
    yield Joined(pipeline, ranker, interventions)


@contextlib.contextmanager
def on_kafka(
    settings: Settings,
    name: str,
    *,
    max_behind: int,
    is_stopped: Callable[[], bool],
) -> Iterator[Joined]:
    """A producer to Kafka, and a ranker that reads Redis.

    Parameters
    ----------
    max_behind
        Lists that may be shown after a training is due before it is there.
    is_stopped
        Ends waits for it.

    Raises
    ------
    RuntimeError
        Where Redis has no snapshot of the model for long.
    """
    store = store_of(settings)
    ranker = Ranker(name, store=store)
    _await_snapshot(ranker)
    try:
        with EventProducer(settings) as sink, contextlib.ExitStack() as stack:
            interventions = Interventions()
            reader = stack.enter_context(TopicReader(settings))
            if name in settings.trained:
                interventions = AwaitedInterventions(
                    settings, ranker, reader, max_behind, is_stopped
                )
            yield Joined(sink, ranker, interventions, newest_ms(reader))
    finally:
        ranker.close()
        store.close()


def _await_snapshot(ranker: Ranker) -> None:
    waiting, began_s = Waiting(), time.monotonic()
    while not ranker.wait(TRY_FOR_S):
        if ranker.awaited:
            waiting.waits(ranker.awaited)
            began_s = time.monotonic()
            continue
        waited_s = time.monotonic() - began_s
        if waited_s > START_WAIT_S:
            raise RuntimeError(
                f"model {ranker.model!r} must have a snapshot in Redis; after "
                f"{waited_s:.0f} s there is none: does `rankstream worker` run, with "
                f"[models.{ranker.model}] in its settings?"
            )
        waiting.waits(
            f"a snapshot of {ranker.model!r}; a worker compiles for a minute or two "
            "at its first start"
        )


def settled(ranker: Ranker, n_impressions: int) -> Snapshot:
    """The last version, as soon as it has folded everything, or patience ends."""
    deadline = time.monotonic() + SETTLE_S
    while ranker.version < n_impressions and time.monotonic() < deadline:
        ranker.refresh()
        time.sleep(0.02)
    return ranker.snapshot


def queries_of(
    data: Path | None, *, fold: int, seed: int
) -> tuple[LetorData, LetorData]:
    """Queries to learn from, and others to measure with.

    Parameters
    ----------
    data
        A LETOR file or a folder of folds; None for made-up queries.
    fold
        Of a folder, from 1.
    seed
        Of made-up queries.

    Raises
    ------
    ValueError
        Where there are fewer than two queries, or a label that users do not know.
    FileUnreadable
        Where the data do not parse.
    """
    train, test = _split(data, fold, seed)
    n_grades = n_grades_of(train, test)
    if n_grades > MOST_GRADES:
        raise ValueError(
            f"labels of {data} must be below {MOST_GRADES}, as users know no "
            f"other grades; got {n_grades - 1}"
        )
    return train, test


def n_grades_of(*data: LetorData) -> int:
    """One more than the highest label."""
    return int(max(each.labels.max() for each in data)) + 1


def _split(path: Path | None, fold: int, seed: int) -> tuple[LetorData, LetorData]:
    if path is None:
        rng = np.random.default_rng(seed)
        # One mixture of features must rule both splits.
        whole = generated_queries(n_queries=250, n_documents=20, n_features=16, rng=rng)
        return _between(whole, 0, 200), _between(whole, 200, 250)
    if path.is_dir():
        found = read_fold(path, fold)
        return found.train, found.test
    data = read_letor(path)
    n_queries = len(data.query_ids)
    if n_queries < 2:
        raise ValueError(
            f"{path} must hold at least 2 queries, one of them to measure "
            f"with; got {n_queries}"
        )
    n_test = max(1, n_queries // 5)
    return _between(data, 0, n_queries - n_test), _between(
        data, n_queries - n_test, n_queries
    )


def _between(data: LetorData, first: int, last: int) -> LetorData:
    rows = slice(data.offsets[first], data.offsets[last])
    return LetorData(
        data.query_ids[first:last],
        data.labels[rows],
        data.features[rows],
        data.offsets[first : last + 1] - data.offsets[first],
        data.first_feature,
    )


def ndcg_of(learned: Snapshot, test: LetorData, cutoff: int) -> float:
    """Mean NDCG of what was learned."""
    weights = np.frombuffer(learned.weights, "<f4")
    bounds = test.offsets.tolist()
    scores = [
        scores_of(
            normalised(test.features[start:end], learned.normalisation),
            weights,
            learned.hidden,
            learned.kind,
        )
        for start, end in pairwise(bounds)
    ]
    flat = np.concatenate(scores).astype(np.float64)
    return mean_ndcg(test.labels, flat, test.offsets, cutoff)
