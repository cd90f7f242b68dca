"""The rights that are printed for each role, on a broker that asks for them."""

import asyncio
import contextlib
import re
from functools import partial
from pathlib import Path

import pytest
import redis

from producers.brokers.topic_admin import TopicAdmin
from producers.event_producer import EventProducer, SendFailed
from producers.topic_reader import TopicUnreadable, read_records
from rankstream.operations.answers.installation.access import access
from rankstream.operations.cli import main
from rankstream.operations.serving.http.limits import InFlight
from rankstream.operations.serving.sender import NOT_USABLE, Sender
from rankstream.ranker import Ranker
from rankstream.settings import Settings, load_settings
from rankstream.snapshots import store_of
from rankstream.wire.rights import (
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    WRITE,
    WRITER,
    Right,
    granting,
)
from rankstream.wire.topics import (
    DECISIONS,
    EVALUATIONS,
    QUERIES,
)
from streams.access import rights_of
from streams.topology import topics_of
from streams.worker_roles import ROLES
from tests.clicked_lists import N_FEATURES, Shown, show
from tests.services import RedisService
from tests.streams.kafka.granted import acls_of, add_redis_user, grant, revoke
from tests.streams.kafka.kafka_acls import granted_by_kafka, of_acl
from tests.streams.kafka.secured import (
    SecuredBroker,
    send,
    written,
)
from tests.worker_process import PATIENCE_S, running, waited_until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("refused_connections")]

NOW_MS = 1_700_000_000_000

REDIS_PASSWORD = "canary-of-redis"  # noqa: S105  of a user that lives as long as a test

EVERYTHING = f"""
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
state_s = 1.0
session_timeout_s = 6.0
[train]
value_every_s = 0
[models.online]
features = {N_FEATURES}
[models.m]
features = {N_FEATURES}
versions = "trained"
[models.m.training]
after = [300]
epochs = 2
batch = 8
least_support = 1.0
most_unsupported = 1.0
examination = [1.0, 0.7, 0.5, 0.35, 0.25]
[models.safe]
features = {N_FEATURES}
versions = "promoted"
[decisions.orders]
general = "m"
logging = "safe"
temperature = 1.0
every_s = 1.0
[sources.shown]
topic = "shown-elsewhere"
format = "ubi"
"""
"""Settings that have work for each role."""


class Shop:
    """A namespace whose roles are people of their own, who may do what is printed."""

    def __init__(
        self, secured: SecuredBroker, url: str, folder: Path, namespace: str
    ) -> None:
        self.secured, self.folder = secured, folder
        self._more = f'namespace = "{namespace}"\n{EVERYTHING}[redis]\nurl = "{url}"\n'
        everybody = written(folder, secured.by_password(folder), self._more)
        self._settings = load_settings(everybody)
        found = access(self._settings, principal="{role}")
        self.access = {each.role: each for each in found}

    def config(self, role: str) -> Path:
        """The settings of a role, who is let in in one of four ways."""
        folder, secured = self.folder / role, self.secured
        folder.mkdir(exist_ok=True)
        (folder / "redis").write_text(REDIS_PASSWORD)
        self.secured.add_user(role)
        identities = {
            "fold": lambda: secured.by_token(folder, role),
            "ingest": lambda: secured.by_certificate(folder, name=role),
            "learn": lambda: secured.by_certificate(folder, name=role),
            "monitor": lambda: secured.by_token(folder, role),
            "operate": lambda: secured.by_token(folder, role),
        }
        by_scram = partial(
            secured.by_password, folder, username=role, sasl_mechanism="SCRAM-SHA-256"
        )
        user = f'username = "{role}"\npassword_file = "{folder / "redis"}"\n'
        return written(folder, identities.get(role, by_scram)(), self._more + user)

    def grant(self, redis_client: redis.Redis) -> None:
        """Everybody's rights as printed: by Kafka's own program, and in Redis.

        What that program lists then is what was printed, and no more.
        """
        commands = [line for each in self.access.values() for line in each.commands]
        config = self.secured.command_config(self.folder)
        bootstrap = self._settings.kafka.bootstrap
        found = granted_by_kafka(commands, bootstrap, config, self.folder)
        printed = {of_acl(acl) for each in commands for acl in acls_of(each)}
        names = {each.name for each in printed}
        # Other tests granted rights in other namespaces.
        assert {each for each in found if each.name in names} == printed
        assert len(printed) == sum(len(each.rights) for each in self.access.values())
        for each in self.access.values():
            if each.redis:
                add_redis_user(redis_client, each.redis, REDIS_PASSWORD)


def test_every_role_does_its_work_with_the_rights_that_are_printed(
    secured: SecuredBroker, redis_server: RedisService, tmp_path: Path, namespace: str
) -> None:
    """And with no other: events become statistics, a trained model, and a ranking.

    Each role is a worker of its own, let in by SCRAM, a token or a certificate.
    """
    shop = Shop(secured, redis_server.url, tmp_path, namespace)
    assert shop.access.keys() >= ROLES.keys()
    with redis.Redis.from_url(redis_server.url) as admin:
        shop.grant(admin)
    with secured.admin() as admin:
        admin.create_topics({"shown-elsewhere": {"num_partitions": 1}})
    assert main(["topics", "create", "--config", str(shop.config("operate"))]) == 0
    logs = {role: tmp_path / f"{role}.log" for role in ROLES}
    with contextlib.ExitStack() as stack:
        workers = {
            role: stack.enter_context(
                running(shop.config(role), logs[role], "--role", role)
            )
            for role in ROLES
        }
        ranking = load_settings(shop.config("rank"))
        ranker = Ranker("m", store=store_of(ranking))
        assert ranker.wait(PATIENCE_S)
        first = ranker.version
        with EventProducer(load_settings(shop.config("feed"))) as producer:
            show(producer, ranker, Shown(0, NOW_MS), 900)
        waited_until(lambda: ranker.refresh() and ranker.version > first, logs["train"])
        decided = load_settings(shop.config("monitor"))
        waited_until(lambda: any(read_records(decided, DECISIONS)), logs["decide"])
        waited_until(lambda: any(read_records(decided, EVALUATIONS)), logs["evaluate"])
        for role in ("ingest", "fold", "learn", "adapt"):
            waited_until(lambda: "event=ready" in workers[role].said(), logs[role])  # noqa: B023
        ended = {role: worker.stop()[0] for role, worker in workers.items()}
    said = {role: log.read_text() for role, log in logs.items()}
    assert ended == dict.fromkeys(ROLES, 0)
    assert not any("uthorization" in each for each in said.values()), said
    assert main(["topics", "check", "--config", str(shop.config("monitor"))]) == 0


TAKEN = {
    "reads its source": (Right(TOPIC, "events", READ),),
    "writes an output": (Right(TOPIC, "interactions", WRITE),),
    "writes its state": (Right(TOPIC, "fold-state", WRITE),),
    "is of its group": (Right(GROUP, "rankstream-fold", READ),),
    "has its transactions": (Right(WRITER, "rankstream-fold-events-", WRITE, True),),
}
"""A right of each class, by names without namespace."""


def test_a_right_that_is_taken_ends_the_role_and_is_named(
    secured: SecuredBroker, redis_server: RedisService, tmp_path: Path, namespace: str
) -> None:
    """Of each class: work stops, and the last line has the command that grants it.

    Granted again by that command, the role goes on.
    """
    shop = Shop(secured, redis_server.url, tmp_path, namespace)
    with secured.admin() as admin:
        grant(admin, shop.access["fold"].commands)
        # Somebody must write what the fold is to read.
        others = shop.access["ingest"].commands
        grant(admin, [each.replace("User:ingest", "User:fold") for each in others])
    everything = load_settings(tmp_path / "shop.toml")
    topics = TopicAdmin(everything, topics_of(everything.kafka))
    topics.create()
    topics.close()
    config = shop.config("fold")
    for number, (_, rights) in enumerate(TAKEN.items()):
        named = [x._replace(name=f"{namespace}.{x.name}") for x in rights]
        lines = granting(named, "User:fold", load_settings(config).kafka.bootstrap)
        log = tmp_path / f"fold-{number}.log"
        with running(config, log, "--role", "ingest", "--role", "fold") as worker:
            waited_until(lambda: "event=ready role=fold" in worker.said(), log)
            with secured.admin() as admin:
                revoke(admin, lines)
            send(everything, number + 1)
            assert worker.process.wait(PATIENCE_S) == 78, worker.said()
            said = worker.said()
        assert named[0].refusal in said
        (told,) = set(re.findall("`(kafka-acls.sh [^`]*)`", said.splitlines()[-1]))
        with secured.admin() as admin:
            grant(admin, [told.replace("User:NAME", "User:fold")])


def test_who_may_not_is_told_what_and_how_to_change_it(
    secured: SecuredBroker,
    tmp_path: Path,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Topics that may not be seen are not called missing."""
    everybody = written(
        tmp_path, secured.by_password(tmp_path), f'namespace = "{namespace}"'
    )
    everything = load_settings(everybody)
    topics = TopicAdmin(everything, topics_of(everything.kafka))
    topics.create()
    topics.close()
    secured.add_user("stranger")
    kafka = secured.by_password(tmp_path, username="stranger")
    stranger = load_settings(written(tmp_path, kafka, f'namespace = "{namespace}"'))
    admin = TopicAdmin(stranger, topics_of(stranger.kafka))
    problems = admin.problems()
    admin.close()
    seen = Right(TOPIC, f"{namespace}.{QUERIES}", DESCRIBE)
    assert len(problems) == len(topics_of(stranger.kafka))
    assert any(seen.refusal in each and "kafka-acls.sh" in each for each in problems)
    with pytest.raises(TopicUnreadable, match=f"{seen.refusal}: run `kafka-acls.sh"):
        EventProducer(stranger)
    with secured.admin() as client:
        lines = [x._replace(operation=DESCRIBE) for x in rights_of("serve", stranger)]
        grant(client, granting(lines, "User:stranger", stranger.kafka.bootstrap))
    written_to = Right(TOPIC, f"{namespace}.{QUERIES}", WRITE).refusal
    producer = EventProducer(stranger)
    producer.send(QUERIES, b"no event")
    with pytest.raises(SendFailed, match=f"{written_to}: run `kafka-acls.sh"):
        producer.flush()
    producer.close()
    asyncio.run(_served_without_rights(stranger, caplog))


async def _served_without_rights(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """What the server's log says; its clients hear nothing of it."""
    sender = Sender(settings, InFlight(1 << 20))
    with caplog.at_level("INFO", logger="rankstream.serve"):
        await sender.start()
        async with asyncio.timeout(PATIENCE_S):
            while "topics acls --role serve" not in caplog.text:
                await asyncio.sleep(0.1)
    assert "AuthorizationFailed" in caplog.text
    assert sender.trouble == NOT_USABLE
    await sender.close()
