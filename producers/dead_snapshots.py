"""Records of `snapshots` that nobody can serve: which they are, and their repair.

What nobody can serve is passed over by publishers and counted, so that nothing stands
still. But under its key each such record has replaced what was there, such as a
rollback or the last training, and compaction will take that away. So where the topic
still has the record before, it is written again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from producers.event_producer import send_records
from producers.topic_reader import Record, TopicReader
from rankstream.settings import Settings
from rankstream.wire.envelope import LARGEST_NUMBER, Pointer, SnapshotError, pointer_of
from rankstream.wire.models.canaries import model_of_canary
from rankstream.wire.models.changes import change_key
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.models.snapshot_names import decode_record
from rankstream.wire.topics import SNAPSHOTS

OTHERS_REASONS = frozenset({"schema", "shape"})
"""Of what a later release may have written: it is told of, and left as it is."""

LEAST_ROOM = 1_000_000
"""Versions that must be possible after one, for somebody to have made it."""


class DeadRecord(NamedTuple):
    """The last record of its key, where nobody can serve it.

    Parameters
    ----------
    reason, why
        Of the refusal; see `SnapshotError`.
    before
        The last record of the key that is a good one, where the topic still has it.
    before_at
        Its version.
    """

    key: bytes
    offset: int
    size: int
    reason: str
    why: str
    before: bytes | None = None
    before_at: Pointer | None = None

    @property
    def is_ours(self) -> bool:
        """Whether no release would serve it, as far as this one knows."""
        return self.reason not in OTHERS_REASONS

    @property
    def remedy(self) -> str:
        """What repairing it does."""
        if not self.is_ours:
            return "left: a later release may have written it"
        return f"back to {self.before_at}" if self.before_at else "removed"


def dead_among(records: Iterable[Record], model: str = "") -> list[DeadRecord]:
    """Those among all records of the topic, in the order of their offsets.

    Parameters
    ----------
    model
        Only those whose key is of this model.
    """
    dead: dict[bytes, DeadRecord] = {}
    good: dict[bytes, tuple[bytes, Pointer]] = {}
    for record in records:
        key, value = record.key, record.value
        if key is None or not _is_of(key, model):
            continue
        dead.pop(key, None)
        if value is None:
            good.pop(key, None)
            continue
        if is_deployment(key, value) or change_key(key, value):
            continue
        if model_of_canary(key, value) is not None:
            # One that is damaged is none, and ends as a good one does.
            continue
        try:
            place = pointer_of(decode_record(key, value))
            if max(place) > LARGEST_NUMBER - LEAST_ROOM:
                raise SnapshotError(
                    "pointer",
                    f"after a version there must be room for others; got {place}",
                )
            good[key] = value, place
        except SnapshotError as error:
            before = good.get(key, (None, None))
            dead[key] = DeadRecord(
                key, record.offset, len(value), error.reason, str(error), *before
            )
    return sorted(dead.values(), key=lambda each: each.offset)


def dead_records(settings: Settings, model: str = "") -> list[DeadRecord]:
    """Those of the topic; see `dead_among`.

    Raises
    ------
    TopicUnreadable
    """
    with TopicReader(settings) as reader:
        return dead_among(reader.records(SNAPSHOTS), model)


def repair(settings: Settings, told: Iterable[DeadRecord]) -> list[DeadRecord]:
    """Take away what was told of, and is still there; returns what was.

    Raises
    ------
    TopicUnreadable, SendFailed
    """
    wanted = {each for each in told if each.is_ours}
    # Somebody may have published under a key since it was told of.
    still = [each for each in dead_records(settings) if each in wanted]
    send_records(settings, SNAPSHOTS, [(each.key, each.before) for each in still])
    return still


def _is_of(key: bytes, model: str) -> bool:
    return not model or model.encode() in (key, key.rpartition(b"/")[0])
