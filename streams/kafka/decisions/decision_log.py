"""The one writer of a rule of decisions: the role `decide`."""

from typing import NamedTuple

from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.decisions import Manifest, decode_key, decode_manifest
from rankstream.wire.topics import DECISIONS, SNAPSHOTS
from streams.kafka.deployment.fenced_log import FencedLog, WriterFenced
from streams.kafka.state.whole_topics import Check
from streams.training.model_records import ModelRecords


class DecisionRecords:
    """What the topic `decisions` says of one rule; the last of each key counts.

    Attributes
    ----------
    values
        Of decisions, by key; one that cannot be read is there too, and is replaced.
    manifest
        Of the newest rewrite; None before the first that can be read.
    """

    def __init__(self, name: str) -> None:
        self.values: dict[bytes, bytes] = {}
        self.manifest: Manifest | None = None
        self._name = name

    def take(self, key: bytes, value: bytes | None) -> None:
        """Take a record, in the order of the topic."""
        try:
            found = decode_key(key)
        except DecisionError:
            return
        if found.name != self._name:
            return
        if found.is_manifest:
            self._take_manifest(value)
        elif value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def _take_manifest(self, value: bytes | None) -> None:
        self.manifest = None
        if value is not None:
            try:
                self.manifest = decode_manifest(value)
            except DecisionError:
                # Its number is lost; that of a deployment is known too.
                return


class Read(NamedTuple):
    """What was read after the fence."""

    decisions: DecisionRecords
    models: ModelRecords


class DecisionLog(FencedLog):
    """The one writer of a rule, as long as nobody fences it."""

    role = "decide"
    topics = (DECISIONS, SNAPSHOTS)

    async def read(self, models: frozenset[str], check: Check) -> Read:
        """What `decisions` and `snapshots` say, all that was begun before decided.

        Parameters
        ----------
        models
            Whose snapshots are wanted, curves among them.
        check
            Is called before each batch, and may raise.
        """
        found = Read(DecisionRecords(self._name), ModelRecords(models))
        await self.read_topic(DECISIONS, found.decisions.take, check)
        await self.read_topic(SNAPSHOTS, found.models.take_snapshot, check)
        return found

    def _taken(self) -> WriterFenced:
        return WriterFenced(
            f"a rule of decisions must have one writer at a time; another one has "
            f"{self._name!r} now, and nothing of this one was written: `rankstream "
            f"decisions list {self._name}` tells what it did"
        )
