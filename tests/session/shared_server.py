"""One server for all processes of a run: the first that needs it starts it.

It is a child of that process, so it ends with it whatever happens; and that process
waits at its end until the others need no server any more.
"""

import contextlib
import fcntl
import tempfile
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
        with _locked(folder / "lock"):
            if not port.exists():
                server = make(Path(tempfile.mkdtemp(prefix="server-", dir=folder)))
                server.start()
                port.write_text(str(server.port))
            found = int(port.read_text())
            fcntl.flock(used, fcntl.LOCK_SH)
        try:
            yield found
        finally:
            if server is not None:
                # Who asks from now on waits, and then starts one of its own.
                with _locked(folder / "lock"):
                    fcntl.flock(used, fcntl.LOCK_EX)
                    port.unlink()
                    server.kill()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
