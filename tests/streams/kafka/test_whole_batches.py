"""Records that come in whole batches are those that come one by one."""

from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.record.util import calc_crc32c

from streams.kafka.header_names import Records
from streams.kafka.whole_batches import WHOLE, Whole, each_of

PLACE = TopicPartition("state", 0)
COMMITTED = 1
ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


def batch(
    first: int,
    n_records: int,
    *,
    producer: int = 7,
    compression: int = 0,
    marker: bytes = b"",
) -> bytes:
    """Records of one transaction, with their first offset; or what ends it."""
    builder = _DefaultRecordBatchBuilderPy(
        2, compression, is_transactional=1, producer_id=producer, producer_epoch=0,
        base_sequence=0, batch_size=1 << 20,
    )  # fmt: skip
    for row in range(n_records):
        value = None if row % 3 == 2 else b"v%d" % (first + row)
        key = marker or b"k%d" % (first + row)
        assert builder.append(row, 1_000, key, value, [("name", b"h")])
    data = bytearray(builder.build())
    data[:8] = first.to_bytes(8, "big")
    if marker:
        data[22] |= 0x20  # a control batch
        data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


LOG = b"".join(
    [
        batch(0, 4),
        batch(4, 1, marker=COMMIT),
        batch(5, 3, producer=8),
        batch(8, 5, compression=1),
        batch(13, 1, producer=8, marker=ABORT),
        batch(14, 1, marker=COMMIT),
        batch(20, 2),
        batch(22, 1, marker=COMMIT),
    ]
)
ABORTED = [(8, 5)]


def read(data: bytes, start: int, deserializer: Any) -> tuple[list[Any], int]:
    """What a consumer is given of an answer, and where it goes on."""
    records = fetcher.PartitionRecords(
        PLACE, Records(data), ABORTED, start, deserializer, None, True, COMMITTED
    )
    return list(records), records.next_fetch_offset


@pytest.mark.parametrize("start", range(24))
def test_whole_batches_have_the_records_that_come_one_by_one(start: int) -> None:
    """Wherever reading starts: also amid a batch, or where compaction left a gap."""
    ones, end = read(LOG, start, None)
    wholes, whole_end = read(LOG, start, WHOLE)
    assert all(type(each) is Whole and each.records for each in wholes)
    found = each_of(wholes)
    assert [(r.offset, r.key, r.value) for r in found] == [
        (r.offset, r.key, r.value) for r in ones
    ]
    assert [each.offset for each in wholes] == [e.records[-1].offset for e in wholes]
    assert whole_end == end == 23
    if not start:
        assert [r.offset for r in found] == [0, 1, 2, 3, 8, 9, 10, 11, 12, 20, 21]


def test_records_that_came_one_by_one_are_left_as_they_are() -> None:
    """As those of a consumer that knows no batches."""
    ones, _ = read(LOG, 0, None)
    assert each_of(ones) == ones


@pytest.mark.parametrize("deserializer", [None, WHOLE])
def test_a_damaged_batch_is_refused(deserializer: Any) -> None:
    """Its sum is compared either way."""
    damaged = bytearray(LOG)
    damaged[70] ^= 1
    with pytest.raises(CorruptRecordException):
        read(bytes(damaged), 0, deserializer)
