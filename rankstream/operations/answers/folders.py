"""What lies in the folders of `replay --local --out` and `train --out`, by name.

`rankstream train --out DIR` leaves what a replay does, and what it takes to train
again. A snapshot is a file with one envelope.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rankstream.wire.envelope import Snapshot, SnapshotError, decode_snapshot

STATISTICS_FILE = "statistics.bin"
"""What the topic `statistics` would hold."""

SNAPSHOTS_FILE = "snapshots.bin"
"""The last snapshot of each model."""

CANDIDATES_FILE = "candidates.bin"
"""What the topic `candidates` would hold: features."""

TRAINING_FILE = "training.bin"
"""Records of the topic `training`: the run, and the fit of the curve that it took."""

PARENTS_FILE = "parents.bin"
"""The snapshot that training went on from."""

MODEL_SETTINGS_FILE = "model.toml"
"""Settings of the model, for the role `train`."""

SNAPSHOT_ENDING = ".snapshot"
"""Of the file with one envelope, that services and `rankstream rank` read."""


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Write a file, or say why it cannot be written.

    Raises
    ------
    RuntimeError
    """
    try:
        yield
    except OSError as error:
        raise RuntimeError(
            f"{file} must be writable; {os.strerror(error.errno or errno.EIO)}"
        ) from error


def snapshot_file(folder: Path, intervention: str) -> Path:
    """Where the envelope of a version lies alone."""
    return folder / f"{intervention.replace('/', '_')}{SNAPSHOT_ENDING}"


def statistics_in(folder: Path) -> Path:
    """The statistics of a replay.

    Raises
    ------
    ValueError
        Where the folder has none.
    """
    file = folder / STATISTICS_FILE
    if not file.exists():
        raise ValueError(
            "--local must be a folder that `rankstream replay --local --out` wrote; "
            f"{file} is not there"
        )
    return file


def snapshot_in(path: Path, model: str | None = None) -> Snapshot:
    """The snapshot of a file, or of the only one in a folder.

    Parameters
    ----------
    model
        Whose it must be; None: anybody's.

    Raises
    ------
    ValueError
        Where there is none, or not one alone, or it is another model's.
    """
    file = _file_of(path)
    try:
        found = decode_snapshot(file.read_bytes())
    except OSError as error:
        raise ValueError(
            f"a snapshot must be readable; {error.strerror}; at {file}: name a file "
            f"*{SNAPSHOT_ENDING}, or the folder that `rankstream train --out` wrote"
        ) from error
    except SnapshotError as error:
        raise ValueError(
            f"a snapshot must be an envelope as `rankstream train` writes it; {error}; "
            f"at {file}: name a file *{SNAPSHOT_ENDING}, or its folder"
        ) from error
    if model is not None and found.model != model:
        raise ValueError(
            f"the snapshot must be one of {model!r}; {file} is of {found.model!r}: "
            f"name another file, or model {found.model!r}"
        )
    return found


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = sorted(path.glob(f"*{SNAPSHOT_ENDING}"))
    if len(files) == 1:
        return files[0]
    there = ", ".join(each.name for each in files) or (
        f"only {SNAPSHOTS_FILE}, of `replay --local`"
        if (path / SNAPSHOTS_FILE).exists()
        else "none"
    )
    raise ValueError(
        f"a folder must have one file *{SNAPSHOT_ENDING}, as `rankstream train --out` "
        f"writes it; {path} has {there}: name the file itself"
    )
