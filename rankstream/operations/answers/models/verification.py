"""Whether a snapshot that is made again is the one that was published."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from producers.formats.canonical_dump import read_dump
from producers.topic_reader import read_records
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.models.trainings import MADE, run_from
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotError,
    StoreUnavailable,
    decode_snapshot,
    encode_snapshot,
    pointer_from,
    pointer_of,
    store_of,
)
from rankstream.wire.envelope import CURVE, is_pointer
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.snapshot_names import Parent, sha256_of
from rankstream.wire.models.training import RunRecord, decode_training_key
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from streams.training.curves.curve_snapshot import CurveOutcome
from streams.training.trained_snapshot import Outcome
from streams.training.verification import curve_made_again, made_again

_encode = msgspec.msgpack.Encoder().encode

SINCE = ("largest_loss", "least_ratio", "n_beside", "n_lists", "ends")
"""What a run of an earlier release does not say: None, which is compared with nothing.
"""

NOT_KEPT = "neither `snapshots` nor Redis has it: the digest in its run was compared"


@dataclass(frozen=True)
class Verification(Answer):
    """Whether a snapshot that was made again is the one that was published.

    Parameters
    ----------
    published, made
        Digests of the two envelopes.
    differences
        In words; empty where they are equal, or where only the digest of what was
        published is kept.
    is_kept
        Whether what was published is; else `published` is what the run says of it.
    remark
        What else may make a difference, in words; empty where nothing is known to.
    """

    intervention: str
    published: bytes
    made: bytes
    differences: list[str]
    is_kept: bool = True
    remark: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether each byte is, and the run says what came of it."""
        return self.published == self.made and not self.differences

    def to_dict(self) -> dict[str, Any]:
        """It for JSON."""
        return {
            "intervention": self.intervention,
            "is_equal": self.is_equal,
            "published": self.published.hex(),
            "made": self.made.hex(),
            "is_kept": self.is_kept,
            "differences": self.differences,
            "remark": self.remark,
        }

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        digests = {"published": bytes, "made": bytes}
        return {
            "intervention": str,
            "is_equal": bool,
            **digests,
            "is_kept": bool,
            "differences": list[str],
            "remark": str,
        }

    def told(self) -> str:
        """It in words, a line for each difference."""
        name = self.intervention
        if self.is_equal:
            equal = f"{name}: equal bytes, sha256 {self.made.hex()[:16]}"
            remarks = "" if self.is_kept else NOT_KEPT, self.remark
            return "; ".join([equal, *filter(None, remarks)])
        told = [*(self.differences or [NOT_KEPT]), *filter(None, [self.remark])]
        return "\n".join([f"{name}: NOT equal", *(f"  {each}" for each in told)])


def verified(settings: Settings, model: str, version: str, dump: Path) -> Verification:
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
    again = history.made(run)
    made = encode_snapshot(again.snapshot)
    digest = sha256_of(made)
    remark = remark_on(run, again.run)
    kept = history.envelopes(Pointer(run.epoch, run.version))
    for place, envelope in kept.items():
        if envelope != made:
            told = [
                f"{place}: {each}" for each in differences_of_envelopes(envelope, made)
            ]
            return Verification(
                run.intervention, sha256_of(envelope), digest, told, remark=remark
            )
    differences = []
    if kept and run.sha256 != digest:
        differences = ["the run has another digest than what is kept, which is equal"]
    differences += differences_of_runs(run, again.run)
    return Verification(
        run.intervention, run.sha256, digest, differences, bool(kept), remark
    )


def remark_on(written: RunRecord | CurveRecord, made: RunRecord | CurveRecord) -> str:
    """That another release of LightGBM grew the trees, as its trees may differ."""
    was, now = (getattr(each, "lightgbm", None) for each in (written, made))
    if was is None or now is None or was == now:
        return ""
    return f"trees were grown by LightGBM {was}, and are by {now} here"


def differences_of_runs(
    written: RunRecord | CurveRecord, made: RunRecord | CurveRecord
) -> list[str]:
    """What a record says that its training did not; who asked is in no log."""
    return [
        f"{name} of the run was {getattr(written, name)!r:.100}, is "
        f"{getattr(made, name)!r:.100}"
        for name in written.__struct_fields__
        if name not in ("request", "settings", "sha256", "lightgbm")
        and not (name in SINCE and getattr(written, name) is None)
        # As bytes: a number that is not known equals nothing, itself included.
        and _encode(getattr(written, name)) != _encode(getattr(made, name))
    ]


def differences_of_envelopes(published: bytes, made: bytes) -> list[str]:
    """In what two envelopes differ, in words; nothing where their bytes are equal."""
    if published == made:
        return []
    try:
        was, now = decode_snapshot(published), decode_snapshot(made)
    except SnapshotError as error:
        return [f"it cannot be read: {error}"]
    told = [
        f"{name} was {getattr(was, name)!r:.100}, is {getattr(now, name)!r:.100}"
        for name in was.__struct_fields__
        if name != "weights" and getattr(was, name) != getattr(now, name)
    ]
    if was.weights != now.weights:
        form = "<f8" if now.kind == CURVE else "<f4"
        before, after = (np.frombuffer(x.weights, form) for x in (was, now))
        if len(before) == len(after):
            largest = np.nanmax(np.abs(before - after), initial=0.0)
            told.append(f"weights differ by {largest:.3g} at most")
        else:
            told.append(f"weights were {len(before)}, are {len(after)}")
    return told or ["the same snapshot in other bytes"]


class _History:
    """Runs of a model, and its versions as far as they are kept."""

    def __init__(self, settings: Settings, model: str, dump: Path) -> None:
        self._settings = settings
        self._model = model
        self._dump = dump
        self._runs: dict[Pointer, RunRecord | CurveRecord] = {}
        for record in read_records(settings, TRAINING):
            found = decode_training_key(record.key or b"")
            if record.value and found and found.kind in MADE:
                run = run_from(found.name, record.value, found.kind)
                if run.model == model:
                    self._runs[Pointer(run.epoch, run.version)] = run
        self._envelopes: dict[Pointer, dict[str, bytes]] = {}
        for record in read_records(settings, SNAPSHOTS):
            if record.value:
                self._take((record.key or b"").decode(errors="replace"), record.value)

    def _take(self, key: str, envelope: bytes) -> None:
        """Keep an envelope of the model, under each key the last of each version."""
        name, _, version = key.rpartition("/")
        own = is_pointer(version.encode()) if name == self._model else None
        if own is not None:
            pointer = Pointer(int(own[1]), int(own[2]))
        elif key == self._model:
            try:
                pointer = pointer_of(decode_snapshot(envelope))
            except SnapshotError:
                # Of no version, and nobody serves it.
                return
        else:
            return
        place = f"the record {key!r} of {SNAPSHOTS}"
        self._envelopes.setdefault(pointer, {})[place] = envelope

    def run_of(self, pointer: Pointer) -> RunRecord | CurveRecord:
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

    def made(self, run: RunRecord | CurveRecord) -> Outcome | CurveOutcome:
        """A run's snapshot and record, made from the dump."""
        if isinstance(run, CurveRecord):
            before = None if run.parent is None else self._parent(run.parent)
            return curve_made_again(self._settings, run, before, self._events)
        return made_again(self._settings, run, self._parent(run.parent), self._events)

    def _events(self) -> Iterator[tuple[int, bytes]]:
        return read_dump(self._dump)

    def _parent(self, parent: Parent) -> Snapshot:
        at = Pointer(parent.epoch, parent.version)
        kept = self.kept(at, parent.sha256)
        if kept is not None:
            return decode_snapshot(kept)
        # No longer kept anywhere: the log has all that it came from.
        return self.made(self.run_of(at)).snapshot

    def kept(self, pointer: Pointer, sha256: bytes) -> bytes | None:
        """A version with this digest, of the topic or Redis; None where neither has."""
        known = self.envelopes(pointer).values()
        return next((each for each in known if sha256_of(each) == sha256), None)

    def envelopes(self, pointer: Pointer) -> dict[str, bytes]:
        """What is kept of a version, whatever it is, by where."""
        found = dict(self._envelopes.get(pointer, {}))
        in_redis = self._in_redis(pointer)
        return found if in_redis is None else found | {"Redis": in_redis}

    def _in_redis(self, pointer: Pointer) -> bytes | None:
        store = store_of(self._settings, retries=0)
        try:
            return store.load(self._model, pointer)
        except StoreUnavailable:
            return None
        finally:
            store.close()
