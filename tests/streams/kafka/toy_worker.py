"""A worker process of the toy stage."""

import logging
import os
import sys
import time

from rankstream.settings import DeliverySettings, KafkaSettings, Settings
from streams.kafka.app import build_app, run_app
from streams.kafka.clients import Cluster
from streams.kafka.state.lost_records import AcceptedLoss
from streams.kafka.state.resume_position import Loss
from streams.stage import SourceRecord, Stage
from streams.topology import StageKind
from tests.streams.kafka.toy import OUT, SOURCE, STATE, Toy

SLOW_MS = int(os.environ.get("RANKSTREAM_TOY_SLOW_MS", "0"))
SESSION_S = float(os.environ.get("RANKSTREAM_TOY_SESSION_S", "4"))


class SlowToy(Toy):
    """Takes its time for each record."""

    def fold(self, record: SourceRecord) -> None:
        """Take a record, slowly."""
        time.sleep(SLOW_MS / 1_000)
        super().fold(record)


def _toy(_settings: Settings, partition: int) -> Stage:
    return SlowToy(partition) if SLOW_MS else Toy(partition)


def main() -> int:
    """Run it until SIGTERM."""
    bootstrap, namespace, topic_id, instance, *lost = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for noisy in ("aiokafka", "faust", "mode"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    settings = Settings(
        namespace=namespace,
        kafka=KafkaSettings(bootstrap=bootstrap),
        delivery=DeliverySettings(
            state_s=2.0, state_records=4_000, session_timeout_s=SESSION_S,
            instance_id=instance,
        ),
    )  # fmt: skip
    cluster = Cluster(namespace, {"bootstrap_servers": bootstrap}, {SOURCE: topic_id})
    # The role names the group that its transactions commit for.
    kind = StageKind("toy", SOURCE, (STATE,), _toy, (OUT,), role="toy")
    accepted = [
        AcceptedLoss(SOURCE, 0, Loss(*map(int, each.split("-")))) for each in lost
    ]
    return run_app(build_app(settings, "toy", [kind], cluster, accepted))


if __name__ == "__main__":
    sys.exit(main())
