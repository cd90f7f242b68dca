"""Where data sets lie: in `shared/data` beside the repository, or further up."""

from pathlib import Path


def folder_of(name: str) -> Path:
    """The folder of a data set; beside the repository where it is nowhere."""
    rooms = Path(__file__).resolve().parents[2:]
    found = (room / "shared" / "data" / name for room in rooms)
    beside = rooms[0] / "shared" / "data" / name
    return next((folder for folder in found if folder.exists()), beside)
