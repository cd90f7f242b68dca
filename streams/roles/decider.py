"""Decisions on Kafka: what is served for which query, rewritten now and then.

Follows what the statistics have counted and what is served. Where a rewrite is due it
reads statistics and features whole, decides, and then writes what changed, the manifest
and a note of the deployment in one transaction. It stores nothing else: what was begun
and not written is begun anew.
"""

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator

from aiokafka.errors import KafkaError

from rankstream.deployment_rules import DeploymentRefused
from rankstream.settings import Settings
from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.decisions import Manifest, decode_key, decode_manifest
from rankstream.wire.envelope import SnapshotError, pointer_from, pointer_of
from rankstream.wire.topics import DECISIONS, SNAPSHOTS, STATISTICS, full_name
from streams.decisions.inputs import DecisionsRefused
from streams.estimation.served_snapshots import ServedSnapshots
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import CommittedBatch, client_options
from streams.kafka.decisions.rewriting import rewrite
from streams.kafka.deployment.fenced_log import WriterFenced
from streams.kafka.reader_role import FollowedPartition, either, run_reader_role
from streams.kafka.status.status_page import Status
from streams.kafka.training.background_thread import Stopped
from streams.series import Series
from streams.statistics import keys
from streams.training.schedule import form_of

LOOK_S = 1.0
"""How often it is looked whether a rewrite is due, if nothing was read."""

RETRY_S = 60.0
"""After so long, or what `every_s` says if that is less, it is tried again."""

OUTCOMES = ("written", "refused", "fenced")
"""What becomes of a rewrite; one that is fenced was another decider's."""

NICENESS = 10
"""So that the fold keeps its core."""

log = logging.getLogger("rankstream.decider")


class Decider:
    """Takes what was counted and what is served, and rewrites what is due."""

    absences = (KafkaError,)

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self.awaited = f"{DECISIONS} at {settings.kafka.bootstrap}"
        self.wrote_s: float | None = None
        self._settings = settings
        self._cluster = cluster
        self._plans = settings.decided
        models = frozenset(x for one in self._plans.values() for x in one.models)
        self._served = ServedSnapshots(models)
        self._manifests: dict[str, Manifest] = {}
        self._counted: dict[int, int] = {}
        self._next_s: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._news = asyncio.Event()
        self._outcomes = Counter(
            {(name, outcome): 0 for name in self._plans for outcome in OUTCOMES}
        )

    @property
    def sources(self) -> list[FollowedPartition]:
        """What to follow."""
        namespace = self._settings.namespace
        return [
            *(
                FollowedPartition(full_name(namespace, STATISTICS), n)
                for n in range(self._settings.kafka.partitions)
            ),
            FollowedPartition(full_name(namespace, SNAPSHOTS)),
            FollowedPartition(full_name(namespace, DECISIONS)),
        ]

    def take(self, source: FollowedPartition, batch: CommittedBatch) -> None:
        """Take what was read. It is a hint: whoever acts on it reads it again."""
        namespace = self._settings.namespace
        for key, value in batch.records:
            if key is None:
                continue
            if source.topic == full_name(namespace, STATISTICS):
                if key == keys.counted_key(source.partition) and value is not None:
                    sources = keys.decode_counted(value).sources
                    self._counted[source.partition] = sum(sources.values())
            elif source.topic == full_name(namespace, SNAPSHOTS):
                self._served.take(key, value)
            else:
                self._take_decisions(key, value)
        if batch.records:
            self._news.set()

    def _take_decisions(self, key: bytes, value: bytes | None) -> None:
        try:
            found = decode_key(key)
            if found.is_manifest and value is not None:
                self._manifests[found.name] = decode_manifest(value)
        except DecisionError as error:
            log.warning("event=passed-over topic=%s record=%s", DECISIONS, error)

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many decisions are in force."""
        known = [self._manifests.get(name) for name in self._plans]
        in_force = sum(each.n_decisions for each in known if each)
        totals = {
            f"rewrites_{outcome}": sum(
                n for (_, each), n in self._outcomes.items() if each == outcome
            )
            for outcome in ("written", "refused")
        }
        return {**totals, "decisions_in_force": in_force}

    def series(self) -> Iterator[Series]:
        """Rewrites by rule, and what became of them."""
        for (name, outcome), n in self._outcomes.items():
            labels = {"decisions": name, "outcome": outcome}
            yield Series("decision_rewrites", labels, n)

    async def turn(self, stop: asyncio.Event) -> None:
        """Wait for news, and rewrite what is due.

        Where another one took a rule over meanwhile, nothing of it was written, and it
        goes on with what that one leaves.
        """
        await either(self._news, stop, timeout_s=LOOK_S)
        self._news.clear()
        for name in self._plans:
            if not stop.is_set() and self._is_due(name):
                await self._rewrite(name, stop)

    async def close(self) -> None:
        """Nothing is left: each rewrite lets go of what it has."""

    def _is_due(self, name: str) -> bool:
        plan, newest = self._plans[name], self._served.newest
        if not {*plan.models} <= newest.keys():
            return False
        now_s = time.monotonic()
        if now_s < self._next_s.get(name, now_s):
            return False
        made = self._manifests.get(name)
        if made is None or made.bandit != plan.bandit:
            return True
        served = newest[plan.models[0]]
        if (made.model, made.pointer.epoch) != (served.model, served.epoch):
            # Rankers use nothing of it: see `rankstream.wire.decisions.Manifest`.
            return True
        default, _, pointer = made.default.rpartition("@")
        if (
            default in plan.models
            and pointer_from(pointer.encode()).epoch != newest[default].epoch
        ):
            return True  # what was rolled back would be served on
        is_late = time.time() * 1_000.0 - made.at_ms >= plan.every_s * 1_000.0
        return is_late and self._state_of(name) != (made.stands_on, made.n_counted)

    def _state_of(self, name: str) -> tuple[str, int]:
        """What a rewrite made now would stand on; of equal ones nothing is written."""
        served = self._served.newest[self._plans[name].models[0]]
        return str(pointer_of(served)), sum(self._counted.values())

    async def _rewrite(self, name: str, stop: asyncio.Event) -> None:
        plan = self._plans[name]
        self._next_s[name] = time.monotonic() + min(RETRY_S, plan.every_s)
        try:
            made = await rewrite(self._settings, self._cluster, name, stop)
        except WriterFenced as error:
            self._outcomes[name, "fenced"] += 1
            log.warning("event=fenced decisions=%s reason=%s", name, error)
        except Stopped:
            log.info("event=given-up decisions=%s reason=it is stopping", name)
        except (
            DecisionsRefused, DecisionError, DeploymentRefused, SnapshotError,
        ) as error:  # fmt: skip
            self._refuse(name, str(error))
        else:
            self._manifests[name] = made.manifest
            self._refused.pop(name, None)
            self._outcomes[name, "written"] += 1
            self.wrote_s = time.monotonic()

    def _refuse(self, name: str, why: str) -> None:
        """Say why nothing was decided, once for each kind of reason."""
        self._outcomes[name, "refused"] += 1
        if self._refused.get(name) != form_of(why):
            self._refused[name] = form_of(why)
            log.warning("event=decisions-refused decisions=%s reason=%s", name, why)


async def decide(
    settings: Settings, stop: asyncio.Event, status: Status | None = None
) -> None:
    """Rewrite what is due until the stop."""
    os.nice(NICENESS)
    cluster = Cluster(settings.namespace, client_options(settings.kafka), {})
    decider = Decider(settings, cluster)
    await run_reader_role(settings.kafka, decider.sources, decider, stop, status)
