"""A trained snapshot made again from a dump, beside the one that was published."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from producers.formats.canonical_dump import read_dump
from producers.topic_reader import read_records
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    SnapshotError,
    StoreUnavailable,
    decode_snapshot,
    pointer_from,
    pointer_of,
    store_of,
)
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from rankstream.wire.training import (
    RunRecord,
    decode_record,
    decode_training_key,
    sha256_of,
)
from streams.training.verification import verify


class Verdict(NamedTuple):
    """Whether a snapshot that was made again is the one that was published.

    Parameters
    ----------
    published, made
        Digests of the two envelopes.
    differences
        In words; empty where they are equal, or where only the digest of what was
        published is kept.
    """

    intervention: str
    published: bytes
    made: bytes
    differences: list[str]

    @property
    def is_equal(self) -> bool:
        """Whether each byte is."""
        return self.published == self.made


def told_of(verdict: Verdict, *, as_json: bool) -> str:
    """The verdict in words, or as JSON."""
    if as_json:
        return json.dumps(
            {
                "intervention": verdict.intervention,
                "is_equal": verdict.is_equal,
                "published": verdict.published.hex(),
                "made": verdict.made.hex(),
                "differences": verdict.differences,
            }
        )
    name = verdict.intervention
    if verdict.is_equal:
        return f"{name}: equal bytes, sha256 {verdict.made.hex()[:16]}"
    told = verdict.differences or ["the published one is kept nowhere: digests differ"]
    return "\n".join([f"{name}: NOT equal", *(f"  {each}" for each in told)])


def verdict_of(settings: Settings, model: str, version: str, dump: Path) -> Verdict:
    """Make a snapshot again, and compare it with the published one.

    Parameters
    ----------
    version
        EPOCH.VERSION, or with the model and @ before it.
    dump
        Of `events`, from its beginning.

    Raises
    ------
    ValueError
        Where no training made it.
    TopicUnreadable, VerificationRefused, TrainingRefused
    """
    history = _History(settings, model, dump)
    run = history.run_of(pointer_from(version.removeprefix(f"{model}@").encode()))
    made = history.made(run)
    published = history.kept(Pointer(run.epoch, run.version), run.sha256)
    differences = [] if published is None else _differences(published, made)
    return Verdict(run.intervention, run.sha256, sha256_of(made), differences)


class _History:
    """Runs of a model, and its versions as far as they are kept."""

    def __init__(self, settings: Settings, model: str, dump: Path) -> None:
        self._settings = settings
        self._model = model
        self._dump = dump
        self._runs: dict[Pointer, RunRecord] = {}
        for record in read_records(settings, TRAINING):
            found = decode_training_key(record.key or b"")
            if record.value and found and found.kind == "run":
                run: RunRecord = decode_record("run", record.value)
                if run.model == model:
                    self._runs[Pointer(run.epoch, run.version)] = run
        names = (model.encode(), f"{model}/".encode())
        self._envelopes: dict[Pointer, bytes] = {}
        for record in read_records(settings, SNAPSHOTS):
            if record.value and (record.key or b"").startswith(names):
                self._take(record.value)

    def _take(self, envelope: bytes) -> None:
        try:
            snapshot = decode_snapshot(envelope)
        except SnapshotError:
            return
        if snapshot.model == self._model:
            self._envelopes[pointer_of(snapshot)] = envelope

    def run_of(self, pointer: Pointer) -> RunRecord:
        """The training that made a version.

        Raises
        ------
        ValueError
        """
        run = self._runs.get(pointer)
        if run is None:
            known = ", ".join(map(str, sorted(self._runs))) or "none"
            raise ValueError(
                f"a version must be one that training made of {self._model!r}, "
                f"{known}; got {pointer}: `rankstream intervene --list` shows them"
            )
        return run

    def made(self, run: RunRecord) -> bytes:
        """The envelope of a run, made from the dump."""
        at = Pointer(run.parent.epoch, run.parent.version)
        parent = self.kept(at, run.parent.sha256)
        if parent is None:
            # No longer kept anywhere: the log has all that it came from.
            parent = self.made(self.run_of(at))
        return verify(
            self._settings,
            run,
            decode_snapshot(parent),
            lambda: read_dump(self._dump),
        )

    def kept(self, pointer: Pointer, sha256: bytes) -> bytes | None:
        """A version as the topic has it, or Redis; None where neither has."""
        found = self._envelopes.get(pointer)
        if found is None or sha256_of(found) != sha256:
            found = self._in_redis(pointer)
        return found if found is not None and sha256_of(found) == sha256 else None

    def _in_redis(self, pointer: Pointer) -> bytes | None:
        store = store_of(self._settings, retries=0)
        try:
            return store.load(self._model, pointer)
        except StoreUnavailable:
            return None
        finally:
            store.close()


def _differences(published: bytes, made: bytes) -> list[str]:
    if published == made:
        return []
    was, now = decode_snapshot(published), decode_snapshot(made)
    told = [
        f"{name} was {getattr(was, name)!r:.100}, is {getattr(now, name)!r:.100}"
        for name in was.__struct_fields__
        if name != "weights" and getattr(was, name) != getattr(now, name)
    ]
    if was.weights != now.weights:
        before, after = (np.frombuffer(x.weights, "<f4") for x in (was, now))
        if len(before) == len(after):
            largest = np.abs(before - after).max()
            told.append(f"weights differ by {largest:.3g} at most")
        else:
            told.append(f"weights were {len(before)}, are {len(after)}")
    return told
