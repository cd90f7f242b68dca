"""How model snapshots lie in Redis; the one module that reaches it.

Below a namespace:

    snapshot:MODEL:EPOCH.VERSION   an envelope, immutable
    versions:MODEL                 list of EPOCH.VERSION, oldest first
    pointer:MODEL                  EPOCH.VERSION; also the channel that tells of moves
    models                         set of names
    KIND                           hash of small documents by name: experiments,
                                   and removed-experiments with their last epochs

All of it is a copy of the topics `snapshots` and `experiments`: the role `publish`
writes again what is lost or was changed. One script writes a model: the pointer after
the snapshot, and only forwards by (epoch, version). Another gives readers the pointer
and its envelope together.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from rankstream.redis_scripts import (
    CURRENT,
    DISCARD,
    DOCUMENTS,
    MEND,
    PUBLISH,
    PUT_DOCUMENTS,
    STANDING,
    Standing,
    StoreUnavailable,
)
from rankstream.settings import Settings, secret
from rankstream.tls import believing
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
from rankstream.wire.snapshot_names import following_key

__all__ = [
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

BATCH_BYTES = 4 * 1024 * 1024
"""Several versions go to Redis in one script up to about this size."""


class SnapshotStore:
    """Snapshots of a namespace in one Redis.

    Safe to use from several threads.

    Parameters
    ----------
    url
        Without credentials; `rediss://` for TLS.
    ca_file
        Authorities that Redis' certificate may be of, where not those of the system.
    keep
        Versions of each model that stay.
    timeout_s
        How long to wait for one answer.
    retries
        How often to ask again before a call fails.
    """

    def __init__(  # noqa: PLR0913  what a connection needs
        self,
        url: str,
        *,
        namespace: str = "",
        username: str = "",
        password: str = "",
        ca_file: str = "",
        keep: int = 50,
        timeout_s: float = 2.0,
        retries: int = 2,
    ) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1; got {keep}")
        self.place = url.rpartition("@")[2]
        self._prefix = f"{namespace or 'rankstream'}:"
        self._keep = keep
        self._client = redis.Redis.from_url(
            url,
            username=username or None,
            password=password or None,
            **({"ssl_ca_certs": ca_file} if ca_file else {}),
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            health_check_interval=15,
            retry=Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), retries),
        )
        script = self._client.register_script
        self._publish, self._current = script(PUBLISH), script(CURRENT)
        self._standing, self._mend = script(STANDING), script(MEND)
        self._discard = script(DISCARD)
        self._documents, self._put = script(DOCUMENTS), script(PUT_DOCUMENTS)

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
        snapshots = [decode_snapshot(envelope) for envelope in envelopes]
        if len({snapshot.model for snapshot in snapshots}) > 1:
            raise ValueError("versions must be of one model; got several")
        count, start, size = 0, 0, 0
        for end, envelope in enumerate(envelopes, 1):
            size += len(envelope)
            if size >= BATCH_BYTES or end == len(envelopes):
                batch = zip(snapshots[start:end], envelopes[start:end], strict=True)
                count += self._publish_batch(snapshots[0].model, list(batch))
                start, size = end, 0
        return count

    def _publish_batch(self, model: str, batch: list[tuple[Snapshot, bytes]]) -> int:
        keys = [*self._places_of(model), f"{self._prefix}models"]
        arguments: list[Any] = [self._keep, model, self._versions_of(model)]
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
        answer = self._call(
            self._current,
            keys=[self._pointer_of(model)],
            args=[str(known or ""), self._versions_of(model)],
        )
        if not answer:
            return None
        pointer = pointer_from(answer[0])
        return pointer, (None if len(answer) == 1 else answer[1] or b"")

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
        the last of the versions. All versions of the model leave with it.

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
            model: Standing(pointer_from(now) if now else None, why.decode())
            for model, now, why in zip(models, answer[::2], answer[1::2], strict=True)
        }

    def discard(self, model: str, pointer: Pointer) -> bool:
        """Take all of a model away if its pointer is still this one; whether it was.

        Raises
        ------
        StoreUnavailable
        """
        arguments = [str(pointer), self._versions_of(model)]
        keys = self._places_of(model)
        return bool(self._call(self._discard, keys=keys, args=arguments))

    def load(self, model: str, pointer: Pointer) -> bytes | None:
        """The envelope of one version, or None."""
        name = f"{self._versions_of(model)}{pointer}"
        return cast("bytes | None", self._call(self._client.get, name))

    def versions(self, model: str) -> list[Pointer]:
        """Versions that are there, oldest first."""
        name = f"{self._prefix}versions:{model}"
        names = self._call(self._client.lrange, name, 0, -1)
        return [pointer_from(each) for each in names]

    def models(self) -> list[str]:
        """Models that have a snapshot."""
        names = self._call(self._client.smembers, f"{self._prefix}models")
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
        try:
            # redis-py leaves this method without types.
            subscription: Any = cast("Any", self._client).pubsub(
                ignore_subscribe_messages=True
            )
            with subscription as listening:
                listening.subscribe(self._pointer_of(model))
                while True:
                    yield
                    listening.get_message(timeout=0.5)
                    while listening.get_message(timeout=0.0) is not None:
                        pass
        except redis.RedisError as error:
            raise self._unavailable(error) from error

    def documents(self, kind: str) -> dict[str, bytes]:
        """Small documents of a kind by name; none where Redis holds something else.

        Raises
        ------
        StoreUnavailable
        """
        flat = self._call(self._documents, keys=[f"{self._prefix}{kind}"], args=[])
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(errors="replace"): value for name, value in pairs}

    def put_documents(self, changes: Mapping[str, Mapping[str, bytes | None]]) -> None:
        """Write small documents of several kinds, all at once; None removes one.

        Raises
        ------
        StoreUnavailable
        """
        arguments: list[Any] = []
        for number, documents in enumerate(changes.values(), 1):
            for name, value in documents.items():
                verb = "remove" if value is None else "put"
                arguments += [number, verb, name, value or b""]
        keys = [f"{self._prefix}{kind}" for kind in changes]
        self._call(self._put, keys=keys, args=arguments)

    def ping(self) -> None:
        """Answer, or raise StoreUnavailable."""
        self._call(self._client.ping)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _places_of(self, model: str) -> list[str]:
        return [self._pointer_of(model), f"{self._prefix}versions:{model}"]

    def _pointer_of(self, model: str) -> str:
        return f"{self._prefix}pointer:{model}"

    def _versions_of(self, model: str) -> str:
        return f"{self._prefix}snapshot:{model}:"

    def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except redis.RedisError as error:
            if isinstance(error, redis.ResponseError):
                # One that was made a replica keeps its clients: ask who has the address
                # now. And one without memory keeps the buffer of a large request.
                self._client.connection_pool.disconnect(inuse_connections=False)
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        # Only the code of Redis' answer: its text may repeat what was sent.
        code = re.search(r"\b(?!ERR\b)[A-Z]{3,}\b", str(error))
        told = getattr(error.__context__, "reason", "") or (code[0] if code else "")
        kind = f"{type(error).__name__} {told}".strip()
        return StoreUnavailable(
            f"Redis must answer at {self.place}; {kind}: see that it runs, or "
            "correct redis.url",
            is_answered=isinstance(error, redis.ResponseError),
        )


def store_of(settings: Settings, *, retries: int = 2) -> SnapshotStore:
    """The store that the settings name.

    Raises
    ------
    SettingsError
        Where a file with a password or with certificates cannot be read.
    """
    if settings.redis.ca_file:
        believing("redis.ca_file", settings.redis.ca_file)
    return SnapshotStore(
        settings.redis.url,
        namespace=settings.namespace,
        username=settings.redis.username,
        password=secret("REDIS_PASSWORD", settings.redis.password_file),
        ca_file=settings.redis.ca_file,
        keep=settings.redis.keep_versions,
        retries=retries,
    )
