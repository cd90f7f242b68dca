"""The state of a partition, divided among those that its queries go to from here on.

A query goes to the partition of its route modulo their number. So where that becomes a
multiple, what a partition had is divided among itself and new ones, its *children*, and
nothing moves between those that were there. What belongs to a query goes with it. Sums
of experiments stay: they are merged over partitions, whichever they lie in.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from rankstream.settings import Settings
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import EVENTS, PREFERENCES, STATISTICS
from streams.fold.candidates_fold import STATE_TOPIC as CANDIDATES_STATE
from streams.fold.segments import STATE_TOPIC
from streams.repartitioning.join import divided_join
from streams.repartitioning.records import divided_candidates, divided_statistics
from streams.stage import Change, offset_referred

SPLITS_KEY = b"splits"
"""Key in the fold's state of the splits that a partition went through."""

SCHEMA = 1

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, list[tuple[int, int, int]]]).decode


class LogSplit(NamedTuple):
    """One split of a partition of the log.

    Parameters
    ----------
    offset
        The last record before it; -1 where there was none.
    n_before, n_after
        Partitions of the log before and after it; the second is a multiple of the
        first.
    """

    offset: int
    n_before: int
    n_after: int

    def children(self, partition: int) -> range:
        """The partitions that queries of one go to; it is the first of them."""
        return range(partition, self.n_after, self.n_before)


def splits_of(values: Mapping[tuple[str, bytes], bytes]) -> list[LogSplit]:
    """The splits that a partition went through, oldest first.

    Parameters
    ----------
    values
        Of its state topics, by topic and key.

    Raises
    ------
    SchemaRefused
        Where another release wrote them.
    """
    packed = values.get((STATE_TOPIC, SPLITS_KEY))
    if packed is None:
        return []
    check_schema(packed, SCHEMA, "the splits of a partition", STATE_TOPIC)
    _, splits = _decode(packed)
    return [LogSplit(*each) for each in splits]


def divided(
    values: Mapping[tuple[str, bytes], bytes],
    partition: int,
    split: LogSplit,
    settings: Settings,
) -> dict[int, list[Change]]:
    """What each child is to restore: all of its state but the resume position.

    Parameters
    ----------
    values
        State of the partition, by topic and key, with the records that it refers to.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    ValueError
        Where it is not whole.
    """
    children = split.children(partition)
    of_topic: dict[str, dict[bytes, bytes]] = {STATE_TOPIC: {}, STATISTICS: {}}
    log: dict[int, bytes] = {}
    for (topic, key), value in values.items():
        if topic == EVENTS:
            log[offset_referred(Change(topic, key, value))] = value
        else:
            of_topic.setdefault(topic, {})[key] = value
    own = of_topic[STATE_TOPIC]
    joins = divided_join(own, log, children, split.n_after, settings)
    statistics = divided_statistics(of_topic[STATISTICS], children, split.n_after)
    known = of_topic.get(CANDIDATES_STATE, {})
    candidates = divided_candidates(known, children, split.n_after)
    found = {
        child: [*joins[child], *statistics[child], *candidates[child]]
        for child in children
    }
    found[partition] += [
        Change(PREFERENCES, *each) for each in of_topic.get(PREFERENCES, {}).items()
    ]
    splits = [*splits_of(values), split]
    found[partition].append(Change(STATE_TOPIC, SPLITS_KEY, _encode([SCHEMA, splits])))
    return found
