"""What is known of an experiment: that it runs and how, or that it was removed.

The topic `experiments` has the last record of each by name. Redis has a copy: hashes by
name of the configurations that run, and of the last epochs of those that were removed.
So a name that neither hash has was lost, not removed.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from rankstream.settings import ExperimentSettings
from rankstream.wire.bounds import LARGEST
from rankstream.wire.schemas import decoded
from rankstream.wire.topics import EXPERIMENTS

SCHEMA = 1

RUNNING = "experiments"
"""Documents that clients follow."""

REMOVED = "removed-experiments"
"""Documents that say which epochs were used up by experiments that were removed."""

_to_json = msgspec.json.Encoder().encode


class Store(Protocol):
    """Where the copies lie: `rankstream.snapshots.SnapshotStore`."""

    def documents(self, kind: str) -> dict[str, bytes]:
        """All documents of a kind by name."""

    def put_documents(self, changes: Mapping[str, Mapping[str, bytes | None]]) -> None:
        """Write documents of several kinds at once; None removes one."""


class ExperimentRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An experiment in one epoch.

    Without settings it was removed, and the epoch is the last one that was used.
    """

    epoch: int
    settings: ExperimentSettings | None = None

    def is_before(self, other: "ExperimentRecord") -> bool:
        """Whether the other one came later: a removal ends its epoch."""
        return (self.epoch, self.settings is None) < (
            other.epoch,
            other.settings is None,
        )


class _Written(ExperimentRecord, frozen=True, kw_only=True):
    """As it stands in the topic."""

    schema: int


class Stored(NamedTuple):
    """What Redis holds, by name: records, and why others cannot be read."""

    records: dict[str, ExperimentRecord]
    refused: dict[str, str]


def running(settings: ExperimentSettings) -> ExperimentRecord:
    """The record of an experiment that runs."""
    return ExperimentRecord(settings.epoch, settings)


def encode_record(name: str, record: ExperimentRecord) -> bytes:
    """The value in the topic.

    Raises
    ------
    ValueError
        Where it is larger than a record may be.
    """
    value = _to_json(_Written(record.epoch, record.settings, schema=SCHEMA))
    size, most = len(name.encode()) + len(value), LARGEST[EXPERIMENTS]
    if size > most:
        raise ValueError(
            f"experiments.{name} must take at most {most:,} bytes as JSON, its name "
            f"included; got {size:,}: shorten its names and options"
        )
    return value


_decode = msgspec.json.Decoder(_Written).decode


def decode_record(value: bytes) -> ExperimentRecord:
    """The record in a value of the topic.

    Raises
    ------
    ValueError
        Where it is none, or one of another schema.
    """
    found = decoded(_decode, value)
    if found.schema != SCHEMA:
        raise ValueError(
            f"an experiment must have schema {SCHEMA}; got {found.schema}: use the "
            "release of rankstream that published it"
        )
    named = found.settings.epoch if found.settings else found.epoch
    if found.epoch < 1 or named != found.epoch:
        raise ValueError(
            f"an experiment must name its own epoch, from 1; got {found.epoch} for "
            f"settings of {named}"
        )
    return ExperimentRecord(found.epoch, found.settings)


def stored_records(store: Store) -> Stored:
    """All that Redis holds of experiments.

    Raises
    ------
    StoreUnavailable
        Where Redis does not answer.
    """
    # In this order: a removal between the two is seen, and its epoch with it.
    found, ended = store.documents(RUNNING), store.documents(REMOVED)
    records: dict[str, ExperimentRecord] = {}
    refused: dict[str, str] = {}
    for name in sorted({*found, *ended}):
        try:
            records[name] = _stored(found.get(name), ended.get(name))
        except ValueError as error:
            refused[name] = str(error)
    return Stored(records, refused)


def _stored(found: bytes | None, ended: bytes | None) -> ExperimentRecord:
    last = 0 if ended is None else msgspec.json.decode(ended, type=int)
    if found is None:
        return ExperimentRecord(last)
    settings = msgspec.json.decode(found, type=ExperimentSettings)
    return ExperimentRecord(last) if settings.epoch <= last else running(settings)


def put_records(store: Store, records: Mapping[str, ExperimentRecord]) -> None:
    """Bring records to clients, all at once.

    Raises
    ------
    StoreUnavailable
        Where Redis does not answer.
    """
    found: dict[str, bytes | None] = {}
    ended: dict[str, bytes | None] = {}
    for name, record in records.items():
        is_over = record.settings is None
        found[name] = None if is_over else _to_json(record.settings)
        ended[name] = _to_json(record.epoch) if is_over else None
    store.put_documents({RUNNING: found, REMOVED: ended})
