"""`rankstream worker`: the stream processors, each role in a process of its own."""

import argparse
import asyncio
import importlib.util
import logging
import signal
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from producers.brokers.connection import topics_command
from rankstream.installation import path_options
from rankstream.operations.commands import settings_of, tell
from rankstream.settings import (
    Settings,
    SettingsError,
)
from rankstream.tls import in_the_clear
from streams.access import rights_of
from streams.kafka.processes.child_end import (
    CONFIGURATION_EXIT,
    FAILURE_EXIT,
    end_for_memory,
    end_without_memory,
    tell_parent,
    tell_where_asked,
)
from streams.kafka.processes.preloader import called
from streams.kafka.processes.role_processes import Preloaded
from streams.kafka.processes.supervisor import stop_with_parent, supervise
from streams.kafka.state.lost_records import FORM, OPTION, AcceptedLoss
from streams.stage import LogRefused
from streams.topology import topics_of
from streams.worker_roles import ROLES, Role, kinds_of, role_of

if TYPE_CHECKING:
    from producers.brokers.topic_admin import Checked
    from streams.kafka.status.status_page import Status

TELL_EVERY_S = 60.0

CLIENT = "kafka"
"""What roles reach Kafka with."""

ATTEMPT_MS, LONGEST_ATTEMPT_MS = 3_000, 60_000
"""How long the first attempt to reach Kafka may take, and the longest of those that
follow: each may take twice as long, as a machine under load may need more."""

PAUSE_S = 1.0

MUST_EXIST = " must exist; "
"""What is said of a topic that is missing."""

log = logging.getLogger("rankstream.worker")

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "roles, and the port of each page, relative to metrics.port:\n"
        + "".join(map(_line_of, ROLES.values()))
        + "\nEach role runs in a process of its own. One parent starts them, and\n"
        "starts a role again when it fails. You may start several workers of a\n"
        "namespace: they share the partitions.\n\n"
        "examples:\n"
        "  rankstream worker --config shop.toml\n"
        "  rankstream worker --role fold --role learn\n"
        "  rankstream worker --accept-loss queries:0:1000-1331\n"
        "                           go on without what retention removed unread; the\n"
        "                           refusal names the offsets (docs/upgrading.md)\n\n"
        "exit status: 0 after SIGTERM, 78 where settings or topics are wrong\n"
    )
    parser.add_argument(
        "--role",
        action="append",
        choices=ROLES,
        help="run only this one; may be repeated (default: all)",
    )
    parser.add_argument(
        OPTION,
        action="append",
        type=_accepted_loss,
        metavar=FORM,
        help="go on although these offsets of an input topic are gone, which must be "
        "all that is missing; may be repeated",
    )
    parser.add_argument("--child", choices=ROLES, help=argparse.SUPPRESS)
    parser.add_argument("--instance", default="", help=argparse.SUPPRESS)
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)


def _line_of(role: Role) -> str:
    return f"  {role.name:<10}+{role.metrics_port:<5}{role.summary}\n"


def _accepted_loss(words: str) -> AcceptedLoss:
    try:
        return AcceptedLoss.parsed(words)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(arguments: argparse.Namespace) -> int:
    """Run until SIGTERM."""
    _check_client()
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s level=%(levelname)s %(message)s",
        stream=sys.stdout,
    )
    # Clients tell of every attempt during an outage; we say once what is waited for.
    for noisy in ("aiokafka", "kafka", "faust", "mode", "streams"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    try:
        settings = settings_of(arguments)
    except SettingsError as error:
        return _refused(error) if arguments.child else _refused_call(error)
    if arguments.child:
        tell_where_asked()
        if arguments.instance:
            patience_s = settings.delivery.stop_s
            stop_with_parent(sys.stdin.buffer, patience_s=patience_s)
        return _child(_settings_of(settings, arguments), arguments)
    _warn_of(settings)
    command = ["worker"]
    for name in ("config", "namespace"):
        if getattr(arguments, name) is not None:
            command += [f"--{name}", str(getattr(arguments, name))]
    for accepted in arguments.accept_loss or ():
        command += [OPTION, str(accepted)]
    # The same member of its group after every start: no wait for a dead one's session.
    own = uuid.uuid4().hex[:12]
    command += ["--instance", settings.delivery.instance_id or own]
    # Workers that are configured alike have one instance, and are told apart by this.
    command += ["--worker", own]
    roles = arguments.role or _needed(settings)
    loaded = dict.fromkeys(name for role in roles for name in role_of(role).loads)
    python = [sys.executable, *path_options()]
    modules = [__name__, "producers.brokers.topic_admin", *loaded]
    processes = Preloaded(python, "rankstream.operations.cli", modules)
    try:
        return supervise(
            {role: [*command, "--child", role] for role in dict.fromkeys(roles)},
            final=frozenset({0, CONFIGURATION_EXIT}),
            patience_s=settings.delivery.stop_s,
            on_started=lambda: log.info("event=started roles=%s", ",".join(roles)),
            start=processes.start,
        )
    finally:
        processes.close()


def _warn_of(settings: Settings) -> None:
    """Once, not in each process of a role."""
    if warning := in_the_clear(settings.kafka):
        log.warning("event=in-the-clear reason=%s", warning)


def _check_client() -> None:
    """The parent needs none, and its children would each say what to install."""
    if importlib.util.find_spec(CLIENT) is None:
        raise ModuleNotFoundError(f"no module named {CLIENT!r}", name=CLIENT)


def _settings_of(settings: Settings, arguments: argparse.Namespace) -> Settings:
    """What one role's process is to know."""
    metrics, role = settings.metrics, role_of(arguments.child)
    changed: Settings = msgspec.structs.replace(
        settings,
        delivery=msgspec.structs.replace(
            settings.delivery, instance_id=arguments.instance
        ),
        metrics=msgspec.structs.replace(
            metrics, port=metrics.port + role.metrics_port if metrics.port else 0
        ),
    )
    return changed


def _child(settings: Settings, arguments: argparse.Namespace) -> int:
    # The parent needs no page, nor what it is made with.
    from streams.kafka.status.status_page import Status, offer_page  # noqa: PLC0415

    end_without_memory()
    role = role_of(arguments.child)
    called(role.name)
    status = Status(role.name, arguments.worker)
    offer_page(status, settings.metrics)
    try:
        for module in role.loads:
            importlib.import_module(module)
        status.phases.ended("imports")
        status.wait_for(f"Kafka at {settings.kafka.bootstrap} has not answered yet")
        problems, topic_ids = _checked_topics(settings, role)
        status.phases.ended("topics")
        if problems:
            return _refused(*of_missing_topics_one(problems))
        if role.serve is not None:
            return asyncio.run(_serve(settings, role, topic_ids, status))
        accepted = arguments.accept_loss or ()
        return _run_stages(settings, status, topic_ids, accepted)
    except (SettingsError, ImportError, LogRefused) as error:
        # A package or a core that is missing is missing at the next start too.
        return _refused(error)
    except MemoryError:
        end_for_memory()
    except Exception as error:  # noqa: BLE001  the parent starts it again
        log.error("event=failed error=%s reason=%s", type(error).__name__, error)
        tell_parent(f"{type(error).__name__}: {error}")
        return FAILURE_EXIT


def of_missing_topics_one(problems: Sequence[str]) -> list[str]:
    """Problems, with one for all topics that are missing: one command makes them.

    Each process of a worker tells its own.
    """
    missing = [each for each in problems if MUST_EXIST in each]
    if len(missing) < 2:
        return [*problems]
    others = [each for each in problems if MUST_EXIST not in each]
    return [f"{missing[0]}; {len(missing) - 1} more are missing", *others]


def _refused(*reasons: object) -> int:
    for reason in reasons:
        log.error("event=refused reason=%s", reason)
    more = f" (and {len(reasons) - 1} more)" if reasons[1:] else ""
    tell_parent(f"{reasons[0]}{more}")
    return CONFIGURATION_EXIT


def _refused_call(reason: SettingsError) -> int:
    """Tell whoever typed the command, before anything runs that has a log."""
    tell(f"rankstream worker: {reason}")
    return CONFIGURATION_EXIT


def _run_stages(
    settings: Settings,
    status: "Status",
    topic_ids: dict[str, str],
    accepted: Sequence[AcceptedLoss],
) -> int:
    # Faust is loaded only where it runs.
    from streams.kafka.app import build_app, run_app  # noqa: PLC0415
    from streams.kafka.clients import Cluster  # noqa: PLC0415
    from streams.kafka.committed_reader import client_options  # noqa: PLC0415

    role = status.role
    kinds = kinds_of(role)
    warm_ups = dict.fromkeys(kind.warm_up for kind in kinds if kind.warm_up)
    if warm_ups:
        started = time.monotonic()
        status.wait_for("kernels are being compiled")
        log.info("event=compiling role=%s, up to a minute or two the first time", role)
        for warm_up in warm_ups:
            warm_up(settings)
        log.info("event=kernels-ready seconds=%.2f", time.monotonic() - started)
        status.phases.ended("kernels")
    status.wait_for("it joins its consumer group")
    cluster = Cluster(settings.namespace, client_options(settings.kafka), topic_ids)
    return run_app(build_app(settings, role, kinds, cluster, accepted, status))


def _needed(settings: Settings) -> list[str]:
    """All roles that there is work for."""
    return [name for name, role in ROLES.items() if role.is_needed(settings)]


async def _serve(
    settings: Settings, role: Role, topic_ids: dict[str, str], status: "Status"
) -> int:
    from streams.kafka.committed_reader import client_options  # noqa: PLC0415
    from streams.kafka.source_watch import (  # noqa: PLC0415
        ClusterTopics,
        SourceWatch,
        known_topics,
        watching,
    )

    if role.serve is None:
        raise ValueError(f"{role.name} must be a role without stages")
    stop = _stopped_by_signal()
    known = known_topics(settings, topic_ids, (*role.sources, *role.outputs))
    watch = SourceWatch(known, ClusterTopics(client_options(settings.kafka)))
    await watching(watch, role.serve(settings, stop, status), stop)
    log.info("event=stopped role=%s", role.name)
    return 0


def _stopped_by_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _checked_topics(settings: Settings, role: Role) -> tuple[list[str], dict[str, str]]:
    """What is wrong with the topics and the role's rights, and ids of topics."""
    # The client for topics is half of what the parent would load.
    from producers.brokers.cluster import KafkaAway  # noqa: PLC0415
    from producers.brokers.topic_admin import TopicAdmin  # noqa: PLC0415

    def attempt(timeout_ms: int) -> "Checked":
        admin = TopicAdmin(settings, topics_of(settings.kafka), timeout_ms=timeout_ms)
        try:
            return admin.checked(rights_of(role.name, settings))
        finally:
            admin.close()

    where = f"Kafka at {settings.kafka.bootstrap}"
    problems, dangers, topic_ids = waited_for(attempt, KafkaAway, where)
    if dangers:
        command = topics_command(settings, "check")
        log.warning(
            "event=topics-at-risk count=%d command=`%s` first=%s",
            len(dangers), command, dangers[0],
        )  # fmt: skip
    return problems, topic_ids


def waited_for(
    attempt: Callable[[int], T],
    absence: type[Exception],
    what: str,
    *,
    pause_s: float = PAUSE_S,
) -> T:
    """Try until it works, longer each time, and say so once a minute.

    Parameters
    ----------
    attempt
        Is given the milliseconds after which it is to give up.
    """
    told_s, timeout_ms = -TELL_EVERY_S, ATTEMPT_MS
    while True:
        try:
            return attempt(timeout_ms)
        except absence as error:
            next_ms = min(LONGEST_ATTEMPT_MS, 2 * timeout_ms)
            if time.monotonic() - told_s >= TELL_EVERY_S:
                told_s = time.monotonic()
                log.warning(
                    "event=waiting for=%s attempt_s=%d next_attempt_s=%d reason=%s",
                    what, timeout_ms // 1_000, next_ms // 1_000, error,
                )  # fmt: skip
            timeout_ms = next_ms
            time.sleep(pause_s)
