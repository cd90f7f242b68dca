"""`kafka://` reads the canonical log, and says what is wrong where it cannot."""

import socket
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rankstream
from producers.event_producer import send_records
from producers.formats.adapted import Adapted
from producers.formats.canonical_dump import Header, write_dump
from producers.formats.log_files import FilesOfAForm, LogFiles, read_log
from rankstream.settings import load_settings
from rankstream.wire.topics import EVENTS
from streams.local import LocalPipeline, local_settings
from streams.stage import Output
from tests.clicked_tables import shop
from tests.services import KafkaService
from tests.worker_process import configured

SMALL = shop(n_lists=40, seed=4)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("kafka://", "a cluster must be kafka://HOST:PORT/NAMESPACE"),
        ("kafka://localhost:9092/a/b", "a cluster must be"),
        ("kafka://me:secret@localhost:9092/shop", "must have no user and no password"),
        ("kafka://localhost:9092/a b", "namespace must hold letters"),
    ],
)
def test_what_is_no_address_is_refused(address: str, reason: str) -> None:
    """Before anybody is asked; a password is not said again."""
    with pytest.raises(ValueError, match=reason) as told:
        rankstream.read(address, progress=False)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clicks", "clicks.csv"),
        ("format", "nope"),
        ("columns", {"item": "sku"}),
        ("options", {"time_unit": "s"}),
        ("session_join", True),
    ],
)
def test_what_is_said_of_files_is_refused_beside_a_cluster(
    name: str, value: Any
) -> None:
    """It would change nothing; nobody is asked."""
    with pytest.raises(ValueError, match=f"^{name} must be given with tables"):
        rankstream.read("kafka://127.0.0.1:1/shop", progress=False, **{name: value})


def test_a_cluster_that_is_away_is_told() -> None:
    """With where it was looked for."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(RuntimeError, match=f"Kafka must answer at 127.0.0.1:{port}"):
        rankstream.read(f"kafka://127.0.0.1:{port}/shop", progress=False)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The canonical log of a small table, of one partition."""
    file = tmp_path_factory.mktemp("shop") / "clicks.parquet"
    pq.write_table(SMALL.clicks, file)
    found: list[bytes] = []

    def keep(output: Output) -> None:
        if output.topic == EVENTS and output.value:
            found.append(output.value)

    settings = local_settings(load_settings(None, {}))
    now_ms = 1_760_000_000_000
    pipeline = LocalPipeline(settings, now=lambda: now_ms, on_output=keep)
    pipeline.start()
    events = read_log(LogFiles(FilesOfAForm([file])), adapted=Adapted())
    for event in sorted(events, key=lambda event: event.at_ms):
        pipeline.send(event.kind, event.value)
    pipeline.end()
    return found


def test_a_dump_is_read_as_it_is(records: list[bytes], tmp_path: Path) -> None:
    """Past ingestion; it counts what the table does."""
    file = tmp_path / "events.dump"
    write_dump(file, Header(EVENTS, 1), ((0, record) for record in records))
    of_dump = rankstream.read(file, progress=False)
    of_table = rankstream.read(SMALL.clicks, progress=False)
    assert of_dump.counted.queries == of_table.counted.queries
    assert of_dump.bias().to_dict() == of_table.bias().to_dict()


@pytest.mark.broker
def test_the_log_of_a_cluster_is_counted(
    records: list[bytes], kafka: KafkaService, namespace: str, tmp_path: Path
) -> None:
    """As a dump of it would be; features cannot come beside it."""
    redis = "redis://127.0.0.1:1"  # nobody asks it
    config = configured(tmp_path, kafka.bootstrap, redis, namespace)
    address = f"kafka://{kafka.bootstrap}/{namespace}"
    assert not rankstream.read(address, progress=False).counted.n_lists
    send_records(load_settings(config, {}), EVENTS, ((b"", each) for each in records))

    log = rankstream.read(address, progress=False)

    of_table = rankstream.read(SMALL.clicks, progress=False)
    assert log.counted.queries == of_table.counted.queries
    assert log.outcomes["impressions applied"] == 40
    with pytest.raises(ValueError, match="features must come with the lists"):
        rankstream.read(address, features=SMALL.products, progress=False)
    with pytest.raises(RuntimeError, match="rankstream topics create"):
        rankstream.read(f"kafka://{kafka.bootstrap}/{namespace}-other", progress=False)
