"""What the topic `training` says, as `rankstream intervene` reads it."""

from typing import Any, NamedTuple

import msgspec

from producers.topic_reader import TopicReader
from rankstream.operations.commands.intervene_verify import MADE, run_from
from rankstream.wire.curves import CurveRecord
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import TRAINING
from rankstream.wire.training import (
    Position,
    Refusal,
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
)


class Heard(NamedTuple):
    """Where a record stands, and when the broker took it, by its own clock."""

    offset: int
    at_ms: int


class Trainings(NamedTuple):
    """Runs and fits by intervention, oldest first; all else by model, the last of each.

    Parameters
    ----------
    asked
        Ids of requests, oldest first, so far as they are kept.
    refused
        Refusals, oldest first, so far as they are kept.
    heard
        Of each status.
    """

    runs: dict[str, RunRecord | CurveRecord]
    statuses: dict[str, Status]
    positions: dict[str, Position]
    asked: dict[str, list[str]]
    refused: dict[str, list[Refusal]]
    heard: dict[str, Heard]

    def models(self) -> set[str]:
        """All that there is a word of."""
        named = {run.model for run in self.runs.values()}
        return named.union(*self[1:])


def read_trainings(reader: TopicReader) -> Trainings:
    """What the topic says; what cannot be read is passed over, but for runs.

    Raises
    ------
    SchemaRefused, ValueError
        Where a run is another release's, or something else wrote it.
    """
    found = Trainings({}, {}, {}, {}, {}, {})
    for record in reader.records(TRAINING):
        named = decode_training_key(record.key or b"")
        if named is None or record.value is None:
            continue
        kind, name = named
        if kind in MADE:
            found.runs[name] = run_from(name, record.value, kind)
            continue
        try:
            value: Any = decode_record(kind, record.value)
        except (SchemaRefused, msgspec.DecodeError):
            continue
        if kind == "status":
            found.statuses[name] = value
            found.heard[name] = Heard(record.offset, record.timestamp_ms)
        elif kind == "position":
            found.positions[name] = value
        elif kind == "request":
            found.asked.setdefault(name, []).append(value.id)
        else:
            found.refused.setdefault(name, []).append(value)
    return found
