"""A broker, a Redis and workers for one benchmark run, and the logs between them.

Everything lies in a folder that goes when the run ends.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.broker import Broker
from deploy.redis_server import Redis
from producers.brokers.topic_admin import TopicAdmin
from rankstream.lab.benchmarks.harness import own_python
from rankstream.settings import Settings, load_settings
from streams.kafka.processes.preloader import short_name
from streams.topology import topics_of


class BenchmarkFailed(RuntimeError):
    """A part of the run did not do what it must.

    Operator action: read the worker's log that the message shows.
    """


def say(text: str) -> None:
    """A line of progress, on standard error."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


class Bed:
    """The services, and what runs on them.

    Parameters
    ----------
    folder
        Where everything lies.
    is_quick
        Whether runs are short: then workers commit often, as each run needs several.
    """

    def __init__(self, folder: Path, *, is_quick: bool = False) -> None:
        self.folder = folder
        self._often = "commit_s = 0.1\n" if is_quick else ""
        self.broker = Broker(folder / "kafka")
        self.redis = Redis(folder / "redis")
        self._n_namespaces = 0

    def start(self) -> None:
        """Bring both up."""
        self.broker.start()
        self.redis.start()

    def stop(self) -> None:
        """Take both down."""
        self.broker.kill()
        self.redis.kill()

    def broker_pid(self) -> int:
        """Process id of the broker.

        Raises
        ------
        BenchmarkFailed
            Where it does not run.
        """
        if self.broker.pid is None:
            raise BenchmarkFailed("a broker must run; it does not")
        return self.broker.pid

    def settings(
        self, n_features: int, n_partitions: int = 4, *, more: str = ""
    ) -> Settings:
        """Settings of a namespace of its own, whose topics exist then.

        `more` are further sections of the file. Without features there is no model.
        """
        self._n_namespaces += 1
        path = self.folder / f"bench{self._n_namespaces}.toml"
        model = f"[models.model]\nfeatures = {n_features}\n" if n_features else ""
        path.write_text(
            f'namespace = "{path.stem}"\n'
            f'[kafka]\nbootstrap = "{self.broker.bootstrap}"\n'
            f"input_partitions = {n_partitions}\npartitions = {n_partitions}\n"
            f'[redis]\nurl = "{self.redis.url}"\n'
            # A member with a name of its own is back without a rebalance.
            f'[delivery]\ninstance_id = "bench"\n{self._often}'
            f"{model}{more}"
        )
        settings = load_settings(path, {})
        admin = TopicAdmin(settings, topics_of(settings.kafka))
        admin.create()
        admin.close()
        return settings

    def configuration(self, settings: Settings) -> Path:
        """The file that a worker reads."""
        return self.folder / f"{settings.namespace}.toml"

    @contextlib.contextmanager
    def worker(
        self, settings: Settings, *roles: str, instance: str = "bench"
    ) -> Iterator["Worker"]:
        """A worker, stopped gracefully at the end; each of several has its instance."""
        log = self.folder / f"{settings.namespace}.log"
        command = own_python("rankstream", "worker")
        command += ["--config", str(self.configuration(settings))]
        command += [word for role in roles for word in ("--role", role)]
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603  our own command
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"RANKSTREAM_DELIVERY__INSTANCE_ID": instance},
            )
        worker = Worker(process, log)
        try:
            yield worker
        finally:
            worker.stop()


class Worker:
    """A worker's process and its log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def lines(self) -> list[str]:
        """What it logged so far."""
        return self._log.read_text(errors="replace").splitlines()

    def check(self) -> None:
        """Raise where it has ended."""
        if self._process.poll() is not None:
            tail = "\n".join(self.lines()[-5:])
            raise BenchmarkFailed(f"a worker must run until it is stopped; {tail}")

    def child(self, role: str) -> int:
        """Process id of a role.

        Raises
        ------
        BenchmarkFailed
            Where it does not run.
        """
        for pid, name in self.processes():
            if name == short_name(role):
                return pid
        raise BenchmarkFailed(f"a worker must run {role}; it does not")

    def processes(self) -> Iterator[tuple[int, str]]:
        """Process id and name of the worker and of all below it."""
        below = [self._process.pid]
        for pid in below:
            # Each was started by a thread of its own, or forked by the preloader.
            tasks = Path(f"/proc/{pid}/task").glob("*/children")
            below += map(int, " ".join(file.read_text() for file in tasks).split())
            yield pid, Path(f"/proc/{pid}/comm").read_text().strip()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextlib.contextmanager
def running_bed(
    *, needs_services: bool = True, is_quick: bool = False
) -> Iterator[Bed]:
    """A bed for as long as the context lasts; without services just the folder."""
    folder = Path(tempfile.mkdtemp(prefix="rankstream-bench-"))
    bed = Bed(folder, is_quick=is_quick)
    try:
        if needs_services:
            bed.start()
            say(f"broker at {bed.broker.bootstrap}, Redis at {bed.redis.url}")
        yield bed
    finally:
        bed.stop()
        shutil.rmtree(folder, ignore_errors=True)
