"""Partitions of a process write their state by turns, and each of them in time."""

from types import SimpleNamespace

import pytest

from rankstream.settings import DeliverySettings
from streams.kafka.partitions import checkpoint_due
from streams.kafka.partitions.checkpoint_due import (
    DUE,
    OVERDUE,
    CheckpointDue,
    CheckpointTurns,
)

DELIVERY = DeliverySettings(state_s=5.0, state_records=100)


class Clock:
    """A clock that is set by hand, seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        time = SimpleNamespace(monotonic=lambda: self.now_s)
        monkeypatch.setattr(checkpoint_due, "time", time)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the one of the room."""
    return Clock(monkeypatch)


def test_state_is_due_by_seconds_or_by_records(clock: Clock) -> None:
    """Whatever comes first, since it was written."""
    due = CheckpointDue(DELIVERY)
    clock.now_s += 2.5
    assert due.passed_by(0.0) == 0.5
    due.take(80)
    assert due.passed_by(0.0) == 0.8
    due.written()
    assert due.passed_by(0.0) == 0.0
    due.stagger(0.25)
    assert due.passed_by(0.0) == 0.25


@pytest.mark.parametrize("n_partitions", [1, 4, 16, 64])
@pytest.mark.parametrize("round_s", [0.1, 1.0, 3.0, 12.0])
def test_all_write_in_time_and_none_more_than_its_share(
    clock: Clock, n_partitions: int, round_s: float
) -> None:
    """However many there are, and however long commits take."""
    partitions = {one: CheckpointDue(DELIVERY) for one in range(n_partitions)}
    turns = CheckpointTurns(DELIVERY)
    turns.next(dict.fromkeys(partitions, 0.0))
    most = -(-n_partitions * min(1.0, round_s / DELIVERY.state_s) // 1)
    for _ in range(200):
        clock.now_s += round_s
        passed = {one: due.passed_by(0.0) for one, due in partitions.items()}
        writing = turns.next(passed)
        assert all(passed[one] >= DUE for one in writing)
        overdue = {one for one, at in passed.items() if at >= OVERDUE}
        assert overdue <= writing
        assert len(writing - overdue) <= most
        for one in writing:
            partitions[one].written()
        assert max(passed.values()) < OVERDUE + round_s / DELIVERY.state_s


def test_a_commit_writes_what_the_next_one_would_be_late_for(clock: Clock) -> None:
    """Not by so little as commits are off their pace."""
    due = CheckpointDue(DELIVERY)
    clock.now_s += 3.0
    assert due.passed_by(1.0) == pytest.approx(0.7)
    assert due.passed_by(2.5) == pytest.approx(1.0)
    assert due.passed_by(0.25) == pytest.approx(0.6)


def test_commits_that_are_far_apart_are_all_checkpoints(clock: Clock) -> None:
    """Whoever wrote when at first, and though rounds without news lie in between."""
    partitions = {one: CheckpointDue(DELIVERY) for one in range(16)}
    turns = CheckpointTurns(DELIVERY)
    for one, due in partitions.items():
        due.stagger(one / len(partitions))
    for nth in range(9):
        # What is folded is settled first, and its state is written a moment later.
        apart_s = DELIVERY.state_s - 0.1
        passed = {one: due.passed_by(apart_s) for one, due in partitions.items()}
        writing = turns.next(passed)
        for one in writing:
            partitions[one].written()
        left = set(partitions) - writing
        assert not left or nth == 0
        for _ in range(int(DELIVERY.state_s) - 1):
            clock.now_s += 1.0
            idle = {one: partitions[one].passed_by(0.0) for one in left}
            for one in turns.next(idle, has_news=False):
                partitions[one].written()
                left.remove(one)
        clock.now_s += 1.0


def test_who_has_nothing_to_write_takes_no_turn(clock: Clock) -> None:
    """The one that waited longest is first."""
    turns = CheckpointTurns(DELIVERY)
    turns.next({})
    clock.now_s += 1.0
    assert turns.next({"quiet": 0.0, "early": 0.9, "due": 1.1, "longer": 1.2}) == {
        "longer"
    }
    clock.now_s += 0.1
    assert turns.next({"quiet": 0.0, "due": 1.1, "longer": 0.0}) == {"due"}
