"""Where events of a simulation go: Kafka and Redis, or this process."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from producers.event_producer import EventProducer
from producers.readiness import Waiting
from producers.simulation import Sink
from producers.topic_reader import TopicReader, newest_ms
from rankstream.lab.simulation.awaited_interventions import AwaitedInterventions
from rankstream.lab.simulation.interventions import Interventions, OwnInterventions
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot, decode_snapshot, store_of
from rankstream.wire.envelope import encode_snapshot
from streams.local import LocalPipeline, local_settings
from streams.training.local_trainer import LocalTrainer

SETTLE_S = 60.0
"""How long to wait, at the end, for the learner to have folded everything."""

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
