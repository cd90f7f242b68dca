"""How decisions lie in Redis, and how they are written and read.

Below a namespace, of each rule:

    decisions:NAME                 NUMBER.DIGEST of the rewrite that is in force
    decisions-manifest:NAME        its manifest, the bytes of the topic
    decisions-listed:NAME          set of digests: the shards of that manifest
    decisions-shard:NAME:DIGEST    a shard, immutable

Shards are written first, and leave by themselves unless a rewrite that has them comes
into force. One script moves pointer and manifest together, only forwards by number and
only where all shards are there; those of the rewrite before stay for an hour, as
rankers may be reading them. See `rankstream.wire.decisions`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from rankstream.redis_store.decision_scripts import (
    CURRENT_DECISIONS,
    FORGET_DECISIONS,
    STANDING_DECISIONS,
    SWITCH_DECISIONS,
    DecisionStanding,
    HeldDecisions,
    Switched,
)
from rankstream.redis_store.redis_connection import RedisConnection
from rankstream.redis_store.redis_scripts import BATCH_BYTES
from rankstream.wire.decisions import Manifest, place_of

EXPIRE_S = 3600
"""So long shards stay that no manifest in force names."""

AT_ONCE = 32
"""Shards are read so many at once, a MiB or so."""


class DecisionStore(RedisConnection):
    """Decisions of a namespace in one Redis; see `rankstream.snapshots.SnapshotStore`.

    Safe to use from several threads.
    """

    def decisions(self, name: str, known: str = "") -> HeldDecisions | None:
        """Pointer and manifest in one step; no manifest where the pointer is `known`.

        None where the rule has none.

        Raises
        ------
        StoreUnavailable
        """
        script = self._script(CURRENT_DECISIONS)
        answer = self._call(script, keys=self._decision_keys(name)[:2], args=[known])
        if not answer:
            return None
        return HeldDecisions(answer[0].decode(errors="replace"), answer[1])

    def decision_shards(
        self, name: str, digests: Sequence[bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Shards with their digests; empty where one is not there.

        Raises
        ------
        StoreUnavailable
        """
        for start in range(0, len(digests), AT_ONCE):
            some = digests[start : start + AT_ONCE]
            keys = [self._shard_key(name, digest) for digest in some]
            found = self._call("mget", keys)
            yield from zip(some, (each or b"" for each in found), strict=True)

    def put_decision_shards(self, name: str, shards: Mapping[bytes, bytes]) -> None:
        """Write shards by digest, for a rewrite that is to come into force.

        Raises
        ------
        StoreUnavailable
        """
        size, together = 0, self._call("pipeline", transaction=False)
        for digest, shard in shards.items():
            together.set(self._shard_key(name, digest), shard, ex=EXPIRE_S)
            size += len(shard)
            if size >= BATCH_BYTES:
                self._call(together.execute)
                size = 0
        self._call(together.execute)

    def switch_decisions(
        self, manifest: Manifest, value: bytes, *, is_forced: bool = False
    ) -> Switched:
        """Bring a rewrite into force, with all of its shards or not at all.

        Parameters
        ----------
        value
            The bytes of the manifest.
        is_forced
            Also where Redis has a later one.

        Raises
        ------
        StoreUnavailable
        """
        name = manifest.name
        arguments: list[Any] = [place_of(value, manifest.number), value]
        arguments += [int(is_forced), EXPIRE_S, self._shard_key(name, b"")]
        arguments += [digest.hex() for digest in manifest.shards if digest]
        script = self._script(SWITCH_DECISIONS)
        keys = self._decision_keys(name)
        return Switched(self._call(script, keys=keys, args=arguments).decode())

    def standing_decisions(
        self, name: str, pieces: Sequence[tuple[bytes, int]], look_at: int
    ) -> DecisionStanding:
        """What Redis has of a rewrite.

        Parameters
        ----------
        pieces
            Digest and length of each shard; first the length of the manifest, without
            a digest.
        look_at
            Number of the piece whose bytes are wanted.

        Raises
        ------
        StoreUnavailable
        """
        pointer, manifest, _ = self._decision_keys(name)
        keys = [self._shard_key(name, each) if each else manifest for each, _ in pieces]
        # Redis counts from 1, and the pointer stands before the pieces.
        arguments = [look_at + 2, *(length for _, length in pieces)]
        script = self._script(STANDING_DECISIONS)
        answer = self._call(script, keys=[pointer, *keys], args=arguments)
        place, looked_at, *lacking = answer
        return DecisionStanding(
            place.decode(errors="replace"),
            looked_at,
            frozenset(number - 1 for number in lacking),
        )

    def forget_decisions(self, name: str) -> bool:
        """Take all of a rule away; whether there was something.

        Raises
        ------
        StoreUnavailable
        """
        script, keys = self._script(FORGET_DECISIONS), self._decision_keys(name)
        prefix = self._shard_key(name, b"")
        return cast("int", self._call(script, keys=keys, args=[prefix])) > 0

    def _decision_keys(self, name: str) -> list[str]:
        kinds = ("decisions", "decisions-manifest", "decisions-listed")
        return [f"{self._prefix}{kind}:{name}" for kind in kinds]

    def _shard_key(self, name: str, digest: bytes) -> str:
        return f"{self._prefix}decisions-shard:{name}:{digest.hex()}"
