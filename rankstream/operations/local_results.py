"""What `rankstream replay --local --out DIR` leaves in its folder, by name.

`rankstream train --out DIR` leaves the same, and what it takes to train again.

Loads nothing: readers of a file need no runtime.
"""

from pathlib import Path

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
