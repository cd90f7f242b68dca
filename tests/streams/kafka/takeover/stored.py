"""What a worker of before left on Kafka: the data folder of its broker, packed.

The folder is stored and not the records alone, as a resume position names offsets and
the id of its topic: here both are what they were, as are the markers of transactions
and the ids of their producers. Kafka 4.3 wrote it; a newer broker reads it too.
"""

import tarfile
from pathlib import Path

from deploy.broker import Broker

KILLED = Path(__file__).with_name("killed.tar.xz")
STOPPED = Path(__file__).with_name("stopped.tar.xz")
"""How the worker ended."""

KEPT_FOR_GOOD = """
log.retention.ms=-1
log.retention.check.interval.ms=9000000000
log.initial.task.delay.ms=2000000000
transactional.id.expiration.ms=2147483647
"""
"""Nothing in it is too old, however long ago it was written.

Some topics have a retention of their own: the second and third line see to it that
nobody looks while a test runs.
"""


def pack(folder: Path, archive: Path) -> None:
    """Pack the data of a broker that was stopped."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted((folder / "data").rglob("*")):
            packed.add(path, path.relative_to(folder), recursive=False, filter=_plain)


def stored_broker(folder: Path, archive: Path) -> Broker:
    """A broker with what was stored, not started yet."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return Broker(folder, more=KEPT_FOR_GOOD)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who packed it, and on which machine, is nobody's business."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
