"""Which records of features a training would read, as more of them come."""

import hashlib
from collections.abc import Iterable

from rankstream.wire.candidates import decode_candidates_key
from rankstream.wire.training import FeaturesUsed
from streams.training.feature_records import (
    DIGEST_BYTES,
    FeatureRecords,
    record_digest,
)


class UsedFeatures:
    """Digests of the records that are read, one for each query and candidate set.

    A record costs no more however many there are: the digest of all of them is made
    only where there are as many as are looked for, which is once unless features of a
    set come again and are others.

    Parameters
    ----------
    sets
        Queries, sorted, and the candidate sets that features are read of.
    records
        Those that there are; those that come are added.
    """

    def __init__(
        self, sets: Iterable[tuple[str, list[bytes]]], records: FeatureRecords
    ) -> None:
        self._records = records
        self._digests: dict[tuple[str, bytes], bytes] = {}
        for query, names in sets:
            for name in sorted({*names}):
                found = records.of(query, [name])
                self._digests[query, name] = found.digests[0] if found else b""
        self.n_records = sum(map(bool, self._digests.values()))

    def take(self, key: bytes, value: bytes | None) -> bool:
        """Take one more record of `candidates`; whether it changes what is read."""
        if not value:
            return False
        query, candidate_set, features_hash = decode_candidates_key(key)
        known = self._digests.get((query, candidate_set))
        if known is None or features_hash != self._records.features_hash:
            return False
        digest = record_digest(query, candidate_set, value)
        if digest == known:
            return False
        self._records.add(key, value)
        self._digests[query, candidate_set] = digest
        self.n_records += not known
        return True

    def are(self, wanted: FeaturesUsed) -> bool:
        """Whether what is read has this digest, as `features_used` makes it."""
        if self.n_records != wanted.n_records:
            return False
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for each in self._digests.values():
            digest.update(each)
        return digest.digest() == wanted.digest
