"""Records of the topic `training`: what was trained from what, and what is asked for.

    key    MODEL/position      value  `Position`
           MODEL@EPOCH.VERSION/run    `RunRecord`
           MODEL@EPOCH.VERSION/curve  `rankstream.wire.models.curves.CurveRecord`
           MODEL/request              `Request`
           MODEL/status               `Status`
           MODEL/refusal              `Refusal`

Values are MessagePack arrays that begin with the schema. A run and the position after
it are written in the transaction of the snapshot, a refusal in that of its status;
requests and status stand alone.
"""

from typing import Annotated, Any, NamedTuple

import msgspec

from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.snapshot_names import Parent
from rankstream.wire.schemas import check_schema, decoded

SCHEMA = 1

KINDS = ("position", "run", "request", "status", "refusal", "curve")

COUNT, TIME, ASKED = "count", "time", "asked"
"""Why a model was trained: so much was counted, it was time, or somebody asked."""

TRAINING, DONE, REFUSED, LEFT_ALONE = "training", "done", "refused", "left alone"
"""What becomes of a model; see `Status`."""

LONGEST_ID = 64

_encode = msgspec.msgpack.Encoder().encode


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where the schedule of a model stands, after its last intervention.

    Attributes
    ----------
    n_done
        Interventions so far, those that were asked for too.
    counts
        Interactions that were counted then, by partition of `events`, sorted.
    watermark_ms
        The least watermark of all partitions then, of which one may have had none: then
        as it was before, and -1 before there is one.
    intervention
        The last one.
    request
        Id of the newest request that was done; empty before there is one.
    """

    schema: int
    n_done: int
    counts: list[tuple[int, int]]
    watermark_ms: int
    intervention: str
    request: str = ""

    @property
    def n_counted(self) -> int:
        """Interactions of all partitions."""
        return sum(n for _, n in self.counts)


class Request(msgspec.Struct, frozen=True, array_like=True):
    """Somebody asks for an intervention; `at_ms` is by the clock of who asks.

    `id` has 1 to `LONGEST_ID` characters: the empty one is that of nobody.
    """

    schema: int
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_ID)]
    at_ms: int


class Status(msgspec.Struct, frozen=True, array_like=True):
    """What is being done with a model, or why nothing is.

    Attributes
    ----------
    state
        `TRAINING`, `DONE`, `REFUSED` or `LEFT_ALONE`.
    said
        For people: progress, or the reason.
    at_ms
        By the clock of the trainer.
    request
        Id of the request that it is about; empty where the schedule began it.
    by
        The trainer: `delivery.instance_id`/worker, of which the latter is another one
        after each start of the worker.
    """

    schema: int
    state: str
    said: str
    at_ms: int
    request: str = ""
    by: str = ""


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """Why the last training that was refused was: it stays when the status goes on.

    Attributes
    ----------
    said
        In words.
    at_ms
        By the clock of the trainer.
    reason
        `COUNT`, `TIME` or `ASKED`: why it was begun.
    request
        Id of the request that it answers; empty where the schedule began it.
    after
        The last intervention before; empty where there was none.
    """

    schema: int
    said: str
    at_ms: int
    reason: str
    request: str = ""
    after: str = ""


class CurveUsed(msgspec.Struct, frozen=True, array_like=True):
    """The curve of bias that values were corrected by.

    Attributes
    ----------
    alpha, beta : [n_ranks]
        See `models.estimators.bias_curve`.
    is_ratio_only
        Whether both are in units of the first rank.
    source
        In words, what it is from.
    groups
        Whose clicks it was estimated from, ascending; empty where it was given.
    version
        A digest of `alpha`, `beta` and `is_ratio_only`.
    warning
        Ranks whose examination is not well known, and why, in words; empty where there
        are none, or where the curve was given.
    """

    alpha: list[float]
    beta: list[float]
    is_ratio_only: bool
    source: str
    groups: list[int]
    version: bytes
    warning: str = ""


class EndsUsed(msgspec.Struct, frozen=True, array_like=True):
    """Ends of the intervals of a curve's alpha, each by itself.

    Attributes
    ----------
    low, high : [n_ranks]
        NaN where there is none.
    confidence
        In (0, 1); None where it is not known.
    """

    low: list[float]
    high: list[float]
    confidence: float | None = None


class FeaturesUsed(msgspec.Struct, frozen=True, array_like=True):
    """Records of a partition of `candidates` that a training read, and their digest.

    Of each partition, since each was read up to a moment of its own.
    """

    partition: int
    n_records: int
    digest: bytes


class Sizes(msgspec.Struct, frozen=True, array_like=True):
    """How much a training learned from.

    Attributes
    ----------
    n_queries, n_held_out
        Queries it learned from, and those that told it where to stop.
    n_items
        Items of both, with features.
    n_below
        Of these: with less support than `least_support`, hence in no pair.
    share_below
        Of the clicks of the training groups: those on such items, in [0, 1].
    n_without_features
        Queries that were left out, as no features of their items are there.
    n_left_out
        Lists that were left out, as policies that logged beside them are unknown.
    n_clicks
        Clicks of the training groups on these items.
    """

    n_queries: int
    n_held_out: int
    n_items: int
    n_below: int
    share_below: float
    n_without_features: int
    n_left_out: int
    n_clicks: int


class LossTried(msgspec.Struct, frozen=True, array_like=True):
    """A loss, or a kind, that a training chose from, and how good its ranker is.

    Attributes
    ----------
    best_epoch
        The epoch that was taken.
    dcg, error
        Estimated DCG of held-out queries, and its standard error; None with fewer than
        two queries.
    behind, behind_error
        By how much that is less than the best one's, and the standard error of the
        difference.
    kind
        Where kinds were chosen from; else empty.
    """

    loss: str
    best_epoch: int
    dcg: float
    error: float | None
    behind: float
    behind_error: float | None
    kind: str = ""


class RunRecord(msgspec.Struct, frozen=True, array_like=True):
    """A training: all that its snapshot is a function of, and what came of it.

    Attributes
    ----------
    intervention
        The name of the snapshot, MODEL@EPOCH.VERSION.
    created_ms
        The least watermark of the statistics.
    reason
        `COUNT`, `TIME` or `ASKED`.
    counts
        Interactions that were counted, by partition of `events`, sorted.
    watermarks
        That of each partition, sorted; None before there is one.
    settings
        Those of the model, as `rankstream.configuration.former` records them.
    split_shares
        `statistics.split_shares`.
    groups
        Training groups.
    epochs
        Number, loss of training queries, estimated DCG of held-out queries. Epoch 0 is
        the parent.
    scale, temperature, least_exposure
        What weights were divided by, and the least exposure that came of it; see
        `models.training.exploration`.
    reward
        Estimated clicks per list, from groups that the snapshot has seen no click of;
        None with a reason.
    sha256
        Of the snapshot's envelope.
    request
        Id of the request that it answers; empty where the schedule began it.
    n_partitions
        Of `events` and `candidates` then: they say in which one a query is.
    loss
        By which it was trained.
    losses
        Those that it chose from, by their order in the settings, of each kind in turn;
        one that came to nothing is left out. None where one was set.
    estimator
        Of the values of items; a name of `models.estimators.registry`.
    online
        As that of `rankstream.wire.models.curves.CurveRecord`, where the training
        estimated its curve itself; else none.
    largest_loss, least_ratio
        How far it can fall behind its parent, whatever users like: see
        `models.training.largest_loss`. None in records of earlier releases, and the
        ratio where the parent shows nothing.
    step
        How far weights went from the parent's to what training gave, in [0, 1]: below 1
        where `training.largest_loss` held them back, and all above but `reward` and
        `least_exposure` is then of what training gave.
    n_beside, n_lists
        Lists of known policies that were taken as they were shown, as each is counted
        together with lists of unknown ones; and all lists of the sources. 0 of both
        where there are none, None in records of earlier releases.
    ends
        Of the curve's alpha; None where nobody says how well it is known, as of one
        that was given, and in records of earlier releases.
    lightgbm
        Its release, where trees may be grown; None in records of earlier releases too.
    """

    schema: int
    model: str
    intervention: str
    epoch: int
    version: int
    created_ms: int
    reason: str
    counts: list[tuple[int, int]]
    watermarks: list[tuple[int, int | None]]
    features: list[FeaturesUsed]
    settings: dict[str, Any]
    split_shares: list[float]
    seed: int
    parent: Parent
    curve: CurveUsed
    groups: list[int]
    sizes: Sizes
    epochs: list[tuple[int, float, float]]
    best_epoch: int
    scale: float
    temperature: float
    least_exposure: float
    reward: float | None
    reward_reason: str
    sha256: bytes
    request: str = ""
    n_partitions: int = 1
    loss: str = "truncated-lambda"
    losses: list[LossTried] = []
    estimator: str = "intervention-aware"
    online: list[str] = []
    largest_loss: float | None = None
    least_ratio: float | None = None
    step: float = 1.0
    n_beside: int | None = None
    n_lists: int | None = None
    ends: EndsUsed | None = None
    lightgbm: str | None = None


class TrainingKey(NamedTuple):
    """Kind and whose: the model, or of a run or a curve its intervention."""

    kind: str
    name: str


def training_key(kind: str, name: str) -> bytes:
    """The key of a record.

    Raises
    ------
    ValueError
        Where there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}; got {kind!r}")
    return f"{name}/{kind}".encode()


def decode_training_key(key: bytes) -> TrainingKey | None:
    """What `training_key` made; None of a key that a later release wrote."""
    name, _, kind = key.decode(errors="replace").rpartition("/")
    return TrainingKey(kind, name) if kind in KINDS else None


Record = Position | RunRecord | Request | Status | Refusal | CurveRecord

_FORMS = Position, RunRecord, Request, Status, Refusal, CurveRecord

_decoders = {
    kind: msgspec.msgpack.Decoder(form)
    for kind, form in zip(KINDS, _FORMS, strict=True)
}


def encode_record(record: Record) -> bytes:
    """The value of a record; equal records have equal bytes."""
    return _encode(record)


def decode_record(kind: str, value: bytes) -> Any:
    """What `encode_record` wrote, by the kind of its key.

    Raises
    ------
    SchemaRefused, msgspec.DecodeError
        Where another release wrote it, or something else.
    """
    check_schema(value, SCHEMA, f"a record ({kind}) of training", "training")
    return decoded(_decoders[kind].decode, value)
