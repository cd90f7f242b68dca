"""Features of candidates as a training reads them: one list of features, spooled."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from models.arrays import Singles
from rankstream.wire.candidates import decode_candidates, decode_candidates_key
from rankstream.wire.models.training import FeaturesUsed
from rankstream.wire.routing import partition_of_query
from streams.native.counting import name_of_set
from streams.statistics.value_spool import ValueSpool

HELD_BYTES = 32 << 20
"""Features beyond so many bytes lie in a file."""

DIGEST_BYTES = 16


class FeaturesRefused(ValueError):
    """Features cannot be learned from.

    Operator action: correct what the service logs, and count it in a new namespace.
    """


class QueryFeatures(NamedTuple):
    """Features of the items of a query.

    Parameters
    ----------
    items : [n_items]
        Ids, sorted.
    features : [n_items, n_features]
        As they were logged: neither shifted nor normalised.
    digests
        Of the records that were read, by candidate set, sorted.
    """

    items: tuple[str, ...]
    features: Singles
    digests: tuple[bytes, ...]


class FeatureRecords:
    """Records of `candidates` of one list of features, the last of each key.

    A tombstone takes its record away, so that it is all one whether the broker has
    compacted them yet. A record of sets that statistics do not know is never asked for.

    Parameters
    ----------
    items
        Keys and values, in the order of their topic, of all partitions.
    features_hash
        Of the list; others are counted.
    n_features
        Of the list; records with another number are counted with the others.
    n_partitions
        Of `candidates`.
    """

    def __init__(
        self,
        items: Iterable[tuple[bytes, bytes | None]],
        features_hash: bytes,
        n_features: int,
        *,
        n_partitions: int = 1,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self.features_hash = features_hash
        self.n_features = n_features
        self.n_partitions = n_partitions
        self.n_others = 0
        """Records of other lists of features."""
        self._spool = ValueSpool(held_bytes)
        for key, value in items:
            self.add(key, value)

    def add(self, key: bytes, value: bytes | None) -> None:
        """Take one more record.

        Raises
        ------
        SchemaRefused, msgspec.DecodeError
            Where another release wrote it, or something else.
        """
        query, candidate_set, features_hash = decode_candidates_key(key)
        if features_hash != self.features_hash:
            self.n_others += 1
            return
        self._spool.add(query, candidate_set, value or b"")

    def __len__(self) -> int:
        """Records that were taken, tombstones too; of one key there may be several."""
        return len(self._spool)

    def of(self, query: str, sets: Iterable[bytes]) -> QueryFeatures | None:
        """Features of the items of these sets; None where there are none.

        An item of several sets has those of the first set, by name.

        Raises
        ------
        SchemaRefused
            Where another release wrote a value.
        FeaturesRefused
            Where features are more or fewer than those of their list, or a record is
            not of its set.
        """
        latest = {}
        for place in self._spool.places(query):
            candidate_set, value = self._spool.record(place)
            latest[candidate_set] = value
        found, digests = [], []
        for candidate_set in sorted(latest.keys() & {*sets}):
            value = latest[candidate_set]
            if not value:
                continue
            found.append(self._table(query, candidate_set, value))
            digests.append(record_digest(query, candidate_set, value))
        if not found:
            return None
        return QueryFeatures(*_joined(found), tuple(digests))

    def _table(
        self, query: str, candidate_set: bytes, value: bytes
    ) -> tuple[list[str], Singles]:
        """Items of a record, sorted, and their features."""
        try:
            record = decode_candidates(value)
        except msgspec.DecodeError as error:
            raise _not_of_its_set(query, str(error)) from error
        if record.n_features != self.n_features:
            raise FeaturesRefused(
                f"features of {query!r:.100} must be {self.n_features} of an item, as "
                f"their list has them; got {record.n_features}: correct what the "
                "service logs, and count it in a new namespace"
            )
        shape = len(record.items), self.n_features
        if not record.items:
            raise _not_of_its_set(query, "they are of none")
        # A set is named by its items, sorted, so that no other ones pass.
        if name_of_set(msgspec.msgpack.encode(record.items)) != candidate_set:
            raise _not_of_its_set(query, "they are of other items")
        if len(record.features) != 4 * shape[0] * shape[1]:
            told = f"{len(record.features)} bytes are no {self.n_features} of each"
            raise _not_of_its_set(query, told)
        return record.items, np.frombuffer(record.features, "<f4").reshape(shape)


def _not_of_its_set(query: str, told: str) -> FeaturesRefused:
    return FeaturesRefused(
        f"features of query {query!r:.100} must be those of the items of its set; "
        f"{told}: let nothing but rankstream write to `candidates`, and count in a new "
        "namespace"
    )


def _joined(
    found: list[tuple[list[str], Singles]],
) -> tuple[tuple[str, ...], Singles]:
    """Items of several sets, each with the features of the first that has it."""
    if len(found) == 1:
        return tuple(found[0][0]), found[0][1]
    rows: dict[str, Singles] = {}
    for items, table in found:
        for item, row in zip(items, table, strict=True):
            rows.setdefault(item, row)
    items = sorted(rows)
    return tuple(items), np.stack([rows[item] for item in items])


class FeaturesDigest:
    """A digest of the records that are used of each partition; queries come sorted."""

    def __init__(self, n_partitions: int) -> None:
        self._n_partitions = n_partitions
        self._digests: dict[int, list[bytes]] = {}

    def take(self, query: str, digests: Iterable[bytes]) -> None:
        """Add those of a query."""
        partition = partition_of_query(query, self._n_partitions)
        self._digests.setdefault(partition, []).extend(digests)

    def used(self) -> list[FeaturesUsed]:
        """All so far, by partition; of one without records nothing."""
        return [
            FeaturesUsed(partition, len(found), digest_of(found))
            for partition, found in sorted(self._digests.items())
            if found
        ]


def digest_of(digests: Iterable[bytes]) -> bytes:
    """One digest of those of records, in their order."""
    whole = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for each in digests:
        whole.update(each)
    return whole.digest()


def record_digest(query: str, candidate_set: bytes, value: bytes) -> bytes:
    """The digest of one record; those of all that is read are digested once more."""
    named = hashlib.blake2b(query.encode(), digest_size=DIGEST_BYTES)
    named.update(candidate_set)
    named.update(value)
    return named.digest()


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
