"""Records of the topic `decisions`: what is served for which query, on what evidence.

A rule of decisions has a name. Each *rewrite* of it has a number, which rises:

    key    MessagePack array: name, query, name of the candidate set
    value  of a decision: `Decision` as a MessagePack array; none where it left
    key    MessagePack array: name
    value  of a rewrite: `Manifest` as a MessagePack array

A rewrite is one transaction: what changed, and its manifest last. So who reads the
partition in order has all of a rewrite at its manifest, whose digests prove it. Redis
has the manifest as it is here, and of decisions what `rankstream.wire.decision_shards`
says.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from rankstream.wire.bounds import LARGEST
from rankstream.wire.decision_shards import (
    DIGEST_BYTES,
    N_SHARDS,
    DecisionError,
    Entry,
    Slot,
    digest_of,
    hash_of_items,
    pack_order,
)
from rankstream.wire.envelope import (
    LARGEST_NUMBER,
    Pointer,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    is_pointer,
    pointer_from,
    pointer_of,
)
from rankstream.wire.feature_names import MAX_NAME
from rankstream.wire.routing import hash_of_query
from rankstream.wire.schemas import SchemaRefused, check_schema, decoded
from rankstream.wire.topics import DECISIONS

SCHEMA = 1

OWN, GENERAL, LOGGING = "own", "general", "logging"
"""Policies: the order of a query by what was clicked there, and the two models."""

_encode = msgspec.msgpack.Encoder().encode


class Evidence(msgspec.Struct, frozen=True, array_like=True):
    """What speaks for one policy against another.

    Attributes
    ----------
    against
        The policy that it is compared with: `GENERAL` or `LOGGING`.
    interactions, clicks, groups
        Lists, clicks on them and groups of sessions that were counted.
    estimate, lower, upper
        Of the difference per list; infinite where there is no bound.
    policy
        What it speaks for.
    """

    against: str
    interactions: int
    clicks: int
    groups: int
    estimate: float
    lower: float
    upper: float
    policy: str = OWN


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """What is decided for a query and one candidate set.

    Attributes
    ----------
    number
        Of the rewrite that wrote it.
    items
        The candidates, sorted.
    order
        Numbers of `items`, best first; empty where the default snapshot serves the
        query, and the record holds why.
    blocks
        Sizes of the blocks of tied items, in that order.
    policy
        Whose order it is: `OWN`, or `LOGGING` where that model keeps the set; or the
        policy of a bandit.
    slot
        Of the last rank, where a bandit has one.
    lists
        Of a bandit, those of its own that it was made of.
    values
        What a bandit orders `items` by, in their order.
    """

    schema: int
    number: int
    items: list[str]
    order: list[int] = []
    blocks: list[int] = []
    evidence: list[Evidence] = []
    policy: str = OWN
    slot: Slot | None = None
    lists: int = 0
    values: list[float] = []


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """One rewrite of a rule, as one deployment.

    Attributes
    ----------
    at_ms
        When it was written, by the clock of who wrote it.
    model
        Whose rankers serve it.
    stands_on
        EPOCH.VERSION of `model` when it was written. Under another epoch, as after a
        rollback, a ranker uses none of it.
    intervention
        What all of its lists log; that of a bandit stays over its rewrites. Empty where
        the rule was withdrawn: then there are no decisions, and lists are made as
        without the rule.
    default
        MODEL@EPOCH.VERSION of the snapshot that serves all queries without a decision.
    envelope
        Of that snapshot; empty where it is that which `model` serves anyway.
    n_decisions, n_left_out
        Decisions in force, and those that left for the limit.
    shards
        Digests of the shards, by number.
    refused
        Lists that may judge nothing, by reason.
    general
        What speaks for the general policy against the logging one, over all queries;
        None where nothing does.
    n_logging
        Decisions in force whose order is that of the logging model.
    paired
        Ends of the paired interval of that difference; none where nothing speaks.
    lacking
        What the general policy has yet to show to replace the logging one, as
        `models.decisions.over_all_queries` names it.
    bandit
        Its policy and how long its lists are, in words; empty of a rule.
    n_counted
        Lists that were counted when it was decided; 0 of rewrites that do not say it.
    """

    schema: int
    name: str
    number: int
    at_ms: int
    model: str
    stands_on: str
    intervention: str
    default: str
    envelope: bytes
    n_decisions: int
    n_left_out: int
    shards: list[bytes]
    refused: dict[str, int] = {}
    general: Evidence | None = None
    n_logging: int = 0
    paired: list[float] = []
    lacking: list[str] = []
    bandit: str = ""
    n_counted: int = 0

    @property
    def pointer(self) -> Pointer:
        """What it stands on."""
        return pointer_from(self.stands_on.encode())


class DecisionKey(NamedTuple):
    """Of a record; that of a manifest has neither query nor set."""

    name: str
    query: str = ""
    candidate_set: bytes = b""

    @property
    def is_manifest(self) -> bool:
        """Whether a rewrite lies under it."""
        return not self.query


_decode_key = msgspec.msgpack.Decoder(DecisionKey).decode
_decode_decision = msgspec.msgpack.Decoder(Decision).decode
_decode_manifest = msgspec.msgpack.Decoder(Manifest).decode

NO_SHARDS = [b""] * N_SHARDS
"""Digests of a rewrite without decisions."""


def decision_key(name: str, query: str, candidate_set: bytes) -> bytes:
    """The key of a decision; `query` must be normalised."""
    return _encode((name, query, candidate_set))


def manifest_key(name: str) -> bytes:
    """The key of the newest rewrite of a rule."""
    return _encode((name,))


def decode_key(key: bytes) -> DecisionKey:
    """What `decision_key` or `manifest_key` made.

    Raises
    ------
    DecisionError
        Where it is neither.
    """
    try:
        found = decoded(_decode_key, key)
    except msgspec.DecodeError as error:
        raise _unreadable("a key of decisions", error) from error
    if not found.name or bool(found.query) != bool(found.candidate_set):
        raise DecisionError(
            "a key of decisions must be a name, or a name, a query and a set; "
            f"got {found!r:.100}"
        )
    return found


def encode_decision(decision: Decision) -> bytes:
    """The value of a decision's record; equal decisions have equal bytes."""
    return _encode(decision)


def decode_decision(value: bytes) -> Decision:
    """What `encode_decision` made.

    Raises
    ------
    DecisionError
        Where another release wrote it, or something else.
    """
    try:
        check_schema(value, SCHEMA, "a decision", "decisions")
        return decoded(_decode_decision, value)
    except (msgspec.DecodeError, SchemaRefused) as error:
        raise _unreadable("a decision", error) from error


def entry_of(query: str, decision: Decision) -> Entry:
    """A decision as a shard holds it.

    Parameters
    ----------
    query
        Normalised.

    Raises
    ------
    DecisionError
        Where the order is none of its items.
    """
    items = decision.items
    if len(decision.order) != len(items) or items != sorted(set(items)):
        raise DecisionError(
            "a decision must order all of its items, which must be sorted, each once; "
            f"got {len(decision.order)} of {items[:3]!r:.100} for {query!r:.100}"
        )
    body = pack_order(decision.order, decision.blocks, decision.slot)
    return Entry(hash_of_query(query), hash_of_items(items), body)


def encode_manifest(manifest: Manifest) -> bytes:
    """The value of its record; equal ones have equal bytes.

    Raises
    ------
    DecisionError
        Where no reader would take it, or no record.
    """
    _check(manifest)
    value = _encode(manifest)
    most = LARGEST[DECISIONS] - len(manifest_key(manifest.name))
    if len(value) > most:
        raise DecisionError(
            f"{_told(manifest)} must fit a record of {most:,} bytes with the snapshot "
            f"of {manifest.default!r:.60}; got {len(value):,}: take a smaller model"
        )
    return value


def decode_manifest(value: bytes) -> Manifest:
    """What `encode_manifest` made, checked.

    Raises
    ------
    DecisionError
        Where another release wrote it, or something else, or it contradicts itself.
    """
    try:
        check_schema(value, SCHEMA, "a rewrite", "decisions")
        manifest = decoded(_decode_manifest, value)
    except (msgspec.DecodeError, SchemaRefused) as error:
        raise _unreadable("a rewrite", error) from error
    _check(manifest)
    return manifest


def default_snapshot(manifest: Manifest) -> Snapshot | None:
    """The snapshot that a rewrite brings for queries without a decision, verified.

    None where it is what its model serves anyway.

    Raises
    ------
    DecisionError
        Where the envelope is damaged, or of another snapshot.
    """
    if not manifest.envelope:
        return None
    try:
        snapshot = decode_snapshot(manifest.envelope)
    except SnapshotError as error:
        raise DecisionError(f"{_told(manifest)} must bring its default; {error}") from (
            error
        )
    named = f"{snapshot.model}@{pointer_of(snapshot)}"
    if named != manifest.default:
        raise DecisionError(
            f"{_told(manifest)} must bring its default, {manifest.default!r}; "
            f"got {named!r}"
        )
    return snapshot


def place_of(value: bytes, number: int) -> str:
    """What the pointer of a rule says of a rewrite: NUMBER.DIGEST of its manifest."""
    return f"{number}.{hashlib.blake2b(value, digest_size=DIGEST_BYTES).hexdigest()}"


def named_shards(shards: Iterable[bytes]) -> Mapping[bytes, bytes]:
    """Shards by digest, without those that lie nowhere."""
    return {digest_of(shard): shard for shard in shards if shard}


def _check(manifest: Manifest) -> None:
    told = _told(manifest)
    if not 1 <= manifest.number <= LARGEST_NUMBER:
        raise DecisionError(
            f"{told} must have a number of 1 to {LARGEST_NUMBER:,}; "
            f"got {manifest.number}"
        )
    if not is_pointer(manifest.stands_on.encode()):
        raise DecisionError(
            f"{told} must stand on EPOCH.VERSION; got {manifest.stands_on!r:.60}"
        )
    own = f"{manifest.model}@{manifest.stands_on}"
    if not manifest.envelope and manifest.default != own:
        raise DecisionError(
            f"{told} must bring the snapshot of its default, {manifest.default!r:.60}; "
            f"{own!r:.60} alone may be left out"
        )
    names = (manifest.name, manifest.model, manifest.intervention)
    if max(map(len, names)) > MAX_NAME or not (manifest.name and manifest.model):
        raise DecisionError(
            f"{told} must have names of 1 to {MAX_NAME} characters; got {names!r:.200}"
        )
    sizes = {len(digest) for digest in manifest.shards}
    if len(manifest.shards) != N_SHARDS or not sizes <= {0, DIGEST_BYTES}:
        raise DecisionError(
            f"{told} must have digests of {N_SHARDS} shards, of {DIGEST_BYTES} bytes "
            f"or none; got {len(manifest.shards)} of {sorted(sizes)} bytes"
        )
    if not manifest.intervention and any(manifest.shards):
        raise DecisionError(
            f"{told} must name an intervention, as it has decisions; got ''"
        )


def _told(manifest: Manifest) -> str:
    return f"rewrite {manifest.number} of {manifest.name!r:.60}"


def _unreadable(what: str, error: Exception) -> DecisionError:
    return DecisionError(f"{what} must be readable; {error}")
