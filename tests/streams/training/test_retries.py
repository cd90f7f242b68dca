"""A refused training is tried ever less often, and said where its reason changes."""

from rankstream.wire.envelope import Pointer
from streams.training.schedule import FIRST_WAIT_S, LONGEST_WAIT_S, Retries, Standing

HERE = Standing(Pointer(0, 400), 2)


def test_waits_grow_from_ten_seconds_to_ten_minutes():
    """While the reason stays, whatever numbers it has."""
    retries, now_s, waits = Retries(), 0.0, []
    for number in range(9):
        retries.refuse(
            "m", f"must have 0.5 of {number:,}000; got 1e-{number}", HERE, 0.0
        )
        while retries.is_held("m", HERE, now_s):
            now_s += 5.0
        waits.append(now_s)
        now_s = 0.0
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert (FIRST_WAIT_S, LONGEST_WAIT_S) == (10, 600)


def test_a_reason_is_new_where_more_than_its_numbers_differ():
    """Then it waits shortly again."""
    retries = Retries()
    said = ["got 1 of 7.5", "got 22 of 1,000", "got 2 items", "got 1 of 7.5"]
    assert [retries.refuse("m", why, HERE, 0.0) for why in said] == [
        True, False, True, True,
    ]  # fmt: skip
    assert not retries.is_held("m", HERE, 10.0)
    assert retries.refuse("n", "got 1 of 7.5", HERE, 0.0)


def test_what_changed_otherwise_is_tried_at_once():
    """Another version, or a further point; what was published is forgotten."""
    retries = Retries()
    retries.refuse("m", "too few", HERE, 0.0)
    assert retries.is_held("m", HERE, 9.9)
    assert not retries.is_held("m", HERE._replace(newest=Pointer(1, 0)), 1.0)
    assert not retries.is_held("m", HERE._replace(n_passed=3), 1.0)
    retries.forget("m")
    assert not retries.is_held("m", HERE, 1.0)
    assert retries.refuse("m", "too few", HERE, 2.0)


def test_what_is_left_alone_waits_for_another_version():
    """However much is counted, and for how long."""
    retries = Retries()
    retries.leave("m", HERE)
    assert retries.is_held("m", HERE._replace(n_passed=9), 1e9)
    assert not retries.is_held("m", HERE._replace(newest=Pointer(1, 0)), 0.0)
    retries.forget("m")
    assert not retries.is_held("m", HERE, 0.0)
