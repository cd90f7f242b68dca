"""Statistics of a partition, divided among its heirs: every record goes with its query.

Counts since the beginning of the log stay with the partition that counted them. Only
the impressions of scopes are taken along, so that what is counted and has not left is
what the scopes hold, in every partition.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rankstream.wire.topics import STATISTICS
from streams.fold import statistics_keys as keys
from streams.fold.heirs import heir_of
from streams.fold.statistics_reader import Statistics
from streams.stage import Change


def divided_statistics(
    values: Mapping[bytes, bytes], heirs: Sequence[int], n_partitions: int
) -> dict[int, list[Change]]:
    """The share of each heir; the partition itself is the first of them.

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
    found: dict[int, list[Change]] = {heir: [] for heir in heirs}
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
            heir_by_query[query] = heir_of(query, heirs, n_partitions)
        heir = heir_by_query[query]
        found[heir].append(Change(STATISTICS, key, value))
        if kind == "scope":
            era = int(name[3])
            oldest[heir] = min(era, oldest.get(heir, era))
    if counted is None:
        return found
    living = dict.fromkeys(heirs, 0)
    for query, (n_impressions, _) in Statistics(values.items()).queries().items():
        living[heir_by_query[query]] += n_impressions
    own, *new = heirs
    n_taken = sum(counted.sources.values()) - sum(living[heir] for heir in new)
    shares = {own: counted._replace(sources={own: n_taken})}
    nothing = counted._replace(n_left=0, capped=0, clipped=0, without_exposure=0)
    shares |= {heir: nothing._replace(sources={heir: living[heir]}) for heir in new}
    for heir, share in shares.items():
        key = keys.counted_key(heir)
        value = keys.encode_counted(share._replace(oldest=oldest.get(heir)))
        found[heir].append(Change(STATISTICS, key, value))
    return found


def _whole(key: bytes) -> list[Any]:
    """Kind and name of a value; of a part, those of the whole."""
    name: list[Any] = keys.decode(key)
    return keys.decode(name[1]) if name[0] == "part" else name
