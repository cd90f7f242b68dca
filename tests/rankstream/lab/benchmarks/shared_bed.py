"""A bed on the services of the test run, where their processes can be looked at."""

import contextlib
import os
from pathlib import Path

import pytest

from deploy.broker import Broker
from deploy.process import ServerFailed
from deploy.redis_server import Redis
from rankstream.lab.benchmarks.pipeline.bed import Bed
from rankstream.lab.benchmarks.pipeline.rival.build import rival_command
from tests.services import KafkaService, RedisService, ServiceMissing, without


class SharedBed(Bed):
    """Its broker is another one's."""

    def __init__(
        self, folder: Path, kafka: KafkaService, redis_server: RedisService
    ) -> None:
        super().__init__(folder, is_quick=True)
        port = int(kafka.bootstrap.rpartition(":")[2])
        self._pid, properties = _java_of(kafka.bootstrap)
        self.broker = Broker(properties.parent, port)
        self.redis = Redis(folder, redis_server.port)
        # Other tests have beds on the same broker, one after another or meanwhile.
        self._n_namespaces = int(folder.stat().st_ino) * 1_000

    def broker_pid(self) -> int:
        """Process id of the Java that listens on the broker's port."""
        return self._pid


def _java_of(bootstrap: str) -> tuple[int, Path]:
    """Process id of a broker and its properties, beside its data; skips elsewhere."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_text(errors="replace").split("\0")
            if "kafka.Kafka" in words:
                properties = Path(words[words.index("kafka.Kafka") + 1])
                if f"PLAINTEXT://{bootstrap}" in properties.read_text():
                    return int(file.parent.name), properties
    pytest.skip("processes of a broker elsewhere cannot be looked at")


def needs_the_rival() -> None:
    """Skip where the rival cannot be compiled, as by hand; in CI that fails."""
    try:
        rival_command()
    except ServerFailed as reason:
        without(ServiceMissing(str(reason)), os.environ)
