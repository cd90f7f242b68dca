"""Records that go with their query: statistics, and what is known of candidates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rankstream.wire.candidates import decode_candidates_key
from rankstream.wire.routing import partition_of_route, route_of_query
from rankstream.wire.topics import CANDIDATES, STATISTICS
from streams.fold.candidates_fold import COUNTS, STATE_TOPIC
from streams.stage import Change, Output
from streams.statistics import keys
from streams.statistics.reader import Statistics


def heir_of(query: str, children: Sequence[int], n_partitions: int) -> int:
    """The child that a query of a partition goes to.

    Parameters
    ----------
    children
        Of its partition.
    n_partitions
        Of the log from here on.

    Raises
    ------
    ValueError
        Where it is a query of another partition.
    """
    child = partition_of_route(route_of_query(query), n_partitions)
    if child not in children:
        raise ValueError(
            f"queries must be of partitions {list(children)}; {query!r:.100} is of "
            f"{child}"
        )
    return child


def divided_statistics(
    values: Mapping[bytes, bytes], children: Sequence[int], n_partitions: int
) -> dict[int, list[Change]]:
    """The share of each child; the partition itself is the first of them.

    Parameters
    ----------
    values
        Of the partition's `statistics`, by key.
    n_partitions
        Of the log from here on.

    Raises
    ------
    SchemaRefused
        Where another release wrote a value.
    ValueError
        Where a scope is not whole, or of another partition.
    """
    found: dict[int, list[Change]] = {child: [] for child in children}
    heir_by_query: dict[str, int] = {}
    oldest: dict[int, int] = {}
    counted = None
    for key, value in values.items():
        kind, *name = _whole(key)
        if kind == "counted":
            counted = keys.decode_counted(value)
            continue
        query = str(name[0])
        if query not in heir_by_query:
            heir_by_query[query] = heir_of(query, children, n_partitions)
        child = heir_by_query[query]
        found[child].append(Change(STATISTICS, key, value))
        if kind == "scope":
            era = int(name[3])
            oldest[child] = min(era, oldest.get(child, era))
    if counted is None:
        return found
    living = dict.fromkeys(children, 0)
    for query, (n_impressions, _) in Statistics(values.items()).queries().items():
        living[heir_by_query[query]] += n_impressions
    own, *new = children
    n_taken = sum(counted.sources.values()) - sum(living[child] for child in new)
    shares = {own: counted._replace(sources={own: n_taken})}
    nothing = counted._replace(n_left=0, capped=0, clipped=0, without_exposure=0)
    shares |= {child: nothing._replace(sources={child: living[child]}) for child in new}
    for child, share in shares.items():
        key = keys.counted_key(child)
        value = keys.encode_counted(share._replace(oldest=oldest.get(child)))
        found[child].append(Change(STATISTICS, key, value))
    return found


def _whole(key: bytes) -> list[Any]:
    """Kind and name of a value; of a part, those of the whole."""
    name: list[Any] = keys.decode(key)
    return keys.decode(name[1]) if name[0] == "part" else name


Record = tuple[bytes | None, bytes | None]
"""Key and value."""


def divided_candidates(
    values: Mapping[bytes, bytes], children: Sequence[int], n_partitions: int
) -> dict[int, list[Change]]:
    """The share of each child; counts since the beginning stay with the first.

    Parameters
    ----------
    values
        Of the partition's state of candidates, by key.
    n_partitions
        Of the log from here on.
    """
    found: dict[int, list[Change]] = {child: [] for child in children}
    for key, value in values.items():
        child = children[0]
        if key != COUNTS:
            query, _ = msgspec.msgpack.decode(key)
            child = heir_of(query, children, n_partitions)
        found[child].append(Change(STATE_TOPIC, key, value))
    return found


def moved_features(
    records: Iterable[Record], children: Sequence[int], n_partitions: int
) -> Iterator[Output]:
    """Features whose query leaves a partition, at their children, and their tombstones.

    Parameters
    ----------
    records
        Of the partition of `candidates`, oldest first.
    children
        The partition itself is the first of them.
    """
    own = children[0]
    latest: dict[bytes, tuple[int, bytes]] = {}
    for key, value in records:
        if key is None:
            continue
        if value is None:
            latest.pop(key, None)
            continue
        child = heir_of(decode_candidates_key(key).query, children, n_partitions)
        if child != own:
            latest[key] = child, value
    for key, (child, value) in latest.items():
        yield Output(CANDIDATES, child, key, value)
        yield Output(CANDIDATES, own, key, None)
