"""A model that trains itself on a real broker, its trainer killed at each publish."""

import json
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition

from deploy.broker import Broker
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.operations.recount.log import recount_topics
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import (
    Snapshot,
    SnapshotStore,
    decode_at,
    encode_snapshot,
    pointer_from,
)
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.models.training import (
    RunRecord,
    decode_record,
    decode_training_key,
)
from rankstream.wire.topics import SNAPSHOTS, STATISTICS, TRAINING, full_name
from streams.statistics.reader import Statistics
from tests.clicked_lists import N_FEATURES, Shown, features_of, show
from tests.gated_broker import Publication, gated_broker
from tests.services import RedisService
from tests.session.cases import n_cases
from tests.tcp_gate import Gate
from tests.worker_process import (
    PATIENCE_S,
    WorkerProcess,
    configured,
    running,
    settings_of,
    waited_until,
)

EACH, LAG = 600, 400
"""Lists between two interventions, and how many may still be in their windows."""

N_TIMES = n_cases(2, 3)
"""A model trains itself by counts, before it is asked to."""

SETTINGS = f"""
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
session_timeout_s = 6.0
state_s = 1.0
instance_id = "one"
[models.m]
features = {N_FEATURES}
versions = "trained"
%s
[models.m.training]
after = {[EACH + each * (EACH + LAG) for each in range(N_TIMES)]}
least_support = 1.0
most_unsupported = 1.0
examination = [1.0, 0.7, 0.5, 0.35, 0.25]
%s
"""

FORMS = {
    "linear": ("", "epochs = 10\nbatch = 8"),
    "trees": (
        'kind = "trees"\nnormalisation = "none"',
        "[models.m.training.trees]\nrounds = 150\npatience = 150\nleaves = 4\n"
        "least_items = 4\n",
    ),
}
"""What the settings of a model of each kind are beside."""

BEGUN = {
    "linear": b"event=training model=m",
    "trees": b"event=epoch model=m number=2 ",
}
"""What a trainer has said that is killed first: rounds are many, and take a while."""

LOOK_S = 0.005
"""How often it is looked whether it is time: nobody else needs the processor less."""

OTHER_ROLES = ("ingest", "fold", "learn", "publish")


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Between the trainer and its broker."""
    with Gate(None) as made:
        yield made


@pytest.fixture
def broker(gate: Gate, tmp_path: Path) -> Iterator[Broker]:
    """All others reach it directly."""
    (tmp_path / "kafka").mkdir()
    made = gated_broker(tmp_path / "kafka", gate)
    try:
        made.start()
        yield made
    finally:
        made.kill()


def gated(config: Path, gate: Gate) -> Path:
    """The same settings for who reaches the broker through the gate."""
    own = f'bootstrap = "127.0.0.1:{gate.port}"'
    through = config.with_name("gated.toml")
    through.write_text(re.sub(r'bootstrap = "\S+"', own, config.read_text()))
    return through


class TrainWorker:
    """A worker of the role `train` alone, started again after each kill -9."""

    def __init__(self, config: Path, log: Path) -> None:
        self._config, self._log = config, log
        self.n_killed = 0
        self._start()

    def _start(self) -> None:
        self._log.touch()
        self._read_from = self._log.stat().st_size
        self._worker = WorkerProcess(self._config, self._log, "--role", "train")

    def said(self) -> bytes:
        """Since it was started last."""
        with self._log.open("rb") as file:
            file.seek(self._read_from)
            return file.read()

    def _child(self) -> psutil.Process:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            child = self._worker.child("train")
            if child is not None:
                return child
            time.sleep(0.05)
        raise AssertionError(self.said().decode()[-3_000:])

    def killed_once(self, is_time: Callable[[], bool]) -> None:
        """Kill -9 as soon as something is so, and start it again."""
        child, deadline = self._child(), time.monotonic() + PATIENCE_S
        while not is_time():
            assert time.monotonic() < deadline, self.said().decode()[-3_000:]
            time.sleep(LOOK_S)
        child.kill()
        self._end()
        self.n_killed += 1
        self._start()

    def says(self, words: bytes) -> bool:
        """Whether it has said something since it was started last."""
        time.sleep(0.001)
        return words in self.said()

    def _end(self) -> None:
        self._worker.kill_all()
        self._worker.close()

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        status, _ = self._worker.stop()
        self._worker.close()
        return status

    def close(self) -> None:
        """Whatever happened, it is gone."""
        if self._worker.process.poll() is None:
            self._end()


class Ends:
    """The end of `snapshots`, of all that was written and of what was committed."""

    def __init__(self, settings: Settings) -> None:
        self._place = TopicPartition(full_name(settings.namespace, SNAPSHOTS), 0)
        self._all, self._committed = (
            KafkaConsumer(
                bootstrap_servers=settings.kafka.bootstrap, isolation_level=isolation
            )
            for isolation in ("read_uncommitted", "read_committed")
        )

    def is_open(self) -> bool:
        """Whether the last of it is not committed."""
        ends = [
            each.end_offsets([self._place]) for each in (self._all, self._committed)
        ]
        return bool(ends[0] != ends[1])

    def close(self) -> None:
        """Disconnect."""
        self._all.close()
        self._committed.close()


def runs_of(settings: Settings) -> list[RunRecord]:
    """Runs that were committed, oldest first."""
    found = []
    for record in read_records(settings, TRAINING):
        named = decode_training_key(record.key or b"")
        if record.value and named and named.kind == "run":
            found.append(decode_record("run", record.value))
    return found


def noted(settings: Settings) -> list[str]:
    """Names that were deployed, oldest first."""
    return [
        (record.key or b"").decode().removesuffix("/deployed")
        for record in read_records(settings, SNAPSHOTS)
        if record.value and is_deployment(record.key or b"", record.value)
    ]


def kept(store: SnapshotStore, run: RunRecord) -> Snapshot:
    """What was published of a run, as Redis has it."""
    pointer = pointer_from(run.intervention.rpartition("@")[2].encode())
    return decode_at(store.load("m", pointer) or b"", "m", pointer)


def n_by_intervention(settings: Settings) -> dict[str, int]:
    """Lists of each intervention, as the statistics have them."""
    records = read_records(settings, STATISTICS)
    statistics = Statistics((one.key, one.value) for one in records if one.key)
    counts: dict[str, int] = {}
    for chunk in statistics.columns():
        for number, *_, n in chunk.cells[:, :3].tolist():
            name = chunk.names[number].intervention
            counts[name] = counts.get(name, 0) + n
    return counts


def trained_under_fire(
    train: TrainWorker,
    settings: Settings,
    gate: Gate,
    log: Path,
    n_runs: int,
    begun: bytes,
) -> None:
    """One intervention by itself, its trainer killed before, during and after it."""
    ends = Ends(settings)
    train.killed_once(lambda: train.says(begun))
    gate.cut()
    gate.hold(Publication())
    assert len(runs_of(settings)) == n_runs - 1
    train.killed_once(lambda: train.says(b"event=epoch") and ends.is_open())
    gate.cut()
    gate.hold(None)
    assert len(runs_of(settings)) == n_runs - 1
    waited_until(lambda: len(runs_of(settings)) == n_runs, log)
    train.killed_once(lambda: True)
    ends.close()


def is_served(ranker: Ranker, run: RunRecord) -> bool:
    """Whether rankers have what came of a run."""
    ranker.refresh()
    return f"m@{ranker.pointer}" == run.intervention


def by_hand(config: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Ask for an intervention, and wait; its name."""
    capsys.readouterr()
    words = ["intervene", "--config", str(config), "m", "--wait", "--json"]
    assert main(words) == 0
    (run,) = json.loads(capsys.readouterr().out)
    return str(run["intervention"])


def rolled_back(
    config: Path, store: SnapshotStore, ranker: Ranker, run: RunRecord
) -> str:
    """Serve the version of a run again; the name that its lists have then."""
    given, version = features_of(1), run.intervention.rpartition("@")[2]
    words = ["rollback", "m", version, "--why", "it was better"]
    assert main(["snapshots", *words, "--config", str(config)]) == 0
    ranker.refresh()
    again = ranker.rank(given, policy="deterministic")
    assert ranker.snapshot.weights == kept(store, run).weights
    assert main(["snapshots", "verify", "m", "--config", str(config)]) == 0
    return again.intervention


def without_kafka(dump: Path, config: Path, parent: Snapshot) -> bytes:
    """What `rankstream train` makes of the whole log, from the same parent."""
    file, out = dump.with_name("m.snapshot"), dump.with_name("out")
    file.write_bytes(encode_snapshot(parent))
    words = ["--log", str(dump), "--parent", str(file), "--out", str(out)]
    assert main(["train", "--model", "m", *words, "--config", str(config)]) == 0
    (made,) = out.glob("*.snapshot")
    return made.read_bytes()


@pytest.mark.broker
@pytest.mark.parametrize("kind", FORMS)
def test_a_model_trains_itself_whatever_becomes_of_its_trainer(
    kind: str,
    gate: Gate,
    broker: Broker,
    redis_server: RedisService,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Some times by counts, then by hand; each is what the log gives, to the byte.

    At last the first one is served again.
    """
    own = SETTINGS % FORMS[kind]
    config = configured(tmp_path, broker.bootstrap, redis_server.url, kind, own)
    settings, log = settings_of(config), tmp_path / "worker.log"
    store = SnapshotStore(redis_server.url, namespace=kind)
    ranker = Ranker("m", store=store)
    n_lists = N_TIMES * (EACH + LAG) + EACH
    shown = Shown(0, int(time.time() * 1_000) - 60_000 - n_lists * 20)
    roles = [word for role in OTHER_ROLES for word in ("--role", role)]
    with running(config, log, *roles), EventProducer(settings) as producer:
        train = TrainWorker(gated(config, gate), tmp_path / "train.log")
        try:
            assert ranker.wait(PATIENCE_S)
            for number in range(1, N_TIMES + 1):
                # However late it is killed, it has not committed.
                gate.hold(Publication())
                shown = show(producer, ranker, shown, EACH + LAG)
                producer.flush()
                trained_under_fire(train, settings, gate, log, number, BEGUN[kind])
                served = partial(is_served, ranker, runs_of(settings)[-1])
                waited_until(served, log)
            shown = show(producer, ranker, shown, EACH)
            producer.end()
            waited_until(
                lambda: sum(n_by_intervention(settings).values()) == n_lists, log
            )
            asked = by_hand(config, capsys)
            back = rolled_back(config, store, ranker, runs_of(settings)[0])
            assert train.stop() == 0
        finally:
            train.close()
    runs = runs_of(settings)
    names = [run.intervention for run in runs]

    assert train.n_killed == 3 * N_TIMES
    assert [run.reason for run in runs] == ["count"] * N_TIMES + ["asked"]
    assert asked == names[-1]
    assert noted(settings) == [*names, back]
    snapshots = [kept(store, run) for run in runs]
    assert [each.intervention for each in snapshots] == names
    # Names alone could change, and nothing be learned.
    assert len({each.weights for each in snapshots}) == len(snapshots)

    counts = n_by_intervention(settings)
    assert counts == dict(
        zip(["m", *names], [EACH + LAG] * N_TIMES + [EACH], strict=False)
    )
    verdict = recount_topics(settings)
    assert verdict.is_clean, verdict.as_dict()

    dump = tmp_path / "events.dump.zst"
    assert main(["dump", str(dump), "--config", str(config)]) == 0
    for run in runs:
        version = run.intervention.rpartition("@")[2]
        words = ["--verify", version, "--events", str(dump), "--config", str(config)]
        assert main(["intervene", *words]) == 0, capsys.readouterr()
    assert capsys.readouterr().out.count("equal bytes") == len(runs)
    assert without_kafka(dump, config, snapshots[-2]) == encode_snapshot(snapshots[-1])
    store.close()
