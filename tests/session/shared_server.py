"""One server for all processes of a run: the first that needs it starts it.

It is a child of that process, so it ends with it whatever happens; and that process
waits at its end until the others need no server any more.
"""

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy.local_server import LocalServer


@contextlib.contextmanager
def shared_port(folder: Path, make: Callable[[Path], LocalServer]) -> Iterator[int]:
    """Where the server listens, for as long as the context lasts.

    Parameters
    ----------
    folder
        Common to the processes of the run, and of this run and kind of server alone.
    make
        The server, with its data in a folder.

    Raises
    ------
    ServerFailed
        Where it does not start.
    """
    folder.mkdir(exist_ok=True)
    port, server = folder / "port", None
    with (folder / "used").open("w") as used:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not port.exists():
                server = make(folder / "server")
                server.start()
                port.write_text(str(server.port))
            fcntl.flock(used, fcntl.LOCK_SH)
        try:
            yield int(port.read_text())
        finally:
            if server is not None:
                fcntl.flock(used, fcntl.LOCK_EX)
                server.kill()
