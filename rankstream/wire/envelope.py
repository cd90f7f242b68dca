"""Model snapshots, and the envelope that they travel in.

    magic (4) | schema (2) | length (4) | SHA-256 of the payload (32) | payload

The payload is MessagePack, numbers are big-endian. Equal snapshots have equal bytes.
Forests have a schema of their own, which releases before them refuse by its number.
"""

import hashlib
import itertools
import re
import struct
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.feature_names import MAX_NAME, fault_of_names
from rankstream.wire.models.forests import fault_of_forest
from rankstream.wire.schemas import schema_refusal

MAGIC = b"RSNP"
SCHEMA = 1
FOREST_SCHEMA = 2
HEADER = struct.Struct(">4sHI32s")

TREES = "trees"
NETWORKS = ("neural", "neural-tanh", "neural-relu")
KINDS = ("linear", *NETWORKS, TREES)
CURVE = "curve"
"""The kind of a curve of bias: no ranker, and no list is made by it."""

CURVE_ROWS = 6
"""Of its weights; see `rankstream.wire.models.curves`."""

NORMALISATIONS = ("min-max", "standard", "none")

_encode = msgspec.msgpack.Encoder().encode

LARGEST_NUMBER = 10**15 - 1
"""The largest epoch, and the largest version. Redis' scripts compare them as float64,
which has all integers up to there."""

# Without leading zeros: a version has one name.
_NUMBER = rb"(0|[1-9][0-9]{0,14})"
is_pointer = re.compile(_NUMBER + rb"\." + _NUMBER).fullmatch


class SnapshotError(ValueError):
    """A snapshot is not what it should be.

    `reason` is a stable word: truncated, magic, schema, length, checksum, payload,
    shape, pointer, weights; of a record of the topic also misplaced; of a reader also
    missing, misplaced, model, kind, features, emptied.

    Operator action: `rankstream snapshots verify`; readers keep the last good one.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """A model at one version: all that a ranker needs, or a curve of bias.

    `version` is the number of interactions folded, `created_ms` the event time of the
    last of them, `sources` the last sequence number of each partition of the log.
    `epoch` counts rollbacks. `weights` are little-endian float32, laid out as
    `rankstream.ranking.scoring` says; those of trees are as
    `rankstream.wire.models.forests` says, and those of a curve float64, as
    `rankstream.wire.models.curves` says: its features are ranks.

    What follows `weights` is left out of the bytes where it is as by default, from the
    end on, and later minor layouts add fields there, which this one skips.

    Attributes
    ----------
    intervention
        The name under which its lists are logged, `MODEL@EPOCH.VERSION`; empty of what
        is learned online, whose lists have the model's name.
    feature_names
        In the order of the features; empty where only their number is known.
    shift, scale
        Little-endian float32, `n_features` of each, or empty: a feature x becomes
        (x - shift) * scale, before the normalisation of each query.
    groups
        Groups of the statistics whose clicks it was made from, also by way of the
        versions that it descends from, ascending; empty where that is not recorded, as
        of what is learned online: from all of them.
    log_candidates
        Whether rankers log the features of all candidates.
    parent_epoch
        The epoch of `parent`, under which it was served.
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
    intervention: str = ""
    feature_names: list[str] = []
    shift: bytes = b""
    scale: bytes = b""
    groups: list[int] = []
    log_candidates: bool = False
    parent_epoch: int = 0


N_ALWAYS = Snapshot.__struct_fields__.index("weights") + 1
"""Fields that every snapshot has; the others are trailing and have defaults."""

_decode = msgspec.msgpack.Decoder(Snapshot).decode


class Pointer(NamedTuple):
    """What a model's pointer says; compared in this order."""

    epoch: int
    version: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}"


def pointer_from(text: bytes) -> Pointer:
    """The pointer in `EPOCH.VERSION`; numbers have no leading zeros.

    Raises
    ------
    SnapshotError
        With the reason `pointer`.
    """
    found = is_pointer(text)
    if found is None:
        got = text[:40].decode(errors="replace")
        raise SnapshotError(
            "pointer",
            f"a pointer must be EPOCH.VERSION without leading zeros; got {got!r}",
        )
    return Pointer(int(found[1]), int(found[2]))


def names_of(names: list[str] | int) -> list[str]:
    """Names of features, or `f1`, `f2` ... of that number."""
    if isinstance(names, int):
        return [f"f{number + 1}" for number in range(names)]
    return names


def features_hash(names: list[str] | int) -> bytes:
    """The hash of a feature list, by `names_of` it."""
    joined = "\x1f".join(names_of(names)).encode()
    return hashlib.blake2b(joined, digest_size=8).digest()


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The envelope; the same snapshot gives the same bytes."""
    payload = _encode(_without_defaults(snapshot))
    digest = hashlib.sha256(payload).digest()
    return HEADER.pack(MAGIC, _schema(snapshot), len(payload), digest) + payload


def _schema(snapshot: Snapshot) -> int:
    return FOREST_SCHEMA if snapshot.kind == TREES else SCHEMA


def _without_defaults(snapshot: Snapshot) -> list[Any]:
    """The fields up to the last that says something: as earlier releases wrote them."""
    values = list(msgspec.structs.astuple(snapshot))
    while len(values) > N_ALWAYS and not values[-1]:
        values.pop()
    return values


def decode_snapshot(envelope: bytes) -> Snapshot:
    """The snapshot in an envelope, verified.

    Raises
    ------
    SnapshotError
        With the reason: truncated, magic, schema, length, checksum, payload,
        shape, pointer, weights.
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
    if schema not in (SCHEMA, FOREST_SCHEMA):
        where = "byte 4 of its envelope"
        reason = schema_refusal(schema, FOREST_SCHEMA, "a snapshot", where)
        raise SnapshotError("schema", reason)
    payload = envelope[HEADER.size :]
    if len(payload) != length:
        raise SnapshotError(
            "length", f"payload must be {length} bytes; got {len(payload)}"
        )
    if hashlib.sha256(payload).digest() != digest:
        raise SnapshotError("checksum", "the payload must match its SHA-256")
    try:
        snapshot = _decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise SnapshotError(
            "payload", f"a payload must be a snapshot; {error}"
        ) from error
    _check(snapshot, schema)
    return snapshot


def _check(snapshot: Snapshot, schema: int) -> None:
    # Thresholds of trees are of features as they are.
    is_scaled = snapshot.normalisation != "none" or snapshot.shift or snapshot.scale
    is_known = (
        snapshot.kind in (*KINDS, CURVE)
        and not (snapshot.kind == TREES and is_scaled)
        and schema == _schema(snapshot)
        and snapshot.normalisation in NORMALISATIONS
        and (snapshot.kind in NETWORKS) == bool(snapshot.hidden)
    )
    sizes = [snapshot.n_features, *snapshot.hidden]
    numbers = snapshot.epoch, snapshot.version, snapshot.parent_epoch, snapshot.parent
    if not is_known or min(sizes) < 1 or min(numbers) < 0:
        raise SnapshotError(
            "shape",
            f"a snapshot must be of a known shape; got {snapshot.kind} of {sizes}, "
            f"normalisation {snapshot.normalisation}, {pointer_of(snapshot)}",
        )
    _check_numbers(snapshot)
    _check_weights(snapshot)
    _check_declared(snapshot)


def _check_weights(snapshot: Snapshot) -> None:
    n_features, n_bytes = snapshot.n_features, len(snapshot.weights)
    expected = 4 * n_weights(n_features, snapshot.hidden)
    if snapshot.kind == CURVE:
        expected = 8 * CURVE_ROWS * n_features
    if snapshot.kind == TREES:
        if fault := fault_of_forest(snapshot.weights, n_features):
            told = f"trees of a snapshot must be whole: {fault}"
            raise SnapshotError("weights", told)
    elif n_bytes != expected:
        told = f"weights must be {expected} bytes; got {n_bytes}"
        raise SnapshotError("weights", told)


def _check_numbers(snapshot: Snapshot) -> None:
    """That a pointer can name the snapshot, and its parent.

    What no pointer names would be taken for the newest version, and never be served.
    """
    own, parent = pointer_of(snapshot), (snapshot.parent_epoch, snapshot.parent)
    if max(*own, *parent) > LARGEST_NUMBER:
        raise SnapshotError(
            "pointer",
            f"epochs and versions of a snapshot must be at most {LARGEST_NUMBER:,}, as "
            f"those of pointers are; got {own}, after {Pointer(*parent)}",
        )


def _check_declared(snapshot: Snapshot) -> None:
    """What came later, by the same rules as where it is set."""
    for name in ("shift", "scale"):
        n_bytes = len(getattr(snapshot, name))
        if n_bytes not in (0, 4 * snapshot.n_features):
            raise SnapshotError(
                "weights",
                f"{name} must be {4 * snapshot.n_features} bytes or none; "
                f"got {n_bytes}",
            )
    names = snapshot.feature_names
    wrong = fault_of_names(names, snapshot.n_features) if names else ""
    if not wrong and names and features_hash(names) != snapshot.features_hash:
        wrong = "names must be those of features_hash; they are others"
    if wrong:
        raise SnapshotError("shape", f"feature_names of a snapshot: {wrong}")
    if len(snapshot.intervention) > MAX_NAME or min(snapshot.groups, default=0) < 0:
        raise SnapshotError(
            "shape",
            f"a snapshot must have an intervention of at most {MAX_NAME} characters "
            f"and groups from 0 on; got {len(snapshot.intervention)} characters, "
            f"groups {snapshot.groups[:10]}",
        )


def decode_at(envelope: bytes, model: str, pointer: Pointer) -> Snapshot:
    """The snapshot that a place must hold, verified.

    Raises
    ------
    SnapshotError
        As `decode_snapshot`; also missing (no bytes), misplaced and model, where the
        envelope is a good one of something else.
    """
    if not envelope:
        raise SnapshotError("missing", f"version {pointer} of {model!r} must be there")
    snapshot = decode_snapshot(envelope)
    if snapshot.model != model:
        raise SnapshotError(
            "model", f"the model must be {model!r}; got {snapshot.model!r}"
        )
    if pointer_of(snapshot) != pointer:
        raise SnapshotError(
            "misplaced", f"version must be {pointer}; got {pointer_of(snapshot)}"
        )
    return snapshot


def pointer_of(snapshot: Snapshot) -> Pointer:
    """Where a snapshot stands among the versions of its model."""
    return Pointer(snapshot.epoch, snapshot.version)


def parent_pointer(snapshot: Snapshot) -> Pointer | None:
    """Which version a snapshot goes on from; None of one that nothing was learned for.

    Of what is learned online this is the state before its last update, which need not
    have been published.
    """
    if not snapshot.version:
        return None
    return Pointer(snapshot.parent_epoch, snapshot.parent)


def rolled_back(snapshot: Snapshot, epoch: int) -> Snapshot:
    """An old version made the newest one: the same model in a later epoch.

    Raises
    ------
    ValueError
        Where the epoch is not a later one, or none can be later.
    """
    if not snapshot.epoch < epoch <= LARGEST_NUMBER:
        raise ValueError(
            f"epoch must be above {snapshot.epoch}, and at most {LARGEST_NUMBER:,}; "
            f"got {epoch}"
        )
    return msgspec.structs.replace(snapshot, epoch=epoch)


def intervention_of(model: str, pointer: Pointer) -> str:
    """The name of what was trained, promoted or rolled back to.

    Raises
    ------
    SnapshotError
        With the reason `shape`, where events could not bear it.
    """
    name = f"{model}@{pointer}"
    if len(name) > MAX_NAME:
        raise SnapshotError(
            "shape",
            f"an intervention must have a name of at most {MAX_NAME} characters, as "
            f"events bear it; {name[:40]!r}... has {len(name)}: name the model shorter",
        )
    return name


def deployed(snapshot: Snapshot, epoch: int) -> Snapshot:
    """An old version made the newest one, under a name of its own.

    Raises
    ------
    ValueError, SnapshotError
        As `rolled_back` and `intervention_of`.
    """
    moved = rolled_back(snapshot, epoch)
    name = intervention_of(moved.model, pointer_of(moved))
    return msgspec.structs.replace(moved, intervention=name)


def n_weights(n_features: int, hidden: list[int]) -> int:
    """Length of the flat weight vector of a ranker."""
    sizes = [n_features, *hidden]
    layers = itertools.pairwise(sizes)
    return sum((inputs + 1) * outputs for inputs, outputs in layers) + sizes[-1]
