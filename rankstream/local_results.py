"""What `rankstream replay --local --out DIR` leaves in its folder, by name.

Loads nothing: readers of a file need no runtime.
"""

from pathlib import Path

STATISTICS_FILE = "statistics.bin"
"""What the topic `statistics` would hold."""

SNAPSHOTS_FILE = "snapshots.bin"
"""The last snapshot of each model."""


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
