"""The last value of each key, also where a partition is read again."""

from streams.kafka.committed_reader import CommittedBatch, CompactedView


def batch(
    *records: tuple[bytes | None, bytes | None],
    at_end: bool = False,
    is_first: bool = False,
) -> CommittedBatch:
    """Records as they are read."""
    return CommittedBatch(list(records), at_end, is_first)


def test_the_last_value_of_each_key_shows_once_the_end_was_reached() -> None:
    """Before that the view is empty."""
    view = CompactedView()
    assert not view.take(batch((b"a", b"1"), (b"b", b"1"), is_first=True))
    assert view.values == {}
    assert view.take(batch((b"a", b"2"), (None, b"x"), (None, None), at_end=True))
    assert view.values == {b"a": b"2", b"b": b"1"}
    assert view.take(batch((b"b", None), (b"c", b"3")))
    assert view.values == {b"a": b"2", b"c": b"3"}
    assert not view.take(batch(at_end=True))


def test_a_reading_anew_shows_no_old_value_and_no_removed_key() -> None:
    """An evaluator would judge what was before, and keep what compaction dropped."""
    view = CompactedView()
    view.take(batch((b"a", b"1"), (b"b", b"1"), at_end=True, is_first=True))
    view.take(batch((b"a", b"2"), at_end=True))
    assert not view.take(batch((b"a", b"1"), is_first=True))
    assert view.values == {b"a": b"2", b"b": b"1"}
    assert not view.take(batch((b"a", b"2")))
    assert view.take(batch((b"a", b"3"), at_end=True))
    assert view.values == {b"a": b"3"}
