"""From the commit of a promotion to the running ranker: 200 of them, timed.

    python -m tests.long_run_promotions [N]

Takes some minutes. On a broker and a Redis of its own, promotions by force follow one
another; only the role `publish` brings them to Redis, as after a command that was
killed, and a ranker follows there. Prints percentiles in milliseconds.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from deploy.broker import Broker
from deploy.redis_server import Redis
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, pointer_of
from rankstream.wire.models.changes import PROMOTED
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.deployment.operator_change import Chosen, Wanted, change
from streams.training.model_records import ModelRecords
from tests.worker_process import PATIENCE_S, configured, running, settings_of

MODEL = """
[models.search]
features = 20
versions = "promoted"
"""
ROLES = ["--role", "learn", "--role", "publish"]


def promoted(settings: Settings, number: int) -> None:
    """Serve other weights; returns when that is committed."""

    def choose(records: ModelRecords) -> Chosen:
        now = records.newest["search"]
        weights = np.random.default_rng(number).normal(size=20).astype("<f4")
        new = msgspec.structs.replace(
            now, weights=weights.tobytes(), parent=now.version, parent_epoch=now.epoch
        )
        return Chosen(new, PROMOTED)

    cluster = Cluster(settings.namespace, client_options(settings.kafka), {})
    asyncio.run(change(settings, cluster, Wanted("search", None, "timed"), choose))


def timed(settings: Settings, ranker: Ranker, n: int) -> list[float]:
    """Milliseconds of each."""
    found = []
    for number in range(n):
        assert ranker.pointer is not None
        epoch = ranker.pointer.epoch + 1
        promoted(settings, number)
        begun_s = time.monotonic()
        while pointer_of(ranker.snapshot).epoch < epoch:
            time.sleep(0.001)
        found.append((time.monotonic() - begun_s) * 1_000.0)
        if not (number + 1) % 20:
            sys.stderr.write(f"{number + 1} promotions\n")
    return found


def main(n: int) -> None:
    """Print the percentiles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker, server = Broker(folder / "kafka"), Redis(folder / "redis")
        broker.start()
        server.start()
        try:
            config = configured(folder, broker.bootstrap, server.url, "timed", MODEL)
            store = SnapshotStore(server.url, namespace="timed")
            ranker = Ranker("search", store=store)
            with running(config, folder / "worker.log", *ROLES):
                assert ranker.wait(PATIENCE_S)
                ranker.follow()
                found = timed(settings_of(config), ranker, n)
                ranker.close()
        finally:
            broker.kill()
            server.kill()
    for share in (50, 90, 99, 100):
        sys.stdout.write(f"p{share} {np.percentile(found, share):.0f} ms\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
