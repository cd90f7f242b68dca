"""Disks that are full for a server or a worker, and have room again when asked.

`Mounted` is a small file system of its own, which root may mount. `Limited` lets a
process write to no file any more, which everybody may do to a process of theirs.
"""

import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Protocol

MOUNT_MB = 96
CHUNK = bytes(1 << 16)


class SmallDisk(Protocol):
    """A disk, and the folder where it is."""

    folder: Path

    def fill(self, pid: int) -> None:
        """Leave no room for a process."""

    def free(self) -> None:
        """Give the room back, to what starts from now on."""

    def close(self) -> None:
        """Take the disk away."""


class Limited:
    """Any write of the process fails with EFBIG."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, pid: int) -> None:
        """Limit the process, which must be ours."""
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, most))

    def free(self) -> None:
        """Nothing: another process has no such limit."""

    def close(self) -> None:
        """Nothing: the folder is an ordinary one."""


class Mounted:
    """A file system in memory; a write fails with ENOSPC."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mount(folder)

    def fill(self, pid: int) -> None:  # noqa: ARG002  whoever it is
        """Write until there is no room."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(CHUNK):
                    pass
            except OSError:
                return

    def free(self) -> None:
        """Delete what was written."""
        (self.folder / "filler").unlink()

    def close(self) -> None:
        """Take the mount away."""
        unmount(self.folder)


def mount(folder: Path) -> None:
    """Mount a small file system in memory.

    Raises
    ------
    OSError
        Where that is not permitted.
    """
    options = ["-t", "tmpfs", "-o", f"size={MOUNT_MB}m"]
    _ran("mount", *options, "tmpfs", str(folder))


def unmount(folder: Path) -> None:
    """Take a mount away, also while somebody still has a file there."""
    _ran("umount", "--lazy", str(folder))


def _ran(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip())


def may_mount() -> bool:
    """Whether this user may mount a file system here."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            mount(Path(folder))
        except OSError:  # not root, or in a container that may not
            return False
        unmount(Path(folder))
        return True
