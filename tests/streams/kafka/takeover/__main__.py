"""Makes `killed.tar.xz` and `stopped.tar.xz`: what workers of an older release leave.

    git worktree add OLD bdf8f94
    python -m tests.streams.kafka.takeover OLD

A broker is started; topics are made and the worker is run by the code in OLD, which
is the last commit whose statistics were of schema 1. It is sent the first half of the
events. Before it has taken in all of them, when each partition of the fold has commits
behind its last checkpoint, it is killed (SIGKILL, all its processes), or else stopped
in order. Then the broker is stopped in order, and its data folder packed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from deploy.broker import Broker
from deploy.redis_server import Redis
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.settings import Settings, load_settings
from rankstream.wire.topics import state_topic
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    ResumePosition,
    decode_position,
)
from tests.streams.kafka.takeover.event_log import (
    N_HALF,
    NAMESPACE,
    SETTINGS,
    events,
)
from tests.streams.kafka.takeover.stored import KEPT_FOR_GOOD, KILLED, STOPPED, pack

OLD_DELIVERY = """
[delivery]
commit_s = 0.3
state_s = 1_000_000
state_records = 90
"""
AT_ONCE = 8
BETWEEN_S = 0.25


def main(old: Path) -> int:
    """Make both, or say why they are not what they must be."""
    are_good = [_made(old, KILLED, signal.SIGKILL), _made(old, STOPPED, signal.SIGTERM)]
    return 0 if all(are_good) else 1


def _made(old: Path, archive: Path, how: signal.Signals) -> bool:
    with tempfile.TemporaryDirectory(prefix="rankstream-takeover-") as name:
        folder = Path(name)
        broker, redis = Broker(folder / "kafka", more=KEPT_FOR_GOOD), Redis(folder)
        broker.start()
        redis.start()
        try:
            positions = _ended_midway(old, folder, broker.bootstrap, redis.url, how)
            broker.stop()
            pack(broker.folder, archive)
        finally:
            redis.kill()
            broker.kill()
    for partition, position in sorted(positions.items()):
        print(f"fold[{partition}]: {position}")  # noqa: T201
    print(f"{archive}: {archive.stat().st_size:,} bytes")  # noqa: T201
    is_behind = {
        0 < position.checkpoint_offset < position.offset
        for position in positions.values()
    }
    return is_behind == {how == signal.SIGKILL}


def positions_of(settings: Settings) -> Mapping[int, ResumePosition]:
    """The resume position of each partition of the fold."""
    return {
        record.partition: decode_position(record.value or b"")
        for record in read_records(settings, state_topic("fold"))
        if record.key == POSITION_KEY
    }


def _ended_midway(
    old: Path, folder: Path, bootstrap: str, redis_url: str, how: signal.Signals
) -> Mapping[int, ResumePosition]:
    theirs, ours = folder / "old.toml", folder / "new.toml"
    reached = f'namespace = "{NAMESPACE}"\n[redis]\nurl = "{redis_url}"\n[kafka]\n'
    reached += f'bootstrap = "{bootstrap}"\npartitions = 2\nlearner_partitions = 2\n'
    theirs.write_text(f"{reached}input_partitions = 2\n{SETTINGS}{OLD_DELIVERY}")
    ours.write_text(f"{reached}input_partitions = 2\n{SETTINGS}")
    settings = load_settings(ours, {})
    rankstream = [sys.executable, "-m", "rankstream"]
    where = {"cwd": old, "env": {**os.environ, "PYTHONPATH": str(old)}}
    create = [*rankstream, "topics", "create", "--config", str(theirs)]
    subprocess.run(create, check=True, **where)  # type: ignore[call-overload]
    log = folder / "worker.log"
    with log.open("wb") as said:
        worker = subprocess.Popen(  # type: ignore[call-overload]
            [*rankstream, "worker", "--config", str(theirs)],
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **where,
        )
    try:
        _wait_for(log, "event=restored", 8)
        _send(settings)
    finally:
        if how == signal.SIGKILL:
            # All at once: a child that sees its parent gone would stop in order.
            os.killpg(worker.pid, how)
        else:
            worker.send_signal(how)
        worker.wait()
    sys.stdout.write(log.read_text())
    return positions_of(settings)


def _send(settings: Settings) -> None:
    first_half = events(0, N_HALF)
    with EventProducer(settings) as producer:
        for place, sent in enumerate(first_half):
            producer.send(sent.topic, sent.value)
            if place % AT_ONCE == 0:
                producer.flush()
                time.sleep(BETWEEN_S)


def _wait_for(log: Path, words: str, count: int) -> None:
    deadline = time.monotonic() + 900.0
    while log.read_text().count(words) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{words} must come {count} times; got {log.read_text()}"
            )
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
