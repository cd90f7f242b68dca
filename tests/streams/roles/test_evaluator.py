"""The evaluator on a broker: whole sums only, and every verdict arrives."""

import asyncio

import msgspec
import pytest
from aiokafka.errors import KafkaTimeoutError
from kafka import KafkaProducer

from producers.brokers.topic_admin import TopicAdmin
from producers.topic_reader import read_records
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.topics import EVALUATIONS, PREFERENCES, full_name
from rankstream.wire.verdicts import decode_verdict
from streams.comparisons.preference_fold import PreferencesFold, Records
from streams.comparisons.verdicts import refused_verdict
from streams.fold.join import OUTCOMES
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.reader_role import FollowedPartition
from streams.kafka.status.experiment_series import experiment_series
from streams.native.closed_impressions import closed_of
from streams.roles import evaluator as module
from streams.roles.evaluator import Evaluator, evaluate
from streams.topology import topics_of
from tests.services import KafkaService
from tests.streams.comparisons import compared_lists
from tests.worker_process import PATIENCE_S

N_PARTITIONS = 3
N_LISTS = 5


@pytest.fixture
def settings(
    kafka: KafkaService, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Of a namespace with topics; turns come quickly."""
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    found = Settings(
        namespace=namespace,
        kafka=KafkaSettings(bootstrap=kafka.bootstrap, partitions=N_PARTITIONS),
    )
    admin = TopicAdmin(found, topics_of(found.kafka))
    admin.create()
    admin.close()
    return found


def sums_of(partition: int) -> list[tuple[bytes, bytes]]:
    """What the fold of a partition writes, after each list."""
    fold = PreferencesFold(compared_lists.EXPERIMENTS, partition)
    written = []
    for each in compared_lists.some_interactions(N_LISTS):
        fold.take(closed_of([each]))
        changes = fold.changes(dict.fromkeys(OUTCOMES, 1))
        written += [(each.key, each.value) for each in changes if each.value]
    return written


def verdicts_of(settings: Settings) -> list[int]:
    """Lists that each verdict on `evaluations` counts."""
    values = [record.value or b"" for record in read_records(settings, EVALUATIONS)]
    return [decode_verdict(value).totals["impressions"] for value in values]


def test_no_verdict_is_on_a_part_of_the_sums(settings: Settings) -> None:
    """However soon a turn comes: all partitions are read to their end before."""
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap)
    topic = full_name(settings.namespace, PREFERENCES)
    for partition in range(N_PARTITIONS):
        for key, value in sums_of(partition):
            producer.send(topic, value, key, partition=partition)
    producer.flush()
    producer.close()

    async def scenario() -> None:
        stop = asyncio.Event()
        role = asyncio.create_task(evaluate(settings, stop))
        while not role.done() and not await asyncio.to_thread(verdicts_of, settings):
            await asyncio.sleep(0.05)
        stop.set()
        await role

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert set(verdicts_of(settings)) == {N_PARTITIONS * N_LISTS}


def test_the_newest_epoch_of_each_experiment_is_told_by_name() -> None:
    """As its verdict has it; nothing before the first."""
    ended = Evaluator(Settings())
    assert ended.verdicts(dict(sums_of(0)))
    assert [*ended.series()] == [], "what nobody has set is told to nobody"
    evaluator = Evaluator(Settings(experiments=dict(compared_lists.EXPERIMENTS)))
    assert [*evaluator.series()] == []
    found = evaluator.verdicts(dict(sums_of(0)))
    verdicts = {key.decode(): decode_verdict(value) for key, value in found}
    told = [*evaluator.series()]
    lists = {
        each.labels["experiment"]: each.value
        for each in told
        if each.name == "experiment_lists"
    }
    assert lists == {
        name: verdict.drawn_by.impressions for name, verdict in verdicts.items()
    }
    assert any(lists.values())
    winners = {
        (each.labels["experiment"], each.labels["ranker"])
        for each in told
        if each.name == "experiment_winner"
    }
    assert winners == {(k, x) for k, v in verdicts.items() for x in v.rankers}


def test_an_older_epoch_takes_no_newer_ones_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though its verdict comes later; a later one of the same epoch does."""
    evaluator = Evaluator(Settings(experiments=dict(compared_lists.EXPERIMENTS)))
    for epoch, shown in ((1, 1), (3, 3), (2, 3), (3, 3), (4, 4)):
        records = Records([], {("boost", epoch): f"{epoch} {shown}"})
        monkeypatch.setattr(module, "read_records", lambda _, x=records: x)
        evaluator.verdicts({})
        told = {x.name: x.value for x in evaluator.series()}
        assert told["experiment_epoch"] == shown


def test_one_ranker_is_the_winner() -> None:
    """That of the verdict; without one nobody is."""
    verdict = refused_verdict("boost", 1, "")
    for winner, told in (("b", {"a": 0, "b": 1}), (None, {"a": 0, "b": 0})):
        method = msgspec.structs.replace(verdict.drawn_by, winner=winner)
        made = msgspec.structs.replace(
            verdict, rankers=["a", "b"], methods={verdict.method: method}
        )
        found = [*experiment_series([made])]
        assert told == {
            x.labels["ranker"]: x.value for x in found if x.name == "experiment_winner"
        }


class Refusing:
    """A producer whose broker does not answer."""

    async def send_and_wait(self, *_: object, **__: object) -> None:
        """Give up."""
        raise KafkaTimeoutError

    async def stop(self) -> None:
        """Nothing to let go."""


def test_a_verdict_that_could_not_be_sent_is_sent_later(settings: Settings) -> None:
    """Though nothing changed since."""
    evaluator = Evaluator(settings)
    evaluator.take(
        FollowedPartition("preferences"), CommittedBatch([*sums_of(0)], at_end=True)
    )
    evaluator._producer = Refusing()

    async def scenario() -> None:
        stop = asyncio.Event()
        with pytest.raises(KafkaTimeoutError):
            await evaluator.turn(stop)
        for _ in range(2):
            await evaluator.turn(stop)
        await evaluator.close()

    asyncio.run(scenario())
    assert len(verdicts_of(settings)) == 1
