"""A worker of before was stopped; one of this version goes on from what it left.

Its statistics are converted in between, and by then `events` holds only part of what
they counted. What a worker left that was killed is refused.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import CoordinatorLoadInProgressError

from deploy.process import ServerFailed
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.operations.conversion.schema1 import read_statistics
from rankstream.operations.conversion.scopes import Situation, converted
from rankstream.settings import Settings, load_settings
from rankstream.wire.topics import (
    CLICKS,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    dead_letters,
    state_topic,
)
from streams.kafka.processes.child_end import CONFIGURATION_EXIT
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    ResumePosition,
    decode_position,
)
from tests.learned_log import learned_anew
from tests.services import KafkaService, RedisService, ServiceMissing, without
from tests.streams.kafka.takeover.event_log import (
    N_HALF,
    N_IMPRESSIONS,
    NAMESPACE,
    SETTINGS,
    events,
)
from tests.streams.kafka.takeover.logs import (
    Log,
    Values,
    delete_most,
    folded,
    log_of,
    n_closed,
    n_learned,
    of_partition,
    passed_on,
    sums_of,
    taken_in,
    taken_in_anew,
)
from tests.streams.kafka.takeover.stored import KILLED, STOPPED, stored_broker
from tests.streams.kafka.toy import wait_until
from tests.streams.test_exactness import last_values
from tests.worker_process import WorkerProcess, running, waited_until

CONFIG = """
namespace = "{namespace}"
[kafka]
bootstrap = "{bootstrap}"
input_partitions = 2
partitions = 2
learner_partitions = 2
[redis]
url = "{redis}"
[delivery]
session_timeout_s = 6.0
"""


@dataclass(frozen=True)
class Taken:
    """What was found before, and what was said; its settings lead to what is there.

    Parameters
    ----------
    log
        Of all events, also of those that were deleted later.
    share_left
        Of the records of `events` when the statistics were converted.
    refused, tried, converted, said, beside
        By a worker that found the old statistics, by the dry run, by the conversion,
        by the worker that went on, and by a conversion beside it.
    """

    settings: Settings
    positions: dict[int, ResumePosition]
    transactional_ids: set[str]
    n_interactions: int
    n_snapshots: int
    statistics: Values
    log: Log
    share_left: float
    refused: str
    tried: str
    converted: str
    said: str
    beside: str


@contextmanager
def started(archive: Path, folder: Path) -> Iterator[KafkaService]:
    """A broker of our own, with what a worker of before left."""
    broker = stored_broker(folder, archive)
    try:
        broker.start()
    except ServerFailed as error:
        without(ServiceMissing(str(error)), os.environ)
    try:
        yield KafkaService(broker.bootstrap, broker)
    finally:
        broker.kill()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaService]:
    """What a worker left that was stopped."""
    with started(STOPPED, tmp_path_factory.mktemp("kafka")) as service:
        yield service


@pytest.fixture(scope="module")
def taken(
    stored: KafkaService,
    redis_server: RedisService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Taken:
    """The other half of the events, taken in by a worker of this version."""
    folder = tmp_path_factory.mktemp("worker")
    config, log = configured(folder, stored, redis_server.url), folder / "worker.log"
    settings = load_settings(config, {})
    # As docs/upgrading.md says: the topics that are new, then what those that are there
    # shall have, as no worker of before is left.
    assert main(["topics", "create", "--config", str(config)]) == 0
    assert main(["topics", "check", "--config", str(config)]) == 1
    assert main(["topics", "create", "--alter", "--config", str(config)]) == 0
    assert main(["topics", "check", "--config", str(config)]) == 0
    found = Taken(
        settings,
        positions(settings),
        transactional_ids(stored.bootstrap),
        n_closed(settings),
        len(last_values(settings, SNAPSHOTS)),
        last_values(settings, STATISTICS),
        log_of(settings),
        share_left=delete_most(settings, positions(settings)),
        refused=words_of_a_refused_worker(config, folder / "refused.log"),
        tried=said_by_conversion(config, "--dry-run"),
        converted=said_by_conversion(config),
        said="",
        beside="",
    )
    with running(config, log) as worker:
        waited_until(lambda: is_restored(worker), log)
        beside = said_by_conversion(config, status=2)
        with EventProducer(settings) as producer:
            for sent in events(N_HALF, N_IMPRESSIONS):
                producer.send(sent.topic, sent.value)
            producer.end()
        waited_until(lambda: n_closed(settings) == N_IMPRESSIONS, log)
        newest = (0, f"m/0.{n_learned(settings)}".encode())
        waited_until(lambda: newest in last_values(settings, SNAPSHOTS), log)
        status, _ = worker.stop()
        assert status == 0
        return replace(
            found,
            said=worker.said(),
            beside=beside,
            log=found.log | log_of(settings),
        )


def configured(folder: Path, stored: KafkaService, redis: str) -> Path:
    """A settings file for a worker of this version."""
    config = folder / "rankstream.toml"
    reached = {"bootstrap": stored.bootstrap, "redis": redis}
    config.write_text(CONFIG.format(namespace=NAMESPACE, **reached) + SETTINGS)
    return config


def words_of_a_refused_worker(config: Path, log: Path) -> str:
    """What a worker says whose fold does not start; it ends with status 78."""
    with running(config, log) as worker:
        waited_until(lambda: "event=refused" in worker.said(), log)
        status, _ = worker.stop()
        assert status == CONFIGURATION_EXIT, worker.said()
        return worker.said()


def said_by_conversion(config: Path, *words: str, status: int = 0) -> str:
    """What `rankstream statistics convert` says, run as users run it."""
    command = [
        sys.executable,
        "-m",
        "rankstream",
        "statistics",
        "convert",
    ]
    done = subprocess.run(
        [*command, "--config", str(config), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout or done.stderr


def positions(settings: Settings, stage: str = "fold") -> dict[int, ResumePosition]:
    """The resume position of each partition of a stage."""
    last = last_values(settings, state_topic(stage))
    return {
        partition: decode_position(value)
        for (partition, key), value in last.items()
        if key == POSITION_KEY
    }


def transactional_ids(bootstrap: str) -> set[str]:
    """Of all producers that the broker has met; it may be reading them yet."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    found: set[str] = set()

    def are_read() -> bool:
        try:
            (listed,) = admin.list_transactions().values()
        except CoordinatorLoadInProgressError:
            return False
        found.update(each.transactional_id for each in listed)
        return True

    try:
        wait_until(are_read)
    finally:
        admin.close()
    return found


def is_restored(worker: WorkerProcess) -> bool:
    """Whether both partitions of the fold are where they were; fails on a refusal."""
    said = worker.said()
    assert not re.search("event=(refused|failed)", said), said
    return all(f"event=restored partition=events[{n}]" in said for n in range(2))


def test_old_statistics_are_refused_with_the_command(taken: Taken) -> None:
    """The worker ends, and says what to run."""
    assert re.search(
        r"event=refused reason=the state of .*events\[[01]\] must be of version 2 "
        r"to 6; it is of 1: stop all workers and run `rankstream statistics convert`",
        taken.refused,
    )


def test_a_conversion_keeps_every_sum(taken: Taken) -> None:
    """Though most of the events that were counted are gone."""
    n_before = 0
    for partition in taken.positions:
        old = read_statistics(dict(of_partition(taken.statistics, partition)))
        _, report = converted(old, Situation(partition, 0, taken.settings))
        told = f"{report.n_impressions} impressions, {report.n_clicks} clicks"
        assert f"statistics[{partition}]: {report.n_cells} cells in " in taken.converted
        assert told in taken.converted
        n_before += report.n_impressions

    assert 0 < taken.share_left < 0.2
    assert n_before == taken.n_interactions
    assert taken.tried == taken.converted + "dry run: nothing was changed\n"


def test_a_worker_goes_on_from_the_state_of_an_older_release(
    taken: Taken, stored: KafkaService
) -> None:
    """From its resume positions, as the same producers."""
    assert 0 < taken.n_interactions < N_HALF
    assert sorted(taken.positions) == [0, 1]
    for partition, at in taken.positions.items():
        name = rf"partition=events\[{partition}\]"
        (line,) = re.findall(rf"event=restored {name} .*", taken.said)
        assert 0 < at.checkpoint_offset == at.offset
        assert f"checkpoint={at.offset} position={at.offset}" in line
    assert "refused" not in taken.said
    assert len(taken.transactional_ids) == 8
    assert transactional_ids(stored.bootstrap) == taken.transactional_ids


def test_nothing_is_lost_and_nothing_double_over_a_takeover(taken: Taken) -> None:
    """By what was sent to both workers."""
    everything = events(0, N_IMPRESSIONS)
    sent = Counter((each.topic, each.outcome) for each in everything)
    found = passed_on(taken.settings)
    rows = [row for each in found.interactions.values() for row in each]
    names = {row.impression.impression_id for row in rows}
    pipeline, _ = folded(taken.settings, taken.log)
    counts = pipeline.counters()

    assert len(names) == len(rows) == sent[QUERIES, "applied"] == N_IMPRESSIONS
    assert sum(len(row.clicks) for row in rows) == sent[CLICKS, "applied"]
    for numbers in found.numbers.values():
        assert numbers == list(range(1, len(numbers) + 1))
    assert counts["duplicate"] == sent[QUERIES, "duplicate"]
    assert counts["late"] == sent[CLICKS, "late"]
    assert counts["orphan"] == sent[CLICKS, "orphan"]
    assert counts["pending"] == 0
    letters = list(read_records(taken.settings, dead_letters(CLICKS)))
    assert len(letters) == sent[CLICKS, "letter"]


def test_a_takeover_gives_what_one_worker_gives_for_the_whole_log(
    taken: Taken,
) -> None:
    """Canonical log, interactions, what is put aside and models to the byte; all sums.

    Keys of statistics differ: what was converted is one scope, whatever form its
    lists would have had.
    """
    settings = taken.settings
    pipeline, anew = folded(settings, taken.log)
    found = passed_on(settings)
    changes = [
        (fold.partition, change) for fold in pipeline.folds for change in fold.changes()
    ]

    assert taken_in(taken.log) == taken_in_anew(settings)
    assert found.interactions == anew.interactions
    assert found.aside == anew.aside
    for topic in (PREFERENCES, STATISTICS):
        held = last_values(settings, topic)
        expected = {
            (partition, change.key): change.value
            for partition, change in changes
            if change.topic == topic and change.value is not None
        }
        if topic == PREFERENCES:
            assert held == expected
            continue
        for partition in taken.positions:
            assert sums_of(of_partition(held, partition)) == sums_of(
                of_partition(expected, partition)
            )

    given, pipeline = learned_anew(settings)
    written = last_values(settings, SNAPSHOTS)
    assert len(written) > taken.n_snapshots > 1
    assert written == {(_, key): given[key] for _, key in written}
    assert written[0, f"m/0.{n_learned(settings)}".encode()] == pipeline.snapshots[b"m"]


def test_nothing_is_converted_beside_a_worker(taken: Taken) -> None:
    """The command waits a session for members that may have ended, then refuses."""
    assert "all workers must be stopped; the group takeover.rankstream-fold has 1" in (
        taken.beside
    )


def test_a_second_conversion_finds_nothing(taken: Taken) -> None:
    """Whoever runs it again after a crash converts what is left."""
    said = said_by_conversion(Path(taken.settings.file))
    assert (
        said == "statistics[0]: nothing of before\nstatistics[1]: nothing of before\n"
    )


def test_what_a_killed_worker_left_is_refused(
    redis_server: RedisService, tmp_path: Path
) -> None:
    """Nobody could fold again what came after its checkpoint; nothing is changed."""
    with started(KILLED, tmp_path / "kafka") as service:
        config = configured(tmp_path, service, redis_server.url)
        settings = load_settings(config, {})
        before = last_values(settings, STATISTICS)
        assert main(["topics", "create", "--config", str(config)]) == 0
        said = said_by_conversion(config, status=2)

        assert re.search(
            r"events\[0\] must have been stopped gracefully; its state is as of offset "
            r"\d+, and it went on to \d+: run the release that wrote it, stop that",
            said,
        )
        assert last_values(settings, STATISTICS) == before
