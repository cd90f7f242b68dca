"""A source that changes, or loses records, under a worker on a real broker."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.kafka.processes.child_end import CONFIGURATION_EXIT
from streams.kafka.state.resume_position import POSITION_KEY, Loss, decode_position
from tests.services import KafkaService
from tests.streams.kafka.toy import SOURCE, STATE, ToyRun, wait_until
from tests.worker_process import PATIENCE_S


@pytest.fixture
def run(kafka: KafkaService, namespace: str, tmp_path: Path) -> Iterator[ToyRun]:
    """Topics of the test's own, and its workers."""
    toy = ToyRun(kafka.bootstrap, namespace, tmp_path)
    yield toy
    toy.close()


def folded(run: ToyRun, n_records: int) -> None:
    """Send records to a worker, and wait until they came out."""
    run.send(n_records)
    wait_until(lambda: len(run.passed_on(0)) >= n_records)


def test_a_source_that_is_created_anew_ends_a_running_worker(run: ToyRun) -> None:
    """Its records have offsets that were folded before: none may pass as seen."""
    worker = run.start()
    folded(run, 50)
    run.delete(SOURCE)
    run.create({SOURCE: {}})
    run.send(30)
    assert worker.wait(PATIENCE_S) == CONFIGURATION_EXIT
    assert "it was created anew; use a new --namespace" in run.said(worker)
    again = run.start()
    assert again.wait(PATIENCE_S) == CONFIGURATION_EXIT
    assert "it was created anew; use a new --namespace" in run.said(again)


def test_partitions_that_are_added_end_a_running_worker(run: ToyRun) -> None:
    """Clients route to them, and nobody has a state for them."""
    worker = run.start()
    folded(run, 1)
    run.add_partitions(8)
    assert worker.wait(PATIENCE_S) == CONFIGURATION_EXIT
    told = "must keep its 4 partitions; it has 8"
    assert told in run.said(worker)


def test_records_that_retention_removes_unread_are_lost_in_words_only(
    run: ToyRun,
) -> None:
    """The worker stands still while they go; then it ends, and nothing is jumped."""
    worker = run.start()
    folded(run, 10)
    worker.send_signal(signal.SIGSTOP)
    run.send(40, size=900_000)  # more than one fetch, so that the last are unread
    run.delete_records(48)
    worker.send_signal(signal.SIGCONT)
    assert worker.wait(PATIENCE_S) == CONFIGURATION_EXIT
    said = run.said(worker)
    missing = re.search(r"offsets (\d+)-47 \(\d+\) left it", said)
    assert missing is not None, said
    first = int(missing[1])
    assert f"--accept-loss toy:0:{first}-47`" in said
    assert run.passed_on(0) == list(range(first))

    refused = run.start()
    assert refused.wait(PATIENCE_S) == CONFIGURATION_EXIT
    assert f"--accept-loss toy:0:{first}-47`" in run.said(refused)

    accepted = run.start("", f"{first}-47")
    numbers = [*range(first), 48, 49]
    wait_until(lambda: run.passed_on(0) == numbers)
    assert f"event=loss-accepted partition={run.name(SOURCE)}[0]" in run.said(accepted)
    accepted.send_signal(signal.SIGTERM)
    assert accepted.wait(PATIENCE_S) == 0
    packed = dict(run.read(STATE, 0))[POSITION_KEY]
    assert decode_position(packed).losses == (Loss(first, 47),)

    run.start()
    run.send(1)
    wait_until(lambda: run.passed_on(0) == [*numbers, 50])
