"""What is known of candidates, divided among heirs: it goes with its query."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from rankstream.wire.candidates import decode_candidates_key
from rankstream.wire.topics import CANDIDATES
from streams.fold.candidates_fold import COUNTS, STATE_TOPIC
from streams.fold.heirs import heir_of
from streams.stage import Change, Output

Record = tuple[bytes | None, bytes | None]
"""Key and value."""


def divided_candidates(
    values: Mapping[bytes, bytes], heirs: Sequence[int], n_partitions: int
) -> dict[int, list[Change]]:
    """The share of each heir; counts since the beginning stay with the first.

    Parameters
    ----------
    values
        Of the partition's state of candidates, by key.
    n_partitions
        Of the log from here on.
    """
    found: dict[int, list[Change]] = {heir: [] for heir in heirs}
    for key, value in values.items():
        heir = heirs[0]
        if key != COUNTS:
            query, _ = msgspec.msgpack.decode(key)
            heir = heir_of(query, heirs, n_partitions)
        found[heir].append(Change(STATE_TOPIC, key, value))
    return found


def moved_features(
    records: Iterable[Record], heirs: Sequence[int], n_partitions: int
) -> Iterator[Output]:
    """Features whose query leaves a partition, at their heirs, and their tombstones.

    Parameters
    ----------
    records
        Of the partition of `candidates`, oldest first.
    heirs
        The partition itself is the first of them.
    """
    own = heirs[0]
    latest: dict[bytes, tuple[int, bytes]] = {}
    for key, value in records:
        if key is None:
            continue
        if value is None:
            latest.pop(key, None)
            continue
        heir = heir_of(decode_candidates_key(key).query, heirs, n_partitions)
        if heir != own:
            latest[key] = heir, value
    for key, (heir, value) in latest.items():
        yield Output(CANDIDATES, heir, key, value)
        yield Output(CANDIDATES, own, key, None)
