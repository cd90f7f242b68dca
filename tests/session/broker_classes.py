"""The broker's classes as one file that Java maps: each start computes half as much.

    python -m tests.session.broker_classes

writes it beside the jars, where it is not. A Java or jars that it is not of pass it
over.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from deploy.broker import Broker, cache_folder, jars
from deploy.process import ServerFailed

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Brokers of tests live for minutes, with few cores: what the second compiler and
parallel collections would make of them costs more than it saves."""

VARIABLE = "JDK_JAVA_OPTIONS"


def archive() -> Path:
    """Where it lies: it goes with the jars."""
    return cache_folder() / "libs" / "classes.jsa"


def java_options() -> str:
    """What the Java of a test's broker is to be told."""
    kept = archive()
    return (
        f"{SHORT_LIVED} -XX:SharedArchiveFile={kept}" if kept.exists() else SHORT_LIVED
    )


def write() -> None:
    """From a broker that starts, and ends in order.

    Raises
    ------
    ServerFailed
        Where there is no Java, no jars can be had, or the broker does not start.
    """
    jars()
    with tempfile.TemporaryDirectory(prefix="rankstream-classes-") as folder:
        made = Path(folder) / "classes.jsa"
        os.environ[VARIABLE] = f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={made}"
        broker = Broker(Path(folder) / "broker")
        try:
            broker.start()
            assert broker.pid is not None
            # It writes as it ends, for as long as that takes.
            os.kill(broker.pid, signal.SIGTERM)
            while broker.is_running:
                time.sleep(0.1)
        finally:
            broker.kill()
        whole = archive().with_suffix(".new")
        shutil.move(made, whole)
        whole.replace(archive())


def main() -> int:
    """Write it, where it is not."""
    try:
        if not archive().exists():
            write()
    except ServerFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
