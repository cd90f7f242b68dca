"""A record with a header name that is not UTF-8 is read, and so are its neighbours."""

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from streams.kafka.header_names import Records


class Odd(str):
    """A name whose bytes are no UTF-8."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        """Two bytes that no text begins with."""
        return b"\xff\xfe"


def batch(first: int, *, odd: bool, compression: int = 0) -> bytes:
    """Three records, the middle one perhaps odd."""
    builder = _DefaultRecordBatchBuilderPy(
        2, compression, is_transactional=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    for row in range(3):
        name = Odd("x") if odd and row == 1 else "name"
        value = b"v%d" % (first + row)
        assert builder.append(row, 1_000, b"k", value, [(name, b"h"), ("last", None)])
    data = bytearray(builder.build())
    data[:8] = first.to_bytes(8, "big")
    return bytes(data)


@pytest.mark.parametrize("compression", [0, 1])
def test_every_record_is_read_whatever_its_headers_are_called(compression: int) -> None:
    """Batches before and after it too, and all else of it as it was sent."""
    data = b"".join(
        batch(first, odd=first == 3, compression=compression) for first in (0, 3, 6)
    )
    records, found = Records(data), []
    while records.has_next():
        one = records.next_batch()
        assert one is not None
        assert one.validate_crc()
        assert one.next_offset == one.base_offset + 3
        found += list(one)

    assert records.size_in_bytes() == len(data)
    assert [record.offset for record in found] == list(range(9))
    assert [record.value for record in found] == [b"v%d" % n for n in range(9)]
    assert [record.headers for record in found if record.offset != 4] == [
        [("name", b"h"), ("last", None)]
    ] * 8
    assert found[4].headers == [("\\xff\\xfe", b"h"), ("last", None)]
    assert found[4].key == b"k"


def test_an_end_that_was_cut_is_left_for_the_next_fetch() -> None:
    """As a broker may give it."""
    records = Records(batch(0, odd=True) + batch(3, odd=False)[:40])
    first = records.next_batch()
    assert first is not None
    assert len(list(first)) == 3
    assert not records.has_next()
    assert records.next_batch() is None


def test_consumers_of_a_worker_read_so() -> None:
    """The place in aiokafka that it takes is there."""
    import streams.kafka.transport  # noqa: F401, PLC0415

    assert fetcher.MemoryRecords is Records
