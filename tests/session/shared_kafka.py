"""One broker for all processes of a run: the first that needs it starts it.

It is a child of that process, so it ends with it whatever happens; and that process
waits at its end until the others need no broker any more.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from deploy.broker import Broker


@contextlib.contextmanager
def shared_broker(folder: Path) -> Iterator[str]:
    """Where the broker listens, for as long as the context lasts.

    Parameters
    ----------
    folder
        Common to the processes of the run, and of this run alone.

    Raises
    ------
    ServerFailed
        Where there is no Java or there are no jars.
    """
    address, broker = folder / "kafka-address", None
    with (folder / "kafka-used").open("w") as used:
        with (folder / "kafka-lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not address.exists():
                broker = Broker(folder / "kafka")
                broker.start()
                address.write_text(broker.bootstrap)
            fcntl.flock(used, fcntl.LOCK_SH)
        try:
            yield address.read_text()
        finally:
            if broker is not None:
                fcntl.flock(used, fcntl.LOCK_EX)
                broker.kill()
