"""Records by columns are the records that they were made of."""

from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.wire.bounds import carried_bytes
from streams.source_records import FoldsTogether, SourceRecords
from streams.stage import SourceRecord

RECORDS = [
    SourceRecord("clicks", 2, 5, 10, None, b"five", ()),
    SourceRecord("clicks", 2, 6, 9, b"key", None, (("a", b"b"), ("c", b""))),
    SourceRecord("clicks", 2, 9, 11, b"", b"", ()),
]


def of_client(record: SourceRecord, no_headers: Any = None) -> Any:
    """A record as the client gives it."""
    headers = list(record.headers) or no_headers
    return SimpleNamespace(**(record._asdict() | {"headers": headers}))


def test_each_is_the_record_that_it_was() -> None:
    """One by one, by number from either end, and amid a slice."""
    several = SourceRecords.of(RECORDS)
    assert list(several) == RECORDS
    assert [several[0], several[1], several[-1]] == RECORDS
    assert list(several[1:]) == RECORDS[1:]
    assert all(type(each.offset) is int for each in (*several, several[0]))


@pytest.mark.parametrize("no_headers", [None, [], ()])
def test_the_clients_records_are_taken_with_times_of_their_own(no_headers: Any) -> None:
    """Whatever a client says where there are no headers."""
    records = [of_client(record, no_headers) for record in RECORDS]
    times_ms = [record.timestamp_ms for record in RECORDS]
    found = SourceRecords.fetched("clicks", 2, records, times_ms)
    assert list(found) == RECORDS
    plain = SourceRecords.fetched("clicks", 2, records[::2], times_ms[::2])
    assert list(plain) == RECORDS[::2]


@pytest.mark.parametrize("n_first", range(len(RECORDS)))
def test_parts_are_joined_in_their_order(n_first: int) -> None:
    """Whatever each of them is."""
    several = SourceRecords.of(RECORDS)
    parts = [several[:n_first], several[n_first:]]
    assert list(SourceRecords.joined(parts)) == RECORDS
    assert SourceRecords.joined([several]) is several


@pytest.mark.parametrize("offset", range(-1, 11))
def test_those_behind_an_offset_are_beyond_it(offset: int) -> None:
    """Also behind one that is a gap, or the last."""
    found = SourceRecords.of(RECORDS).behind(offset)
    assert list(found) == [record for record in RECORDS if record.offset > offset]


def test_bytes_are_those_of_values_keys_and_headers() -> None:
    """Keys and headers at most."""
    several = SourceRecords.of(RECORDS)
    carried = sum(carried_bytes(record.key, record.headers) for record in RECORDS)
    assert several.n_bytes == 4 + carried
    assert several[:1].n_bytes == 4
    keyed = SourceRecord("clicks", 2, 5, 10, b"key", b"five", ())
    assert SourceRecords.of([keyed]).n_bytes == 4 + 3


def test_a_stage_says_by_its_methods_that_it_takes_many() -> None:
    """Others take one after the other."""
    assert isinstance(SimpleNamespace(fold_together=print), FoldsTogether)
    assert not isinstance(SimpleNamespace(fold=print), FoldsTogether)
