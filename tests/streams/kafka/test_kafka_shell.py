import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaProducer

from rankstream.wire.topics import COMPACTED
from streams.kafka.processes.child_end import CONFIGURATION_EXIT, FAILURE_EXIT
from tests.services import KafkaService
from tests.streams.kafka.toy import PARTITIONS, SOURCE, STATE, ToyRun, wait_until
from tests.worker_process import PATIENCE_S

PER_S = 800
"""Under load: whoever is killed has records under way, and of a state not written."""

NOTHING = {"lost": 0, "double": 0, "wrong": 0}


@pytest.fixture(scope="module")
def kafka(breakable_kafka: KafkaService) -> KafkaService:
    """A broker of our own, as it is killed."""
    return breakable_kafka


@pytest.fixture
def run(kafka: KafkaService, namespace: str, tmp_path: Path) -> Iterator[ToyRun]:
    """Topics of the test's own, and its workers."""
    toy = ToyRun(kafka.bootstrap, namespace, tmp_path)
    yield toy
    toy.close()


def stop(run: ToyRun) -> None:
    """Stop what runs, gracefully."""
    for worker in run.workers:
        if worker.poll() is None:
            # Before it listens to signals, it would end by this one.
            run.wait_for(worker, "event=restored")
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_S) == 0, run.said(worker)


def restored(run: ToyRun, worker: subprocess.Popen[bytes]) -> Counter[str]:
    """How often a worker took over which partitions."""
    return Counter(re.findall(r"event=restored partition=(\S+)", run.said(worker)))


def has_folded_again(run: ToyRun) -> bool:
    """Whether any worker folded what lay behind a checkpoint once more."""
    return any("event=caught-up" in run.said(worker) for worker in run.workers)


def test_five_kills_lose_and_repeat_nothing(run: ToyRun) -> None:
    """A worker that is killed under load goes on where its last commit was."""
    chance = np.random.default_rng(5)
    with run.load(per_s=PER_S):
        for number in range(50):
            worker = run.start("one")
            run.wait_for(worker, "event=restored")
            time.sleep(chance.uniform(0.3, 2.0))
            worker.kill()
            worker.wait()
            # A slow one may have been killed before it committed, each time.
            if number >= 4 and has_folded_again(run):
                break
        run.start("one")
    run.wait_for_all()
    stop(run)
    assert run.verdict() == NOTHING
    assert has_folded_again(run)


def test_a_harness_without_the_resume_position_counts_twice(run: ToyRun) -> None:
    """Where the resume position is ignored, the verdict says so."""
    with run.load(per_s=PER_S):
        worker = run.start("one", RANKSTREAM_FAULTS="no-resume-position")
        # What is folded again is what lies before a checkpoint.
        wait_until(lambda: any(run.counts(p) for p in range(PARTITIONS)))
        worker.kill()
        worker.wait()
        # What comes after it has what it folds again before it.
        second = run.start("one", RANKSTREAM_FAULTS="no-resume-position")
        run.wait_for(second, "event=restored")
        already = {place: len(sent) for place, sent in run.sent.items()}
        wait_until(lambda: all(len(run.sent[p]) > n for p, n in already.items()))
    run.wait_for_all()
    stop(run)
    assert run.verdict()["double"] > 0


def test_workers_that_join_pause_and_leave_lose_nothing(run: ToyRun) -> None:
    """Partitions move between workers, also from one that was paused too long.

    It holds what it folded, and others have its partitions: whatever it writes next is
    refused, and that ends it. Paused for less it would go on, and end with 0.
    """
    with run.load(per_s=PER_S):
        first = run.start("one")
        run.wait_for(first, "event=restored")
        second = run.start()
        run.wait_for(second, "event=restored")
        second.kill()
        third = run.start()
        run.wait_for(third, "event=restored")
        time.sleep(1.0)
        third.send_signal(signal.SIGSTOP)
        taken, before = restored(run, third).keys(), restored(run, first)
        # Whoever takes a partition over fences its last owner first.
        wait_until(lambda: all(restored(run, first)[at] > before[at] for at in taken))
        third.send_signal(signal.SIGCONT)
        assert third.wait(PATIENCE_S) == FAILURE_EXIT
        fourth = run.start()
        run.wait_for(fourth, "event=restored")
        fourth.send_signal(signal.SIGTERM)
        assert fourth.wait(PATIENCE_S) == 0
    run.wait_for_all()
    stop(run)
    assert run.verdict() == NOTHING
    assert first.returncode == 0
    assert "error=ProducerFenced" in run.said(third)


def test_a_stop_under_load_leaves_nothing_to_be_done_again(run: ToyRun) -> None:
    """SIGTERM checkpoints: exit status 0 soon, and nothing is folded again."""
    with run.load(per_s=PER_S):
        for _ in range(3):
            worker = run.start()
            run.wait_for(worker, "event=restored")
            time.sleep(1.0)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_S) == 0
        run.start()
    run.wait_for_all()
    stop(run)
    assert run.verdict() == NOTHING
    assert not has_folded_again(run)


def test_a_broker_that_goes_and_comes_is_ridden_out(
    kafka: KafkaService, run: ToyRun
) -> None:
    """A worker waits for its broker, and goes on without being started again."""
    assert kafka.broker is not None
    with run.load(per_s=PER_S):
        worker = run.start()
        run.wait_for(worker, "event=restored")
        time.sleep(1.0)
        kafka.broker.kill()
        time.sleep(3.0)
        kafka.broker.start()
        time.sleep(1.0)
    run.wait_for_all()
    stop(run)
    assert run.verdict() == NOTHING


@pytest.mark.parametrize(
    ("topic", "configs", "reason"),
    [
        (SOURCE, {}, "it was created anew"),
        (STATE, COMPACTED, "must have a resume position"),
    ],
)
def test_a_topic_that_is_not_what_it_was_is_refused(
    run: ToyRun, topic: str, configs: dict[str, str], reason: str
) -> None:
    """A new source, or an emptied state, ends the worker for good and says why."""
    with run.load(per_s=PER_S):
        run.start()
        run.wait_for(run.workers[0], "event=restored")
    run.wait_for_all()
    stop(run)
    run.delete(topic)
    run.create({topic: configs})
    worker = run.start()
    assert worker.wait(PATIENCE_S) == CONFIGURATION_EXIT
    assert reason in run.said(worker)


def test_large_records_go_through(run: ToyRun) -> None:
    """A record may be larger than a fetch asks for."""
    run.delete(SOURCE)
    run.create({SOURCE: {"max.message.bytes": str(8 << 20)}})
    run.start()
    producer = KafkaProducer(
        bootstrap_servers=run.bootstrap, max_request_size=9 << 20, acks="all"
    )
    for number in range(8):
        value = number.to_bytes(8, "big") + bytes(7 << 20)
        sent = producer.send(run.name(SOURCE), key=b"k", value=value, partition=0)
        sent.get(PATIENCE_S)
        run.sent[0].append((b"k", number))
    producer.close()
    run.wait_for_all()
    stop(run)
    assert run.verdict() == NOTHING
