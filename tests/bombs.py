"""Batches of a few megabytes that unpack to a lot more, as a client may send them."""

import struct
import zlib
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c, encode_varint

GZIP = 1
MIB = 1 << 20


class Bomb:
    """A batch whose records are white space: the producer's idea of a batch builder.

    It is compressed as it is made, so that nobody but its reader has to hold it.

    Parameters
    ----------
    n_records, value_bytes
        How many records, and how large the value of each is once unpacked.
    """

    def __init__(self, n_records: int, value_bytes: int) -> None:
        self._n_records = n_records
        packed = _packed(n_records, value_bytes)
        behind_crc = (
            struct.pack(">hiqqqhii", GZIP, n_records - 1, 0, 0, -1, -1, -1, n_records)
            + packed
        )
        head = struct.pack(">qiib", 0, len(behind_crc) + 9, -1, 2)
        self._bytes = head + struct.pack(">I", calc_crc32c(behind_crc)) + behind_crc

    def _build(self) -> bytes:
        return self._bytes

    def size(self) -> int:
        """Bytes that go over the wire."""
        return len(self._bytes)

    def record_count(self) -> int:
        """How many records the broker is to give offsets to."""
        return self._n_records

    def close(self) -> None:
        """Nothing can be added."""

    def closed(self) -> bool:
        """Nothing can be added."""
        return True


def _packed(n_records: int, value_bytes: int) -> bytes:
    """The records as gzip; the same blanks are compressed once."""
    n_whole, n_rest = divmod(value_bytes, MIB)
    blanks, pieces = b" " * MIB, [bytes.fromhex("1f8b08000000000000ff")]
    crc = n_bytes = 0
    whole, rest = _deflated(blanks), _deflated(blanks[:n_rest])
    for number in range(n_records):
        body = b"\0\0" + _varint(number) + _varint(-1) + _varint(value_bytes)
        head = _varint(len(body) + value_bytes + 1) + body
        for plain, packed, n in (
            (head, _deflated(head), 1),
            (blanks, whole, n_whole),
            (blanks[:n_rest], rest, 1),
            (b"\0", _deflated(b"\0"), 1),
        ):
            pieces.append(packed * n)
            n_bytes += n * len(plain)
            for _ in range(n):
                crc = zlib.crc32(plain, crc)
    return b"".join([*pieces, b"\x03\0", struct.pack("<2I", crc, n_bytes % 2**32)])


def _deflated(plain: bytes) -> bytes:
    """A piece that ends on a byte and refers to nothing before it."""
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH)


def _varint(value: int) -> bytes:
    out = bytearray()
    encode_varint(value, out.append)
    return bytes(out)


async def throw(bootstrap: str, topic: str, bomb: Bomb) -> None:
    """Send a bomb to the first partition; raises what the broker says to it."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=False, max_request_size=64 * MIB
    )
    await producer.start()
    try:
        batch: Any = bomb
        await (await producer.send_batch(batch, topic, partition=0))
    finally:
        await producer.stop()
