"""Large state values in parts, so that no value makes a record too large."""

from collections.abc import Iterator, Mapping

import msgspec

from rankstream.wire.bounds import PART_BYTES

_MARK = b"\xc1"
"""Begins a value that is stored in parts; no MessagePack and no schema does."""

_encode = msgspec.msgpack.Encoder().encode


class Parts:
    """Splits values, and remembers in how many parts each key was left."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._n_parts: dict[bytes, int] = {}

    def split(
        self, key: bytes, value: bytes | None
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """The records of one value, with tombstones of parts that it no longer has."""
        n_before = self._n_parts.pop(key, 0)
        size = self._part_bytes
        pieces: list[bytes] = []
        if value is not None and len(value) > size:
            pieces = [value[i : i + size] for i in range(0, len(value), size)]
            self._n_parts[key] = len(pieces)
            value = _MARK + len(pieces).to_bytes(4, "little")
        for i, piece in enumerate(pieces):
            yield part_key(key, i), piece
        for i in range(len(pieces), n_before):
            yield part_key(key, i), None
        yield key, value

    def joined(self, values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Whole values again; remembers their parts."""
        whole: dict[bytes, bytes] = {}
        for key in values:
            if key[1:6] == b"\xa4part":
                continue
            whole[key] = self.value(key, values)
        return whole

    def value(self, key: bytes, values: Mapping[bytes, bytes]) -> bytes:
        """The whole value of one key; remembers its parts."""
        value = values[key]
        if not is_split(value):
            return value
        n_parts = int.from_bytes(value[1:], "little")
        self._n_parts[key] = n_parts
        return b"".join(values[part_key(key, i)] for i in range(n_parts))

    def is_plain(self, key: bytes, value: bytes | None) -> bool:
        """Whether a value is one record, and so was the last of its key."""
        return (value is None or len(value) <= self._part_bytes) and (
            key not in self._n_parts
        )


def is_split(value: bytes) -> bool:
    """Whether a value continues under the keys of its parts."""
    return value[:1] == _MARK


def part_key(key: bytes, i: int) -> bytes:
    """The key of a part."""
    return _encode(["part", key, i])
