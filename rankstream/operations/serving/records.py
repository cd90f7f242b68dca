"""Records of Kafka that hold several events of a request."""

from collections.abc import Iterator

from rankstream.wire.topics import BATCH_BYTES


def joined(values: list[bytes]) -> Iterator[bytes]:
    """Records of one event, or of an array of them up to the size of a batch."""
    if values and sum(map(len, values)) + len(values) < BATCH_BYTES:
        yield _record_of(values)
        return
    together: list[bytes] = []
    size = 2
    for value in values:
        if together and size + len(value) > BATCH_BYTES:
            yield _record_of(together)
            together, size = [], 2
        together.append(value)
        size += len(value) + 1
    if together:
        yield _record_of(together)


def _record_of(values: list[bytes]) -> bytes:
    return values[0] if len(values) == 1 else b"[" + b",".join(values) + b"]"
