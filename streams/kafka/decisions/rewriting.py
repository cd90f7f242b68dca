"""One rewrite of a rule: read whole, decided beside the loop, written as one."""

import asyncio
import logging
import time
from functools import partial

from rankstream.deployment_rules import check_room
from rankstream.settings import Settings
from streams.decisions.inputs import (
    DecisionInputs,
    DecisionsRefused,
    Made,
    rewrite_of,
)
from streams.decisions.rewrite import Deployed, Rewrite
from streams.estimation.served_curves import ServedCurves
from streams.kafka.clients import Cluster
from streams.kafka.decisions.decision_log import DecisionLog, Read
from streams.kafka.logged_lists import LoggedLists, logged_lists
from streams.kafka.state.whole_topics import Check
from streams.kafka.training.background_thread import Stopped
from streams.kafka.training.memory import MemoryLimit, give_back_free_pages
from streams.training.inputs import TrainingRefused, least_watermark_of
from streams.training.model_lists import LearnedOnline

SPARE_NAMES, SPARE_SHARE = 64, 4
"""Names of interventions of an era that are left to all else: so many, but at most one
in four."""

log = logging.getLogger("rankstream.decider")


async def rewrite(
    settings: Settings, cluster: Cluster, name: str, stop: asyncio.Event
) -> Rewrite:
    """Decide what is served from now on by a rule, and write it.

    Raises
    ------
    Stopped, WriterFenced
        Nothing was written.
    DecisionsRefused, DeploymentRefused, SnapshotError
        Nothing can be decided, in words; what is served stays.
    KafkaError
        Whether it was written is not known; whoever reads the topic knows.
    """
    plan = settings.decisions[name]
    memory = MemoryLimit(
        plan.memory_mb, f"a rewrite of {name!r}", f"decisions.{name}.memory_mb"
    )

    def check() -> None:
        if stop.is_set():
            raise Stopped
        try:
            memory.check()
        except TrainingRefused as error:
            raise DecisionsRefused(str(error)) from error

    own = DecisionLog(cluster, name, settings.delivery.transaction_timeout_ms)
    try:
        await own.fence()
        models = frozenset({plan.general, plan.logging, *settings.curves})
        known = await own.read(models, check)
        deployed = _deployed(name, settings, known)
        log.info("event=deciding decisions=%s", name)
        wanted = {x.features_hash: x.n_features for x in deployed}
        lists = await logged_lists(settings, cluster, wanted, check)
        at_ms = least_watermark_of(lists.statistics) or now_ms()
        spare = min(SPARE_NAMES, settings.limits.interventions // SPARE_SHARE)
        check_room(settings, known.models.deployments(), at_ms=at_ms, spare=spare)
        deciding = partial(_made, name, settings, lists, deployed, known, check)
        made = await asyncio.to_thread(deciding)
        await own.write(made.rewrite.outputs(known.decisions.values))
    finally:
        await own.close()
        give_back_free_pages()
    log.info(
        "event=rewrite name=%s decisions=%d default=%s",
        made.rewrite.manifest.intervention,
        made.rewrite.manifest.n_decisions,
        made.rewrite.manifest.default,
    )
    return made.rewrite


def _made(
    name: str,
    settings: Settings,
    lists: LoggedLists,
    deployed: Deployed,
    known: Read,
    check: Check,
) -> Made:
    online = LearnedOnline(settings, lambda: known.models.learned)
    curves = ServedCurves(
        settings, lists.statistics, known.models.newest, check, online
    )
    curve = curves.of(deployed.general.model)
    inputs = DecisionInputs(lists.statistics, lists.features, deployed, curve)
    return rewrite_of(
        name, settings, inputs,
        number=next_number(name, known), at_ms=now_ms(), check=check,
    )  # fmt: skip


def _deployed(name: str, settings: Settings, known: Read) -> Deployed:
    plan = settings.decisions[name]
    for model in (plan.general, plan.logging):
        if model not in known.models.newest:
            raise DecisionsRefused(
                f"{name!r} must have a version of {model!r} to compare; there is none "
                "yet: start the role `learn`, which publishes version 0"
            )
    newest = known.models.newest
    return Deployed(newest[plan.general], newest[plan.logging])


def next_number(name: str, known: Read) -> int:
    """Higher than that of all rewrites, also of one whose manifest is damaged."""
    manifest = known.decisions.manifest
    noted = [x.pointer.epoch for x in known.models.deployments() if x.model == name]
    return max([*noted, manifest.number if manifest else 0], default=0) + 1


def now_ms() -> int:
    """By the clock of this process."""
    return time.time_ns() // 1_000_000
