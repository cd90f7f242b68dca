"""One rewrite of a rule or a bandit: read whole, decided beside, written as one."""

import asyncio
import logging
import time
from functools import partial

from rankstream.configuration.bandits import BanditSettings
from rankstream.configuration.decisions import DecisionSettings
from rankstream.deployment_rules import check_room
from rankstream.settings import Settings
from rankstream.wire.envelope import Snapshot
from streams.decisions.bandit_rewrite import (
    BanditInputs,
    bandit_rewrite,
    kept_intervention,
)
from streams.decisions.inputs import (
    DecisionInputs,
    DecisionsRefused,
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

Plan = DecisionSettings | BanditSettings

log = logging.getLogger("rankstream.decider")


async def rewrite(
    settings: Settings, cluster: Cluster, name: str, stop: asyncio.Event
) -> Rewrite:
    """Decide what is served from now on by a rule or a bandit, and write it.

    Raises
    ------
    Stopped, WriterFenced
        Nothing was written.
    DecisionsRefused, DeploymentRefused, SnapshotError
        Nothing can be decided, in words; what is served stays.
    KafkaError
        Whether it was written is not known; whoever reads the topic knows.
    """
    plan = settings.decided[name]
    section = "bandits" if name in settings.bandits else "decisions"
    memory = MemoryLimit(
        plan.memory_mb, f"a rewrite of {name!r}", f"{section}.{name}.memory_mb"
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
        known = await own.read(frozenset({*plan.models, *settings.curves}), check)
        served = _served(name, plan, known)
        log.info("event=deciding decisions=%s", name)
        lists = await logged_lists(settings, cluster, _features(plan, served), check)
        kept = ""
        if isinstance(plan, BanditSettings):
            kept = kept_intervention(plan, served[0], known.decisions.manifest)
        if not kept:
            at_ms = least_watermark_of(lists.statistics) or now_ms()
            spare = min(SPARE_NAMES, settings.limits.interventions // SPARE_SHARE)
            check_room(settings, known.models.deployments(), at_ms=at_ms, spare=spare)
        made_of = _bandit if isinstance(plan, BanditSettings) else _rule
        deciding = partial(made_of, name, settings, lists, served, known, check)
        made = await asyncio.to_thread(deciding)
        await own.write(made.outputs(known.decisions.values))
    finally:
        await own.close()
        give_back_free_pages()
    log.info(
        "event=rewrite name=%s decisions=%d default=%s",
        made.manifest.intervention,
        made.manifest.n_decisions,
        made.manifest.default,
    )
    return made


def _rule(
    name: str,
    settings: Settings,
    lists: LoggedLists,
    served: list[Snapshot],
    known: Read,
    check: Check,
) -> Rewrite:
    online = LearnedOnline(settings, lambda: known.models.learned)
    curves = ServedCurves(
        settings, lists.statistics, known.models.newest, check, online
    )
    curve = curves.of(served[0].model)
    inputs = DecisionInputs(lists.statistics, lists.features, Deployed(*served), curve)
    return rewrite_of(
        name, settings, inputs,
        number=next_number(name, known), at_ms=now_ms(), check=check,
    ).rewrite  # fmt: skip


def _bandit(
    name: str,
    settings: Settings,
    lists: LoggedLists,
    served: list[Snapshot],
    known: Read,
    check: Check,
) -> Rewrite:
    (own,) = served
    curve = settings.curve_for(settings.models[own.model])
    inputs = BanditInputs(
        lists.statistics,
        own,
        lists.features.get(own.features_hash),
        known.models.newest.get(curve),
        known.decisions.manifest,
    )
    return bandit_rewrite(
        name, settings, inputs, number=next_number(name, known), at_ms=now_ms(),
        check=check,
    )  # fmt: skip


def _features(plan: Plan, served: list[Snapshot]) -> dict[bytes, int]:
    """How many features the lists have that are asked for, by hash."""
    if isinstance(plan, BanditSettings) and not plan.top:
        return {}
    return {x.features_hash: x.n_features for x in served}


def _served(name: str, plan: Plan, known: Read) -> list[Snapshot]:
    newest = known.models.newest
    for model in plan.models:
        if model not in newest:
            raise DecisionsRefused(
                f"{name!r} must have a version of {model!r} to serve; there is none "
                "yet: start the role `learn`, which publishes version 0"
            )
    return [newest[model] for model in plan.models]


def next_number(name: str, known: Read) -> int:
    """Higher than that of all rewrites, also of one whose manifest is damaged."""
    manifest = known.decisions.manifest
    noted = [x.pointer.epoch for x in known.models.deployments() if x.model == name]
    return max([*noted, manifest.number if manifest else 0], default=0) + 1


def now_ms() -> int:
    """By the clock of this process."""
    return time.time_ns() // 1_000_000
