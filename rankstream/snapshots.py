"""Model snapshots: the envelope, and how they lie in Redis.

This is the one module that reaches Redis. A version is immutable: one key per
version, then the pointer, in one script, forwards only by (epoch, version); a reader
takes pointer and bytes in one step and verifies them. An envelope is

    magic (4) | schema (2) | length (4) | SHA-256 of the payload (32) | payload

with the payload in MessagePack; numbers are big-endian.
"""

import hashlib
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec
import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

MAGIC = b"RSNP"
SCHEMA = 1
HEADER = struct.Struct(">4sHI32s")

_encode = msgspec.msgpack.Encoder().encode


class SnapshotError(ValueError):
    """A snapshot is not what it should be; `reason` is stable.

    Operator action: `rankstream snapshots verify`; readers keep the last good one.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoreUnavailable(RuntimeError):
    """Redis does not answer, or answers with an error.

    Operator action: look at Redis; publishing goes on when it is back.
    """


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """A model at one version: all that a ranker needs.

    `version` is the number of interactions folded, `created_ms` the event time of the
    last of them, `sources` the last sequence number of each partition of the log.
    `weights` are little-endian float32.
    """

    model: str
    epoch: int
    version: int
    parent: int
    created_ms: int
    kind: str
    hidden: list[int]
    normalisation: str
    n_features: int
    features_hash: bytes
    sources: list[tuple[int, int]]
    updates: int
    weights: bytes


_decode = msgspec.msgpack.Decoder(Snapshot).decode


class Pointer(NamedTuple):
    """What a model's pointer says; compared in this order."""

    epoch: int
    version: int


def features_hash(names: list[str] | int) -> bytes:
    """The hash of a feature list: its names, or `f1`, `f2` ... of that number."""
    if isinstance(names, int):
        names = [f"f{number + 1}" for number in range(names)]
    return hashlib.blake2b("\x1f".join(names).encode(), digest_size=8).digest()


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The envelope; the same snapshot gives the same bytes."""
    payload = _encode(snapshot)
    digest = hashlib.sha256(payload).digest()
    return HEADER.pack(MAGIC, SCHEMA, len(payload), digest) + payload


def decode_snapshot(envelope: bytes) -> Snapshot:
    """The snapshot in an envelope, verified.

    Raises
    ------
    SnapshotError
        With the reason: truncated, magic, schema, length, checksum, payload, weights.
    """
    if len(envelope) < HEADER.size:
        raise SnapshotError(
            "truncated", f"an envelope holds {HEADER.size} bytes; got {len(envelope)}"
        )
    magic, schema, length, digest = HEADER.unpack_from(envelope)
    if magic != MAGIC:
        raise SnapshotError(
            "magic", f"an envelope begins with {MAGIC!r}; got {magic!r}"
        )
    if schema != SCHEMA:
        raise SnapshotError("schema", f"schema must be {SCHEMA}; got {schema}")
    payload = envelope[HEADER.size :]
    if len(payload) != length:
        raise SnapshotError(
            "length", f"payload must be {length} bytes; got {len(payload)}"
        )
    if hashlib.sha256(payload).digest() != digest:
        raise SnapshotError("checksum", "the payload must match its SHA-256")
    try:
        snapshot = _decode(payload)
    except msgspec.DecodeError as error:
        raise SnapshotError(
            "payload", f"a payload must be a snapshot; {error}"
        ) from error
    expected = 4 * n_weights(snapshot.n_features, snapshot.hidden)
    if len(snapshot.weights) != expected:
        raise SnapshotError(
            "weights", f"weights must be {expected} bytes; got {len(snapshot.weights)}"
        )
    return snapshot


def n_weights(n_features: int, hidden: list[int]) -> int:
    """Length of the flat weight vector of a ranker."""
    sizes = [n_features, *hidden]
    layers = zip(sizes[:-1], sizes[1:], strict=True)
    return sum((inputs + 1) * outputs for inputs, outputs in layers) + sizes[-1]


PUBLISH = """
local now = redis.call('GET', KEYS[1])
local epoch, version = tonumber(ARGV[1]), tonumber(ARGV[2])
if now then
  local e, v = string.match(now, '^(%d+)%.(%d+)$')
  e, v = tonumber(e), tonumber(v)
  if e > epoch or (e == epoch and v > version) then return 0 end
  if e == epoch and v == version and redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
end
redis.call('SET', KEYS[3], ARGV[3])
redis.call('RPUSH', KEYS[2], ARGV[1] .. '.' .. ARGV[2])
redis.call('SET', KEYS[1], ARGV[1] .. '.' .. ARGV[2])
redis.call('SADD', KEYS[4], ARGV[5])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[4]) do
  redis.call('DEL', ARGV[6] .. redis.call('LPOP', KEYS[2]))
end
redis.call('PUBLISH', KEYS[1], ARGV[1] .. '.' .. ARGV[2])
return 1
"""

CURRENT = """
local now = redis.call('GET', KEYS[1])
if not now then return false end
if now == ARGV[1] then return {now} end
return {now, redis.call('GET', ARGV[2] .. now)}
"""


class SnapshotStore:
    """Snapshots of a namespace in one Redis.

    Parameters
    ----------
    url
        Without credentials.
    keep
        Versions of each model that stay.
    """

    def __init__(  # noqa: PLR0913  what a connection needs
        self,
        url: str,
        *,
        namespace: str = "",
        username: str = "",
        password: str = "",
        keep: int = 50,
    ) -> None:
        self.place = url.split("@")[-1]
        self._prefix = f"{namespace or 'rankstream'}:"
        self._keep = keep
        self._client = redis.Redis.from_url(
            url,
            username=username or None,
            password=password or None,
            socket_timeout=5.0,
            socket_connect_timeout=5.0,
            health_check_interval=15,
            retry=Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.2), 3),
        )
        self._publish = self._client.register_script(PUBLISH)
        self._current = self._client.register_script(CURRENT)

    def publish(self, envelope: bytes) -> bool:
        """Bring a snapshot in and move the pointer; False if it was there or is old.

        Raises
        ------
        StoreUnavailable, SnapshotError
        """
        snapshot = decode_snapshot(envelope)
        model = snapshot.model
        versions = self._versions_of(model)
        keys = [
            self._pointer_of(model),
            f"{self._prefix}versions:{model}",
            f"{versions}{snapshot.epoch}.{snapshot.version}",
            f"{self._prefix}models",
        ]
        arguments: list[Any] = [snapshot.epoch, snapshot.version, envelope]
        arguments += [self._keep, model, versions]
        return bool(self._call(self._publish, keys=keys, args=arguments))

    def current(
        self, model: str, known: Pointer | None = None
    ) -> tuple[Pointer, bytes | None] | None:
        """Pointer and bytes in one step; no bytes where the pointer is as known.

        None where the model has no snapshot. Bytes that are missing are `b""`.

        Raises
        ------
        StoreUnavailable
        """
        told = f"{known.epoch}.{known.version}" if known else ""
        answer = self._call(
            self._current,
            keys=[self._pointer_of(model)],
            args=[told, self._versions_of(model)],
        )
        if not answer:
            return None
        pointer = _pointer(answer[0])
        if len(answer) == 1:
            return (pointer, None) if pointer == known else (pointer, b"")
        return pointer, answer[1] or b""

    def load(self, model: str, pointer: Pointer) -> bytes | None:
        """The envelope of one version, or None."""
        name = f"{self._versions_of(model)}{pointer.epoch}.{pointer.version}"
        return cast("bytes | None", self._call(self._client.get, name))

    def versions(self, model: str) -> list[Pointer]:
        """Versions that are there, oldest first."""
        name = f"{self._prefix}versions:{model}"
        return [_pointer(each) for each in self._call(self._client.lrange, name, 0, -1)]

    def models(self) -> list[str]:
        """Models that have a snapshot."""
        names = self._call(self._client.smembers, f"{self._prefix}models")
        return sorted(name.decode() for name in names)

    def notifications(self, model: str) -> Iterator[None]:
        """One for each notification about a model, and one each half second.

        Raises
        ------
        StoreUnavailable
        """
        try:
            with self._client.pubsub(ignore_subscribe_messages=True) as listening:
                listening.subscribe(self._pointer_of(model))
                while True:
                    listening.get_message(timeout=0.5)
                    yield
        except redis.RedisError as error:
            raise self._unavailable(error) from error

    def ping(self) -> None:
        """Answer, or raise StoreUnavailable."""
        self._call(self._client.ping)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _pointer_of(self, model: str) -> str:
        return f"{self._prefix}pointer:{model}"

    def _versions_of(self, model: str) -> str:
        return f"{self._prefix}snapshot:{model}:"

    def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except redis.RedisError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(
            f"Redis must answer; {type(error).__name__} at {self.place}"
        )


def _pointer(text: bytes) -> Pointer:
    epoch, _, version = text.partition(b".")
    return Pointer(int(epoch), int(version))
