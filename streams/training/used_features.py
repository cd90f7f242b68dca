"""Which records of features a training read, found again as more of them come."""

from collections.abc import Iterable

from rankstream.wire.candidates import decode_candidates_key
from rankstream.wire.routing import partition_of_query
from rankstream.wire.training import FeaturesUsed
from streams.training.feature_records import (
    FeatureRecords,
    digest_of,
    record_digest,
)


class UsedFeatures:
    """Digests of the records that are read, one for each query and candidate set.

    A training reads each partition of `candidates` up to a moment of its own. So each
    takes records until it is what was read, and then no more. A record costs no more
    however many there are: the digest of a partition is made only where there are as
    many as are looked for, which is once unless features of a set leave or come again.

    Parameters
    ----------
    sets
        Queries, sorted, and the candidate sets that features are read of.
    records
        Those that there are; those that come are added.
    wanted
        What a training read, by partition.
    """

    def __init__(
        self,
        sets: Iterable[tuple[str, list[bytes]]],
        records: FeatureRecords,
        wanted: Iterable[FeaturesUsed],
    ) -> None:
        self._records = records
        self._wanted = {each.partition: each for each in wanted}
        self._digests: dict[int, dict[tuple[str, bytes], bytes]] = {
            partition: {} for partition in self._wanted
        }
        for query, names in sets:
            of_partition = self._digests.setdefault(self._partition(query), {})
            for name in sorted({*names}):
                found = records.of(query, [name])
                of_partition[query, name] = found.digests[0] if found else b""
        self._n_records = {
            partition: sum(map(bool, digests.values()))
            for partition, digests in self._digests.items()
        }
        self.lacking = {each for each in self._digests if not self._is_found(each)}
        """Partitions whose records are not yet those that were read."""

    def take(self, key: bytes, value: bytes | None) -> None:
        """Take one more record of `candidates`."""
        query, candidate_set, features_hash = decode_candidates_key(key)
        partition = self._partition(query)
        if (
            partition not in self.lacking
            or features_hash != self._records.features_hash
        ):
            return
        of_partition = self._digests[partition]
        known = of_partition.get((query, candidate_set))
        if known is None:
            return
        digest = record_digest(query, candidate_set, value) if value else b""
        if digest == known:
            return
        self._records.add(key, value)
        of_partition[query, candidate_set] = digest
        self._n_records[partition] += bool(digest) - bool(known)
        if self._is_found(partition):
            self.lacking.discard(partition)

    def _partition(self, query: str) -> int:
        return partition_of_query(query, self._records.n_partitions)

    def _is_found(self, partition: int) -> bool:
        wanted = self._wanted.get(partition)
        if wanted is None:
            return not self._n_records[partition]
        if self._n_records[partition] != wanted.n_records:
            return False
        return digest_of(self._digests[partition].values()) == wanted.digest
