"""How model snapshots lie in Redis, and how they are written and read.

Below a namespace:

    snapshot:MODEL:EPOCH.VERSION   an envelope, immutable
    versions:MODEL                 list of EPOCH.VERSION, oldest first
    pointer:MODEL                  EPOCH.VERSION; also the channel that tells of moves
    canary:MODEL                   the record of its canary, while it has one: the bytes
                                   of the topic, see `rankstream.wire.models.canaries`
    models                         set of names
    KIND                           hash of small documents by name: experiments,
                                   and removed-experiments with their last epochs

All of it is a copy of the topics `snapshots` and `experiments`: the role `publish`
writes again what is lost or was changed. One script writes a model: the pointer after
the snapshot, only forwards by (epoch, version), and the canary with it. It replaces
only the canary that its writer knew, as canaries have no order. Another gives readers
pointer, envelope and canary together, without the bytes that they have.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from rankstream.redis_store.decision_store import DecisionStore
from rankstream.redis_store.redis_clients import Identity
from rankstream.redis_store.redis_scripts import (
    BATCH_BYTES,
    CURRENT,
    DISCARD,
    MEND,
    PUBLISH,
    STANDING,
    CanarySwap,
    Newest,
    Standing,
    StoreUnavailable,
    batches_of,
    newest_from,
)
from rankstream.settings import Settings
from rankstream.tls import redis_identity
from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    SnapshotError,
    decode_at,
    decode_snapshot,
    deployed,
    encode_snapshot,
    features_hash,
    intervention_of,
    is_pointer,
    n_weights,
    parent_pointer,
    pointer_from,
    pointer_of,
    rolled_back,
)
from rankstream.wire.models.canary_snapshots import KnownCanary
from rankstream.wire.models.snapshot_names import following_key

__all__ = [
    "BATCH_BYTES",
    "CanarySwap",
    "KnownCanary",
    "Newest",
    "Pointer",
    "Snapshot",
    "SnapshotError",
    "SnapshotStore",
    "Standing",
    "StoreUnavailable",
    "decode_at",
    "decode_snapshot",
    "deployed",
    "encode_snapshot",
    "features_hash",
    "following_key",
    "intervention_of",
    "is_pointer",
    "n_weights",
    "parent_pointer",
    "pointer_from",
    "pointer_of",
    "rolled_back",
    "store_of",
]


class SnapshotStore(DecisionStore):
    """Snapshots of a namespace in one Redis.

    Safe to use from several threads.

    Parameters
    ----------
    url
        Without credentials; `rediss://` for TLS. Of sentinels and clusters see
        `rankstream.configuration.redis_url`.
    keep
        Versions of each model that stay.
    timeout_s
        How long to wait for one answer.
    retries
        How often to ask again before a call fails.
    identity
        Username, password, `ca_file` and the like, as
        `rankstream.redis_store.redis_clients.Identity` has them.
    """

    def __init__(
        self,
        url: str,
        *,
        namespace: str = "",
        keep: int = 50,
        timeout_s: float = 2.0,
        retries: int = 2,
        **identity: str,
    ) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1; got {keep}")
        self._keep = keep
        super().__init__(
            url,
            Identity(**identity),
            namespace=namespace,
            timeout_s=timeout_s,
            retries=retries,
        )
        script = self._script
        self._publish, self._current = script(PUBLISH), script(CURRENT)
        self._standing, self._mend = script(STANDING), script(MEND)
        self._discard = script(DISCARD)

    def publish(self, envelope: bytes) -> bool:
        """Bring a snapshot in and move the pointer; False if it was there or is old.

        Raises
        ------
        StoreUnavailable, SnapshotError
        """
        return self.publish_all([envelope]) == 1

    def publish_all(self, envelopes: Sequence[bytes]) -> int:
        """Bring in versions of one model, oldest first; returns how many went in.

        Versions up to `BATCH_BYTES` go in at once: nobody sees those in between.

        Raises
        ------
        StoreUnavailable, SnapshotError
        """
        if not envelopes:
            return 0
        model = decode_snapshot(envelopes[0]).model
        return self.publish_with(model, envelopes, None)

    def publish_with(
        self, model: str, envelopes: Sequence[bytes], swap: CanarySwap | None
    ) -> int:
        """Bring in versions, and the model's canary with the last of them, at once.

        Raises
        ------
        StoreUnavailable, SnapshotError
        """
        count, batches = 0, list(batches_of(envelopes))
        for batch in batches:
            is_last = batch is batches[-1]
            count += self._publish_batch(model, batch, swap if is_last else None)
        return count

    def _publish_batch(
        self,
        model: str,
        batch: list[tuple[Snapshot, bytes]],
        swap: CanarySwap | None,
    ) -> int:
        pointer, versions, canary = self._places_of(model)
        keys = [pointer, versions, f"{self._prefix}models"]
        arguments: list[Any] = [self._keep, model, self._versions_of(model), "", ""]
        if swap is not None:
            keys.append(canary)
            arguments[3:] = ["any" if swap.held is None else swap.held, swap.wanted]
        for snapshot, envelope in batch:
            arguments += [str(pointer_of(snapshot)), envelope]
        return int(self._call(self._publish, keys=keys, args=arguments))

    def current(
        self, model: str, known: Pointer | None = None
    ) -> tuple[Pointer, bytes | None] | None:
        """Pointer and bytes in one step; no bytes where the pointer is still `known`.

        None where the model has no snapshot. Bytes that are missing are `b""`.

        Raises
        ------
        StoreUnavailable
        SnapshotError
            Where the pointer is malformed.
        """
        found = self._read(model, known)
        return found and (found.pointer, found.envelope)

    def newest(
        self,
        model: str,
        known: Pointer | None = None,
        known_canary: KnownCanary = KnownCanary(),  # noqa: B008  it never changes
    ) -> Newest | None:
        """The same, with the canary of the model; its bytes only where it is another.

        Raises
        ------
        StoreUnavailable
        SnapshotError
            Where the pointer is malformed.
        """
        return self._read(model, known, known_canary)

    def _read(
        self, model: str, known: Pointer | None, canary: KnownCanary | None = None
    ) -> Newest | None:
        pointer, _, place = self._places_of(model)
        arguments: list[Any] = [str(known or ""), self._versions_of(model)]
        keys = [pointer] if canary is None else [pointer, place]
        answer = self._call(
            self._current, keys=keys, args=[*arguments, *(canary or ())]
        )
        return newest_from(answer) if answer else None

    def standing(self, models: Sequence[str]) -> dict[str, Pointer]:
        """Pointers of those models whose pointer leads to a snapshot that is there.

        Raises
        ------
        StoreUnavailable
        """
        keys = [self._pointer_of(model) for model in models]
        prefixes = [self._versions_of(model) for model in models]
        answers = self._call(self._standing, keys=keys, args=prefixes)
        return {
            model: pointer_from(held)
            for model, held in zip(models, answers, strict=True)
            if is_pointer(held)
        }

    def mend(self, models: Sequence[str]) -> dict[str, Standing]:
        """What each pointer leads to; clears what no publisher can have written.

        That is a key of a wrong type, a pointer that is none, or one that is not to
        the last of the versions. All versions of the model leave with the pointer.

        Raises
        ------
        StoreUnavailable
        """
        keys, arguments = [f"{self._prefix}models"], []
        for model in models:
            keys += self._places_of(model)
            arguments += [model, self._versions_of(model)]
        answer = self._call(self._mend, keys=keys, args=arguments)
        return {
            model: Standing(
                pointer_from(now) if now else None, why.decode(), canary.decode()
            )
            for model, now, why, canary in zip(
                models, answer[::3], answer[1::3], answer[2::3], strict=True
            )
        }

    def discard(self, model: str, pointer: Pointer) -> bool:
        """Take all of a model away if its pointer is still this one; whether it was.

        Raises
        ------
        StoreUnavailable
        """
        arguments = [str(pointer), self._versions_of(model)]
        keys = self._places_of(model)[:2]
        return bool(self._call(self._discard, keys=keys, args=arguments))

    def load(self, model: str, pointer: Pointer) -> bytes | None:
        """The envelope of one version, or None."""
        name = f"{self._versions_of(model)}{pointer}"
        return cast("bytes | None", self._call("get", name))

    def versions(self, model: str) -> list[Pointer]:
        """Versions that are there, oldest first."""
        name = f"{self._prefix}versions:{model}"
        names = self._call("lrange", name, 0, -1)
        return [pointer_from(each) for each in names]

    def models(self) -> list[str]:
        """Models that have a snapshot."""
        names = self._call("smembers", f"{self._prefix}models")
        return sorted(name.decode() for name in names)

    def verify(self, model: str) -> list[tuple[Pointer, str]]:
        """Each kept version, and why it is bad; an empty reason if it is good.

        Raises
        ------
        StoreUnavailable
        SnapshotError
            Where the list of versions or the pointer is malformed.
        """
        verdicts = {place: self._reason(model, place) for place in self._places(model)}
        if "missing" in verdicts.values():
            # A publisher may have trimmed it since the list was read.
            still = self._places(model)
            verdicts = {at: reason for at, reason in verdicts.items() if at in still}
        return sorted(verdicts.items())

    def _places(self, model: str) -> set[Pointer]:
        answer = self.current(model)
        return set(self.versions(model)) | ({answer[0]} if answer else set())

    def _reason(self, model: str, place: Pointer) -> str:
        try:
            decode_at(self.load(model, place) or b"", model, place)
        except SnapshotError as error:
            return error.reason
        return ""

    def notifications(self, model: str) -> Iterator[None]:
        """One at once, one after each burst of moves, and one each half second.

        Raises
        ------
        StoreUnavailable
        """
        return self._heard(self._pointer_of(model))

    def _places_of(self, model: str) -> list[str]:
        names = [f"{self._prefix}{kind}:{model}" for kind in ("versions", "canary")]
        return [self._pointer_of(model), *names]

    def _pointer_of(self, model: str) -> str:
        return f"{self._prefix}pointer:{model}"

    def _versions_of(self, model: str) -> str:
        return f"{self._prefix}snapshot:{model}:"


def store_of(settings: Settings, *, retries: int = 2) -> SnapshotStore:
    """The store that the settings name.

    Raises
    ------
    SettingsError
        Where a file with a password or with certificates cannot be read.
    """
    return SnapshotStore(
        settings.redis.url,
        namespace=settings.namespace,
        **redis_identity(settings.redis),
        keep=settings.redis.keep_versions,
        retries=retries,
    )
