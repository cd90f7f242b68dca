"""What the log has of lists, read whole: statistics, and features of candidates."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import NamedTuple

from rankstream.settings import Settings
from rankstream.wire.topics import CANDIDATES, STATISTICS
from streams.kafka.clients import Cluster
from streams.kafka.state.whole_topics import Check, Pair, built_of, whole_topic
from streams.statistics.reader import Statistics
from streams.training.feature_records import HELD_BYTES, FeatureRecords


class LoggedLists(NamedTuple):
    """Statistics, and features by the hash of their list."""

    statistics: Statistics
    features: dict[bytes, FeatureRecords]


async def logged_lists(
    settings: Settings, cluster: Cluster, wanted: Mapping[bytes, int], check: Check
) -> LoggedLists:
    """Read both topics whole.

    Parameters
    ----------
    wanted
        Hashes of lists of features, and how many features each has; of none, features
        are not read.
    check
        Is called before each batch; what it raises ends all.
    """
    n_partitions = settings.kafka.partitions

    def pairs(topic: str) -> AsyncGenerator[list[Pair], None]:
        places = [cluster.place(topic, each) for each in range(n_partitions)]
        return whole_topic(cluster, places, check)

    def features(records: Iterator[Pair]) -> dict[bytes, FeatureRecords]:
        held_bytes = HELD_BYTES // len(wanted)
        found = {
            name: FeatureRecords(
                (), name, n, n_partitions=n_partitions, held_bytes=held_bytes
            )
            for name, n in wanted.items()
        }
        for record in records:
            for each in found.values():
                each.add(*record)
        return found

    statistics = await built_of(pairs(STATISTICS), Statistics)
    if not wanted:
        return LoggedLists(statistics, {})
    return LoggedLists(statistics, await built_of(pairs(CANDIDATES), features))
