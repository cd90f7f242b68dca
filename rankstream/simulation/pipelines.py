"""Where simulated events go and the ranker reads: Kafka and Redis, or this process."""

import contextlib
import time
from collections.abc import Iterator

import msgspec

from producers.event_producer import EventProducer
from producers.readiness import Waiting
from producers.simulation import Sink
from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings, Settings
from rankstream.snapshots import Snapshot, store_of
from streams.local import LocalPipeline, local_settings

SETTLE_S = 60.0
"""How long to wait, at the end, for the learner to have folded everything."""

START_WAIT_S, TRY_FOR_S = 300.0, 2.0


@contextlib.contextmanager
def in_process(
    settings: Settings, name: str, n_features: int
) -> Iterator[tuple[Sink, Ranker]]:
    """The pipeline of this process; a model that has no settings gets the defaults."""
    model = settings.models.get(name) or ModelSettings(features=n_features)
    own = msgspec.structs.replace(local_settings(settings), models={name: model})
    pipeline = LocalPipeline(own, now=lambda: time.time_ns() // 1_000_000)
    pipeline.start()
    key = name.encode()
    ranker = Ranker(name, source=lambda: pipeline.snapshots.get(key))
    ranker.refresh()
    yield pipeline, ranker


@contextlib.contextmanager
def on_kafka(settings: Settings, name: str) -> Iterator[tuple[Sink, Ranker]]:
    """A producer to Kafka, and a ranker that reads Redis.

    Raises
    ------
    RuntimeError
        Where Redis has no snapshot of the model for long.
    """
    store = store_of(settings)
    ranker = Ranker(name, store=store)
    _await_snapshot(ranker)
    try:
        with EventProducer(settings) as sink:
            yield sink, ranker
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
