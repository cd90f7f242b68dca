"""Learning: interactions, in the order of their log, into model snapshots.

The version of a model is the number of interactions folded into it, so the bytes
of a version are a function of the log alone; which versions are published is not.
"""

import base64
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from models.learners.learner import TrainingExample
from models.learners.registry import Learner, learner_of
from rankstream.settings import ModelSettings, Settings, SettingsError
from rankstream.snapshots import Snapshot, encode_snapshot, features_hash
from rankstream.wire.arrays import n_items_of
from rankstream.wire.bounds import MODEL_BYTES
from rankstream.wire.events import (
    POLICIES,
    SCHEMA,
    Interaction,
    InteractionRecord,
    decode_interaction_record,
)
from rankstream.wire.routing import partition_of_model
from rankstream.wire.schemas import check_schema, decoded
from rankstream.wire.topics import SNAPSHOTS, state_topic
from streams.learning.absent_models import AbsentModels
from streams.stage import Change, LogRefused, Output, SourceRecord
from streams.state_pieces import Parts

STATE_TOPIC = state_topic("learn")

_encode = msgspec.msgpack.Encoder().encode


class InteractionsBroken(LogRefused):
    """A record of the interactions log is missing, repeated or unreadable.

    Operator action: something else wrote to `interactions`, or it was truncated;
    learn from its beginning in a new namespace.
    """


class ModelChanged(LogRefused):
    """A model's settings are not those that its versions were learned under.

    Operator action: restore them, or name the new model differently.
    """


class ModelFold:
    """One model: its learner, its version, and which of its versions are published."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        self.name = name
        self.version = 0
        self.created_ms = 0
        self.skipped = 0
        self.sources: dict[int, int] = {}
        self.published: deque[int] = deque()
        try:
            self.learner: Learner = learner_of(settings)
        except ValueError as error:
            raise SettingsError(f"models.{name}: {error}") from error
        self._settings = settings
        n_bytes = len(encode_snapshot(self.snapshot()))
        if n_bytes > MODEL_BYTES:
            # Weights alone are bounded by the settings' rules, before a worker starts.
            raise SettingsError(
                f"models.{name} must fit a record of {SNAPSHOTS}; a snapshot of it "
                f"takes {n_bytes} bytes: take fewer hidden units, or a shorter name"
            )

    def take(
        self, interactions: Sequence[Interaction], source: int, last_sequence: int
    ) -> None:
        """Fold interactions of a record; what the learner cannot use is skipped.

        Parameters
        ----------
        source, last_sequence
            The partition of `events` that they are from, and the number that the last
            one has there.
        """
        self.version += len(interactions)
        self.sources[source] = last_sequence
        self.created_ms = interactions[-1].impression.at_ms
        examples = [example for one in interactions if (example := self._example(one))]
        n_left_out = self.learner.learn_all(examples)
        self.skipped += len(interactions) - len(examples) + n_left_out

    def _example(self, interaction: Interaction) -> TrainingExample | None:
        """What the learner is shown of an interaction, None if it cannot use it."""
        impression = interaction.impression
        if (
            POLICIES[impression.policy] not in self.learner.policies
            or impression.n_features != self._settings.features
        ):
            return None
        try:
            return example_of(interaction)
        except (ValueError, OverflowError):
            # What was logged beside the list contradicts it.
            return None

    def snapshot(self) -> Snapshot:
        """The model as it is: a function of the log alone, whenever it is asked for."""
        return Snapshot(
            model=self.name,
            epoch=0,
            version=self.version,
            parent=max(0, self.version - 1),
            created_ms=self.created_ms,
            kind=self._settings.kind,
            hidden=self._settings.hidden,
            normalisation=self._settings.normalisation,
            n_features=self._settings.features,
            features_hash=features_hash(self._settings.features),
            sources=sorted(self.sources.items()),
            updates=self.learner.updates,
            weights=self.learner.weights().astype("<f4").tobytes(),
        )

    def state(self) -> list[Any]:
        """What `restore` takes."""
        return [
            self.version,
            self.created_ms,
            self.skipped,
            sorted(self.sources.items()),
            list(self.published),
            self._form(),
            self.learner.state(),
        ]

    def restore(self, state: list[Any]) -> None:
        """Take back a state.

        Raises
        ------
        ModelChanged
            Where the settings are not those that it was learned under.
        """
        self.version, self.created_ms, self.skipped, sources, *rest = state
        published, form, learner = rest
        if form != self._form():
            raise ModelChanged(
                f"models.{self.name} must stay as it was learned, as each version is a "
                f"function of the log and of these settings; it was {form}: restore "
                "them, or dump the log and replay it into another --namespace, where "
                "the new one folds it from its beginning under the same name"
            )
        self.sources = dict(sources)
        self.published = deque(published)
        self.learner.restore(learner)

    def _form(self) -> dict[str, Any]:
        form: dict[str, Any] = msgspec.to_builtins(self._settings)
        return form


class UnclaimedRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record of interactions where nobody learns from them."""

    schema: int
    source: int
    first_sequence: int
    interactions: msgspec.Raw

    def __len__(self) -> int:
        return n_items_of(bytes(memoryview(self.interactions)[:5]))


_decode_unclaimed = msgspec.msgpack.Decoder(UnclaimedRecord).decode


def decode_unclaimed(packed: bytes, where: str) -> UnclaimedRecord:
    """A record of `interactions` whose interactions stay as they are."""
    check_schema(packed, SCHEMA, "a record of interactions", where)
    return decoded(_decode_unclaimed, packed)


def example_of(interaction: Interaction) -> TrainingExample:
    """An interaction as learners read it.

    Raises
    ------
    ValueError
        Where what it logged beside the list contradicts the list.
    """
    impression = interaction.impression
    shown = np.frombuffer(impression.shown, "<u2").astype(np.int64)
    clicks = np.zeros(len(shown), np.bool_)
    for mark in interaction.clicks:
        clicks[mark.position - 1] = True
    example = TrainingExample(
        np.frombuffer(impression.scores, "<f4"),
        shown,
        clicks,
        _rows(impression.features, impression.n_features),
        impression.seed,
    )
    if not impression.extra:
        return example
    extra = msgspec.msgpack.decode(impression.extra)
    if "ranks" in extra:
        ranks = np.frombuffer(base64.b64decode(extra["ranks"]), "<u2")
        example = example._replace(ranks=ranks.reshape(len(shown), -1).astype(np.int64))
    if "assignments" in extra:
        example = example._replace(teams=np.array(extra["assignments"], np.int64))
    if "candidate_features" in extra:
        raw = base64.b64decode(extra["candidate_features"])
        example = example._replace(candidates=_rows(raw, impression.n_features))
    return example


def _rows(raw: bytes, n_features: int) -> npt.NDArray[np.float32]:
    return np.frombuffer(raw, "<f4").reshape(-1, n_features)


class Learn:
    """One partition of `interactions`: the models whose log it is."""

    def __init__(self, partition: int, settings: Settings) -> None:
        n_partitions = settings.kafka.learner_partitions
        self._keep = settings.redis.keep_versions
        self.models = {
            name: ModelFold(name, model)
            for name, model in sorted(settings.models.items())
            if partition_of_model(name, n_partitions) == partition
        }
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
        is_asked = self.models or self._absent
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
            name = interaction.impression.model
            by_model.setdefault(name, []).append(interaction)
            last[name] = sequence
        for name, interactions in by_model.items():
            model = self.models.get(name)
            if model is None:
                self._unclaimed += len(interactions)
                self._absent.miss(name, len(interactions))
            else:
                model.take(interactions, batch.source, last[name])
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
        if name not in self.models:
            self._absent.keep(name, version)
            return
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
        """Interactions folded, skipped, and belonging to no model."""
        models = self.models.values()
        return {
            "learned": sum(model.version for model in models),
            "learner_updates": sum(model.learner.updates for model in models),
            "learner_skipped": sum(model.skipped for model in models),
            "interactions_without_model": self._unclaimed,
        }


def _snapshot_key(model: str, version: int) -> bytes:
    return f"{model}/0.{version}".encode()
