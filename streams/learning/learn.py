"""Learning: interactions, in the order of their log, into model snapshots.

The version of a model is the number of interactions folded into it, so the bytes
of a version are a function of the log alone; which versions are published is not.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from rankstream.configuration.models import ONLINE
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.envelope import encode_snapshot
from rankstream.wire.events import (
    SCHEMA,
    Interaction,
    InteractionRecord,
    decode_interaction_record,
)
from rankstream.wire.routing import partition_of_model
from rankstream.wire.schemas import check_schema, decoded
from rankstream.wire.topics import SNAPSHOTS, state_topic
from streams.learning.absent_models import AbsentModels
from streams.learning.model_fold import ModelChanged, ModelFold, sources_in
from streams.stage import Change, LogRefused, Output, SourceRecord
from streams.state_pieces import Parts

STATE_TOPIC = state_topic("learn")

_encode = msgspec.msgpack.Encoder().encode


class InteractionsBroken(LogRefused):
    """A record of the interactions log is missing, repeated or unreadable.

    Operator action: something else wrote to `interactions`, or it was truncated;
    learn from its beginning in a new namespace.
    """


class UnclaimedRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record of interactions where nobody learns from them."""

    schema: int
    source: int
    first_sequence: int
    interactions: msgspec.Raw

    def __len__(self) -> int:
        return _n_items_of(bytes(memoryview(self.interactions)[:5]))


_decode_unclaimed = msgspec.msgpack.Decoder(UnclaimedRecord).decode


def decode_unclaimed(packed: bytes, where: str) -> UnclaimedRecord:
    """A record of `interactions` whose interactions stay as they are."""
    check_schema(packed, SCHEMA, "a record of interactions", where)
    return decoded(_decode_unclaimed, packed)


class Learn:
    """One partition of `interactions`: the models whose log it is."""

    def __init__(self, partition: int, settings: Settings) -> None:
        n_partitions = settings.kafka.learner_partitions
        self._keep = settings.redis.keep_versions
        self.models = {
            name: ModelFold(name, model, settings.statistics.groups)
            for name, model in sorted(settings.models.items())
            if partition_of_model(_home_of(name, model), n_partitions) == partition
        }
        self._online = settings.online.keys()
        self._elsewhere = settings.models.keys() - self.models.keys()
        self._takers: dict[str, list[str]] = {}
        for name in self.models:
            if name in self._online:
                for source in settings.models[name].sources_of(name):
                    self._takers.setdefault(source, []).append(name)
        self._partition = partition
        self._absent = AbsentModels()
        self._decode = self._decoder()
        self._moved = set(self.models)
        self._changed = set(self.models)
        self._new: set[str] = set()
        self._sequences: dict[int, int] = {}
        self._unclaimed = 0
        self._parts = Parts()

    def _decoder(self) -> Callable[[bytes, str], InteractionRecord | UnclaimedRecord]:
        """Interactions stay as they are where nobody asks whose they are."""
        is_asked = self._absent or self._takers
        return decode_interaction_record if is_asked else decode_unclaimed

    def fold(self, record: SourceRecord) -> None:
        """Take a record of interactions.

        Raises
        ------
        InteractionsBroken
            Where the log itself is not whole; no event can cause that.
        SchemaRefused
            Where another release wrote it.
        """
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        try:
            batch = self._decode(record.value or b"", where)
        except msgspec.DecodeError as error:
            raise InteractionsBroken(
                f"a record of interactions must be readable; {error}, at {where}"
            ) from error
        expected = self._sequences.get(batch.source, 0) + 1
        if batch.first_sequence != expected:
            raise InteractionsBroken(
                f"interactions of a source must follow each other; got "
                f"{batch.first_sequence} after {expected - 1} of source "
                f"{batch.source}, at {where}"
            )
        if isinstance(batch, UnclaimedRecord):
            self._sequences[batch.source] = expected - 1 + len(batch)
            self._unclaimed += len(batch)
            return
        self._sequences[batch.source] = expected - 1 + len(batch.interactions)
        self._take(batch, expected)

    def _take(self, batch: InteractionRecord, first: int) -> None:
        """Each model its own, all at once: models know nothing of each other."""
        by_model: dict[str, list[Interaction]] = {}
        last: dict[str, int] = {}
        for sequence, interaction in enumerate(batch.interactions, first):
            shown_by = interaction.impression.model
            takers = self._takers.get(shown_by, ())
            self._unclaimed += not takers
            self._absent.miss(shown_by, 1)
            for name in takers:
                by_model.setdefault(name, []).append(interaction)
                last[name] = sequence
        for name, interactions in by_model.items():
            self.models[name].take(interactions, batch.source, last[name])
            self._moved.add(name)

    def tick(self, *, at_end_ms: int) -> None:
        """A pure fold hears nothing but its log."""

    def settle(self) -> None:
        """Nothing is pending here."""

    def outputs(self) -> list[Output]:
        """A snapshot of every model that moved; tombstones beyond the last kept."""
        written: list[Output] = []
        for name in sorted(self._moved):
            model = self.models[name]
            value = encode_snapshot(model.snapshot())
            model.published.append(model.version)
            written.append(
                Output(SNAPSHOTS, 0, _snapshot_key(name, model.version), value)
            )
            while len(model.published) > self._keep:
                key = _snapshot_key(name, model.published.popleft())
                written.append(Output(SNAPSHOTS, 0, key, None))
        self._changed |= self._moved
        self._moved.clear()
        self._new.clear()
        return written

    def changes(self) -> Iterable[Change]:
        """The state of every model that moved, and the sequence numbers, in parts."""
        for name in sorted(self._changed):
            state = _encode([SCHEMA, self.models[name].state()])
            for key, value in self._parts.split(b"model/" + name.encode(), state):
                yield Change(STATE_TOPIC, key, value)
        self._changed.clear()
        numbers = [SCHEMA, sorted(self._sequences.items()), self._unclaimed]
        if missed := self._absent.state():
            numbers.append(missed)
        for key, value in self._parts.split(b"sequences", _encode(numbers)):
            yield Change(STATE_TOPIC, key, value)

    def restore(self, items: Iterable[Change]) -> None:
        """Take back a state; models that it does not know begin at version 0.

        Models that only the state knows are remembered, in case they come back.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        ModelMissed
            Where a model is back that missed interactions.
        ModelChanged
            Where a model has other settings than it was learned under.
        """
        latest = {
            key: value
            for topic, key, value in items
            if topic == STATE_TOPIC and value is not None
        }
        self._new = set(self.models)
        for key, value in sorted(self._parts.joined(latest).items(), reverse=True):
            where = f"{STATE_TOPIC}[{self._partition}], key {key.decode()!r}"
            check_schema(value, SCHEMA, "the state of a learner", where)
            state = msgspec.msgpack.decode(value)
            if key == b"sequences":  # before any key of a model
                self._sequences, self._unclaimed = dict(state[1]), state[2]
                self._absent.restore(state[3] if len(state) > 3 else ())
            else:
                self._restore_model(key.removeprefix(b"model/").decode(), state[1])
        self._decode = self._decoder()

    def _restore_model(self, name: str, state: list[Any]) -> None:
        version = state[0]
        if name in self._elsewhere:
            # Its lists were in this partition, and by its settings are in another.
            raise ModelChanged(
                f"models.{name} must learn from the lists that it was learned from, "
                f"{sources_in(state, name)}; by learns_from and learner they are "
                "others: restore them, or name the new model differently"
            )
        if name not in self.models:
            self._absent.keep(name, version, sources_in(state, name))
            return
        if name in self._online:
            self._absent.check(name, version)
        self.models[name].restore(state)
        for pending in (self._moved, self._changed, self._new):
            pending.discard(name)

    def fingerprint(self) -> bytes:
        """A digest of versions and sequence numbers.

        Of models that have a state, whatever the settings say: one that is added is in
        it from its first output on, and one that is taken out stays.
        """
        versions = self._absent.versions() | {
            name: model.version
            for name, model in self.models.items()
            if name not in self._new
        }
        parts = [sorted(versions.items()), sorted(self._sequences.items())]
        return hashlib.blake2b(_encode(parts), digest_size=16).digest()

    def counters(self) -> dict[str, int]:
        """Interactions folded, skipped, and of no model that learns online."""
        models = self.models.values()
        return {
            "learned": sum(model.version for model in models),
            "learner_updates": sum(model.learner.updates for model in models),
            "learner_skipped": sum(model.skipped for model in models),
            "interactions_without_model": self._unclaimed,
        }


def _home_of(name: str, model: ModelSettings) -> str:
    """The model whose partition of `interactions` has what this one learns from."""
    return model.sources_of(name)[0] if model.versions == ONLINE else name


def _snapshot_key(model: str, version: int) -> bytes:
    return f"{model}/0.{version}".encode()


def _n_items_of(array: bytes) -> int:
    """The length of a MessagePack array, from its first five bytes."""
    first = array[0]
    if first & 0xF0 == 0x90:
        return first & 0x0F
    return int.from_bytes(array[1:3] if first == 0xDC else array[1:5], "big")
