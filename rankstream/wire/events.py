"""The events of the pipeline: what crosses a topic, with schema versions.

Two families. *Input events* (`QueryEvent`, `ClickEvent`) are JSON, written by
anybody, strict. The *canonical log* (`Impression`, `Click`, `Frontier` in an
`EventRecord`) and what is folded from it (`Interaction` in an
`InteractionRecord`) is MessagePack, written by our own stages only.

Vectors are little-endian: float32 for scores, exposures and features, uint16 for
rows of the candidate set. `rank` and `position` are 1-based, rows are 0-based.
"""

from typing import Any

import msgspec

from rankstream.wire.schemas import check_schema, decoded

SCHEMA = 1
"""Major version of every layout in this module; others are refused."""

POLICIES = (
    "unknown",
    "plackett-luce",
    "deterministic",
    "tail-shuffle",
    "logged",
    "multileave",
)
"""Logging policies by their canonical number."""

UNKNOWN, PLACKETT_LUCE, DETERMINISTIC, TAIL_SHUFFLE, LOGGED, MULTILEAVE = range(6)

Vector = str | list[float]
"""Base64 of little-endian float32, or plain numbers."""


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The comparison that an impression belongs to."""

    id: str
    epoch: int
    method: str


class QueryEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input event: a ranker showed a list (topic `queries`).

    `ranks` says where every ranker of a multileaved list has the shown items, from
    1: base64 of little-endian uint16, shown items by rankers, the one that learns
    first. `assignments` names, for each shown item, the number of the ranker that
    it counts for, -1 for none. `candidate_features` holds a row for each candidate,
    for learners that must score what was not shown: as they were scored, or, with
    `features_hash`, as the service gave them. That names their list, by 16 hexadecimal
    digits, and they are then kept in the topic `candidates`. `canary` names the stage
    of the canary in force for the session; see `rankstream.wire.models.canaries`.
    """

    schema: int = SCHEMA
    impression_id: str
    query_id: str
    at_ms: int
    model: str = ""
    version: int = 0
    intervention: str | None = None
    seed: int = 0
    policy: str = "unknown"
    shown: list[str]
    candidates: list[str] | None = None
    scores: Vector | None = None
    exposures: Vector | None = None
    features: str | list[list[float]] | None = None
    experiment: Experiment | None = None
    rankings: dict[str, list[str]] | None = None
    assignments: list[int] | None = None
    ranks: str | None = None
    candidate_features: str | list[list[float]] | None = None
    user: str | None = None
    session: str | None = None
    attributes: dict[str, Any] | None = None
    features_hash: str | None = None
    canary: str | None = None


class ClickEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input event: a user acted on an item of a list (topic `clicks`)."""

    schema: int = SCHEMA
    impression_id: str
    at_ms: int
    query_id: str | None = None
    item_id: str | None = None
    position: int | None = None
    action: str = "click"
    event_id: str | None = None


class Impression(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Canonical: one shown list.

    `candidates` is the MessagePack array of the candidate ids, sorted; `shown`
    holds uint16 rows of it in displayed order. `is_open_set` says that the event
    named no candidates, so that they are the shown items only. `scores` holds one
    float32 per candidate, `exposures` candidates x ranks as `rankstream.wire.exposures`
    packs them, `features` one row of `n_features` for each shown item in displayed
    order; each is empty where absent. `identity` is that of the impression id, `unit`
    the 64-bit hash of
    session, else user, else impression. `extra` is MessagePack of what only later
    stages read (experiment, rankings, assignments, user, session, attributes, canary).
    """

    identity: bytes
    impression_id: str
    query_id: str
    at_ms: int
    model: str
    version: int
    intervention: str
    seed: int
    policy: int
    candidates: bytes
    shown: bytes
    is_open_set: bool
    scores: bytes
    exposures: bytes
    features: bytes
    n_features: int
    unit: int
    extra: bytes


class Click(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Canonical: one action on an item of an impression.

    `impression` is the identity of the impression; `item_id` is empty where only
    the position was given, `position` 0 where only the item was. `raw` is the
    element as it came, `origin` its topic, partition, offset and place in the
    record: what a dead letter needs.
    """

    identity: bytes
    impression: bytes
    item_id: str
    position: int
    at_ms: int
    action: str
    raw: bytes
    origin: tuple[str, int, int, int]


class Frontier(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Canonical: no event of `source` before `at_ms` is expected any more.

    `source` numbers the input partitions, `n_sources` says how many there
    are. `at_ms` is -1 while nothing plausible was seen. `state` is 0 while the
    source is read, 1 when it is idle, 2 when it has ended.
    """

    source: int
    n_sources: int
    at_ms: int
    state: int


ACTIVE, IDLE, ENDED = range(3)

Element = Impression | Click | Frontier


class EventRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record of `events`: elements in the order in which they hold.

    `sequence` counts the records of each pair of source and partition of
    `events`, from 1, without a gap.
    """

    schema: int
    source: int
    sequence: int
    elements: list[Element]


class ClickMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A click inside an interaction, at a 1-based position."""

    position: int
    at_ms: int
    action: str


class Interaction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A closed impression with all its clicks, ordered by time, then position."""

    impression: Impression
    clicks: list[ClickMark]


class InteractionRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record of `interactions`.

    Interaction i has the sequence number `first_sequence + i`; numbers run
    1, 2, 3 ... without a gap for each pair of `source` (a partition of `events`)
    and partition of `interactions`.
    """

    schema: int
    source: int
    first_sequence: int
    interactions: list[Interaction]


encode_record = msgspec.msgpack.Encoder().encode
_decode_event_record = msgspec.msgpack.Decoder(EventRecord).decode
_decode_interaction_record = msgspec.msgpack.Decoder(InteractionRecord).decode
decode_items = msgspec.msgpack.Decoder(list[str]).decode
encode_event = msgspec.json.Encoder().encode


def decode_event_record(packed: bytes, where: str = "events") -> EventRecord:
    """A record of `events`; `where` it lies, for who must be told.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    msgspec.DecodeError
        Where it is no such record.
    """
    check_schema(packed, SCHEMA, "a record of events", where)
    return decoded(_decode_event_record, packed)


def decode_interaction_record(
    packed: bytes, where: str = "interactions"
) -> InteractionRecord:
    """A record of `interactions`; see `decode_event_record`."""
    check_schema(packed, SCHEMA, "a record of interactions", where)
    return decoded(_decode_interaction_record, packed)
