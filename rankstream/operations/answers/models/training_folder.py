"""The folder of a training: its snapshot, its records, and what it was made from."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rankstream.configuration.former import in_toml, model_of_record
from rankstream.operations.answers.folders import (
    CANDIDATES_FILE,
    MODEL_SETTINGS_FILE,
    PARENTS_FILE,
    SNAPSHOTS_FILE,
    STATISTICS_FILE,
    TRAINING_FILE,
    snapshot_file,
)
from rankstream.operations.answers.models.verification import (
    Verification,
    differences_of_envelopes,
    differences_of_runs,
    remark_on,
)
from rankstream.settings import ModelSettings
from rankstream.wire.envelope import Snapshot, decode_snapshot, encode_snapshot
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import (
    RunRecord,
    decode_record,
    decode_training_key,
    encode_record,
    training_key,
)
from rankstream.wire.topics import CANDIDATES, SNAPSHOTS, STATISTICS, TRAINING
from streams.local import read_changes, write_changes
from streams.stage import Change
from streams.training.progress import TrainingProgress
from streams.training.recorded_inputs import Recorded, TrainedOnce, trained_again


class Kept(NamedTuple):
    """What a folder has of a training.

    Parameters
    ----------
    run, fit
        Their records; no fit where no curve was fitted for it.
    recorded
        What it was trained from.
    parent
        What it went on from.
    envelopes
        Of the snapshots that it made, by the names of their models.
    """

    run: RunRecord
    fit: CurveRecord | None
    recorded: Recorded
    parent: Snapshot
    envelopes: dict[str, bytes]


def check_is_free(folder: Path) -> None:
    """Refuse a folder that has a training already.

    Raises
    ------
    ValueError
    """
    if (folder / TRAINING_FILE).exists():
        raise ValueError(
            f"--out must be a folder without a training; {folder} has one: name "
            f"another, or remove it"
        )


def write_training(
    folder: Path, trained: TrainedOnce, recorded: Recorded, parent: Snapshot
) -> Path:
    """Write all of it, the records last; returns the file of the snapshot.

    Raises
    ------
    RuntimeError
        Where the folder is not writable.
    """
    outcome, fitted = trained
    run, name = outcome.run, outcome.run.model
    snapshots = {name.encode(): encode_snapshot(outcome.snapshot)}
    records = {training_key("run", run.intervention): encode_record(run)}
    if fitted is not None:
        fit = fitted.run
        snapshots[fit.model.encode()] = encode_snapshot(fitted.snapshot)
        records[training_key("curve", fit.intervention)] = encode_record(fit)
    file = snapshot_file(folder, run.intervention)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / STATISTICS_FILE, STATISTICS, recorded.statistics)
        _write(folder / CANDIDATES_FILE, CANDIDATES, recorded.candidates)
        _write(folder / SNAPSHOTS_FILE, SNAPSHOTS, snapshots)
        parents = {name.encode(): encode_snapshot(parent)}
        _write(folder / PARENTS_FILE, SNAPSHOTS, parents)
        model = model_of_record(run.settings)
        (folder / MODEL_SETTINGS_FILE).write_text(section_of(name, model), "utf-8")
        file.write_bytes(snapshots[name.encode()])
        _write(folder / TRAINING_FILE, TRAINING, records)
    except OSError as error:
        raise RuntimeError(
            f"a folder must be writable; {error.strerror}; at {folder}"
        ) from error
    return file


def read_training(folder: Path) -> Kept:
    """What `write_training` wrote.

    Raises
    ------
    ValueError
        Where the folder has no training, or a file is missing or damaged.
    SchemaRefused
        Where another release wrote it.
    """
    found: dict[str, Any] = {}
    for key, value in _read(folder, TRAINING_FILE).items():
        named = decode_training_key(key)
        if named is not None:
            found[named.kind] = decode_record(named.kind, value)
    if "run" not in found:
        raise ValueError(
            "--verify must be a folder that `rankstream train --out` wrote; "
            f"{folder / TRAINING_FILE} has no run"
        )
    run: RunRecord = found["run"]
    parents = _read(folder, PARENTS_FILE)
    if run.model.encode() not in parents:
        raise ValueError(
            f"{folder / PARENTS_FILE} must have the parent of {run.intervention}; it "
            "has none: train again into another folder"
        )
    recorded = Recorded(_read(folder, STATISTICS_FILE), _read(folder, CANDIDATES_FILE))
    envelopes = {
        key.decode(): value for key, value in _read(folder, SNAPSHOTS_FILE).items()
    }
    # The file that is served is judged, and its copy among the snapshots.
    served = _content(snapshot_file(folder, run.intervention))
    both = served, envelopes.get(run.model, b"")
    wrong = (each for each in both if sha256_of(each) != run.sha256)
    envelopes[run.model] = next(wrong, served)
    parent = decode_snapshot(parents[run.model.encode()])
    return Kept(run, found.get("curve"), recorded, parent, envelopes)


def verified_training(
    kept: Kept,
    recorded: Recorded,
    *,
    on_progress: Callable[[TrainingProgress], object] = lambda _: None,
) -> list[Verification]:
    """Train again, and compare the curve, where one was fitted for it, and the ranker.

    Parameters
    ----------
    recorded
        What is trained from; that of the folder, or the same counted again.
    """
    again = trained_again(
        kept.run, kept.fit, recorded, kept.parent, on_progress=on_progress
    )
    run = again.outcome
    found = [_verification(kept, kept.run, run.run, run.snapshot)]
    if kept.fit is not None and again.fitted is not None:
        fitted = again.fitted
        found.insert(0, _verification(kept, kept.fit, fitted.run, fitted.snapshot))
    return found


def _verification(
    kept: Kept,
    written: RunRecord | CurveRecord,
    made: RunRecord | CurveRecord,
    snapshot: Snapshot,
) -> Verification:
    envelope, again = kept.envelopes.get(written.model, b""), encode_snapshot(snapshot)
    told = differences_of_envelopes(envelope, again)
    if not told and written.sha256 != sha256_of(again):
        told = ["the run has another digest than the snapshot, which is equal"]
    told += differences_of_runs(written, made)
    return Verification(
        written.intervention, sha256_of(envelope), sha256_of(again), told,
        remark=remark_on(written, made),
    )  # fmt: skip


def section_of(name: str, model: ModelSettings) -> str:
    """The settings of a model as a file has them; what is as by default is left out.

    Examples
    --------
    >>> print(section_of("search", ModelSettings(features=2, versions="trained")))
    [models.search]
    features = 2
    versions = "trained"
    <BLANKLINE>
    """
    default = msgspec.to_builtins(ModelSettings())
    fields = _changed(msgspec.to_builtins(model), default)
    if plan := _changed(fields.pop("training", {}), default["training"]):
        fields["training"] = plan
    return in_toml("models", name, fields)


def _changed(fields: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value != usual[key]}


def _write(file: Path, topic: str, values: Mapping[bytes, bytes | None]) -> None:
    write_changes(file, _changes(topic, values))


def _changes(topic: str, values: Mapping[bytes, bytes | None]) -> Iterator[Change]:
    for key, value in values.items():
        yield Change(topic, key, value)


def _read(folder: Path, name: str) -> dict[bytes, bytes]:
    return dict(read_changes(_there(folder / name)))


def _content(file: Path) -> bytes:
    return _there(file).read_bytes()


def _there(file: Path) -> Path:
    if not file.exists():
        raise ValueError(
            "a folder of a training must be whole, as `rankstream train --out` wrote "
            f"it; {file} is not there"
        )
    return file
