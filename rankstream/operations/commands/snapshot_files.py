"""Snapshots in files: one envelope each, or the folder of a training."""

from pathlib import Path

from rankstream.operations.local_results import SNAPSHOT_ENDING, SNAPSHOTS_FILE
from rankstream.wire.envelope import Snapshot, SnapshotError, decode_snapshot


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
            f"name another file, or say --model {found.model}"
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
