"""`rankstream worker`: the stream processors, each role in a process of its own."""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from producers.topic_admin import KafkaAway, TopicAdmin
from rankstream.settings import (
    Settings,
    SettingsError,
    load_settings,
    secret,
    with_namespace,
)
from rankstream.snapshots import SnapshotStore, StoreUnavailable
from rankstream.topics import SNAPSHOTS
from streams.kinds import ROLES, kinds_of
from streams.supervisor import supervise

SUMMARY = "the stream processors on Kafka"

CONFIGURATION_EXIT = 78
TELL_EVERY_S = 60.0

log = logging.getLogger("rankstream.worker")

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "roles: ingest (front door to canonical log), fold (join and statistics),\n"
        "learn (models), publish (snapshots to Redis). Each runs in a process of its\n"
        "own under one parent, which starts it again when it ends by accident.\n\n"
        "examples:\n"
        "  rankstream worker --config shop.toml\n"
        "  rankstream worker --role fold --role learn\n\n"
        "exit status: 0 after SIGTERM, 78 where the configuration must be repaired\n"
    )
    parser.add_argument(
        "--role", action="append", choices=ROLES, help="default: all of them"
    )
    parser.add_argument("--child", choices=ROLES, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s level=%(levelname)s %(message)s"
    )
    for noisy in ("aiokafka", "kafka", "faust", "mode"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    try:
        settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    except SettingsError as error:
        log.error("event=refused reason=%s", error)  # noqa: TRY400
        return CONFIGURATION_EXIT
    if arguments.child:
        return _child(settings, arguments.child)
    command = [sys.executable, "-m", "rankstream.cli", "worker"]
    for name in ("config", "namespace"):
        if getattr(arguments, name) is not None:
            command += [f"--{name}", str(getattr(arguments, name))]
    roles = arguments.role or ROLES
    return supervise(
        {role: [*command, "--child", role] for role in dict.fromkeys(roles)},
        final=frozenset({0, CONFIGURATION_EXIT}),
        on_started=lambda: log.info("event=started roles=%s", ",".join(roles)),
    )


def _child(settings: Settings, role: str) -> int:
    topic_ids = _checked_topics(settings)
    if topic_ids is None:
        return CONFIGURATION_EXIT
    # Faust is loaded only where it runs.
    from streams.app import build_app, run_app  # noqa: PLC0415
    from streams.checkpoint import Cluster  # noqa: PLC0415

    cluster = Cluster(settings.namespace, _client(settings), topic_ids)
    if role == "publish":
        return asyncio.run(_publish(settings, cluster))
    return run_app(build_app(settings, role, kinds_of(role, settings), cluster))


async def _publish(settings: Settings, cluster: Any) -> int:
    from streams.committed import committed_records  # noqa: PLC0415
    from streams.publisher import Publisher  # noqa: PLC0415

    store = store_of(settings)
    publisher = Publisher(store, keep=settings.redis.keep_versions)
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)

    async def read() -> None:
        async for key, value in committed_records(cluster, SNAPSHOTS):
            publisher.take(key, value)

    tasks = [asyncio.create_task(work) for work in (read(), publisher.run())]
    waiting = asyncio.create_task(done.wait())
    await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    with contextlib.suppress(StoreUnavailable):
        publisher.push()
    log.info("event=stopped role=publish published=%d", publisher.published)
    return 0


def store_of(settings: Settings) -> SnapshotStore:
    """The snapshots of these settings' Redis."""
    return SnapshotStore(
        settings.redis.url,
        namespace=settings.namespace,
        username=settings.redis.username,
        password=secret("REDIS_PASSWORD", settings.redis.password_file),
        keep=settings.redis.keep_versions,
    )


def _client(settings: Settings) -> dict[str, Any]:
    kafka = settings.kafka
    options: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap,
        "security_protocol": kafka.security_protocol,
    }
    if kafka.sasl_mechanism:
        options["sasl_mechanism"] = kafka.sasl_mechanism
        options["sasl_plain_username"] = kafka.username
        options["sasl_plain_password"] = secret("KAFKA_PASSWORD", kafka.password_file)
    return options


def _checked_topics(settings: Settings) -> dict[str, str] | None:
    """Ids of the topics, once they are right; None where they are wrong."""
    admin = waited_for(
        lambda: TopicAdmin(settings), KafkaAway, f"Kafka at {settings.kafka.bootstrap}"
    )
    try:
        problems = admin.problems()
        for problem in problems:
            log.error("event=refused reason=%s", problem)
        return None if problems else admin.topic_ids()
    finally:
        admin.close()


def waited_for(attempt: Callable[[], T], absence: type[Exception], what: str) -> T:
    """Try until it works, and say so once a minute."""
    told_s = -TELL_EVERY_S
    while True:
        try:
            return attempt()
        except absence as error:
            if time.monotonic() - told_s >= TELL_EVERY_S:
                told_s = time.monotonic()
                log.warning("event=waiting for=%s reason=%s", what, error)
            time.sleep(1.0)
