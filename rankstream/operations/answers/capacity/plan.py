"""What a load needs: drivers times constants, and how far each bound reaches."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from producers.brokers.topic_safety import kept_ms
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.capacity.bounds import Bound, bounds
from rankstream.operations.answers.capacity.constants import Constants, Costs
from rankstream.operations.answers.capacity.drivers import (
    STATE_BYTES,
    drivers_of,
    is_measured,
    scope_bytes,
)
from rankstream.operations.answers.capacity.load import Load
from rankstream.operations.answers.capacity.needs import (
    KEYS_A_QUERY,
    cores_of,
    memory_bytes,
    n_live,
    n_open,
    n_processes,
    restart_s,
    with_partitions,
)
from rankstream.wire.topics import (
    CANDIDATES,
    CLICKS,
    DECISIONS,
    EVALUATIONS,
    EVENTS,
    INTERACTIONS,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    TRAINING,
    Topic,
    state_topic,
)
from streams.topology import topics_of
from streams.worker_roles import ROLES

DAY_S = 86_400.0

SEGMENT_S = 60.0
"""So long a compacted topic keeps what was replaced, at least."""

DIRTY = 1.1
"""Of a compacted topic over what lives in it (`min.cleanable.dirty.ratio`)."""

MEASURED_KEYS, MEASURED_OPEN = 110_000, 132_000
"""Most that a restart was measured with, keys and open lists (docs/benchmarks.md)."""

FOLLOWED = {QUERIES, CLICKS, EVENTS, INTERACTIONS, SNAPSHOTS}
"""Topics that one role each reads while all runs."""

UNMEASURED = (
    (
        lambda s: bool(s.experiments),
        {PREFERENCES, EVALUATIONS},
        "what experiments add to the fold (docs/benchmarks.md: 5 us an event with ten "
        "rankers), and their topics",
    ),
    (
        lambda s: any(each.logs_candidates for each in s.models.values()),
        {CANDIDATES, state_topic("candidates"), TRAINING},
        "features of all candidates, and trainings",
    ),
    (lambda s: bool(s.decided), {DECISIONS}, "decisions and bandits"),
    (
        lambda s: any(
            each.kind != "linear" or each.learner != "pdgd"
            for each in s.online.values()
        ),
        set[str](),
        "learners other than a linear one of PDGD: the role learn may take more",
    ),
)
"""What settings may ask for, the topics that get it, and what of it is not said."""


@dataclass(frozen=True)
class RoleNeed(Answer):
    """Processes of a role, and what all of them take; None where nobody measured it."""

    role: str
    processes: int
    cores: float | None
    memory_bytes: float | None


@dataclass(frozen=True)
class TopicNeed(Answer):
    """What a topic gets a second, and what its replicas hold on all disks, in bytes."""

    topic: str
    partitions: int
    bytes_per_s: float | None
    disk_bytes: float | None
    keeps: str


@dataclass(frozen=True)
class Plan(Answer):
    """What a load needs.

    Parameters
    ----------
    partitions
        Those of the settings, or more where so many processes must fold.
    cores, memory_bytes
        Of all processes of the worker, without the broker.
    broker_cores
        Of all brokers together.
    bytes_in_per_s, bytes_out_per_s
        Of all brokers together, what replicas fetch included.
    restart_s
        From the kill of a process of the role `fold` until it folds again.
    bounds
        The first one is reached first.
    assumed
        What was not measured, and is said by what it was taken to be.
    unsaid
        What is not said, each with the reason.
    """

    per_second: float
    lists_per_s: float
    partitions: int
    roles: list[RoleNeed]
    cores: float | None
    memory_bytes: float | None
    broker_cores: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    topics: list[TopicNeed]
    disk_bytes: float | None
    restart_s: float | None
    bounds: list[Bound]
    assumed: list[str]
    unsaid: list[str]
    machine: str
    measured: str


def plan_of(
    load: Load,
    constants: Constants,
    *,
    utilisation: float = 0.6,
    input_days: float = 7.0,
) -> Plan:
    """Processes, cores, memory, bytes, disk and bounds.

    Parameters
    ----------
    utilisation
        Share of a core that a process may take on average, over 0 and at most 1: a
        process has one thread that works, and events come unevenly.
    input_days
        For how long the cluster keeps topics of which the settings do not say it.

    Raises
    ------
    ValueError
        Where the share, or the days, are none.
    """
    if not 0.0 < utilisation <= 1.0:
        raise ValueError(f"--utilisation must be over 0, at most 1; got {utilisation}")
    if not 0.0 < input_days < math.inf:
        raise ValueError(f"--input-days must be over 0; got {input_days}")
    costs = Costs(constants)
    n_fold = n_processes(load, "fold", costs, utilisation)
    load = with_partitions(load, max(load.settings.kafka.partitions, n_fold))
    # After an outage events wait.
    behind, kafka = replace(load, is_waiting=True), load.settings.kafka
    roles = [
        RoleNeed(role.name, n, cores, memory)
        for role in ROLES.values()
        if role.is_needed(load.settings)
        for n in [n_processes(load, role.name, costs, utilisation)]
        for cores in [cores_of(load, role.name, costs, n)]
        for memory in [memory_bytes(behind, role.name, n, costs)]
    ]
    left_out = [row for row in UNMEASURED if row[0](load.settings)]
    unmeasured = {topic for _, topics, _ in left_out for topic in topics}
    topics = [
        TopicNeed(each.name, each.partitions, None, None, _keeps(each, load)[1])
        if each.name in unmeasured
        else _topic(load, each, costs, input_days)
        for each in topics_of(kafka)
    ]
    copies = kafka.replication_factor
    got = _sum(each.bytes_per_s for each in topics)
    read = _sum(each.bytes_per_s for each in topics if each.topic in FOLLOWED)
    return Plan(
        per_second=load.per_second,
        lists_per_s=load.lists_per_s,
        partitions=kafka.partitions,
        roles=roles,
        cores=_sum(each.cores for each in roles),
        memory_bytes=_sum(each.memory_bytes for each in roles),
        broker_cores=costs.cores("broker", drivers_of(load)),
        bytes_in_per_s=None if got is None else got * copies,
        bytes_out_per_s=None
        if got is None or read is None
        else read + got * (copies - 1),
        topics=topics,
        disk_bytes=_sum(each.disk_bytes for each in topics),
        restart_s=restart_s(load, n_fold, costs),
        bounds=bounds(load, costs, utilisation),
        assumed=list(_assumed(load, n_fold)),
        unsaid=[*(why for *_, why in left_out), *costs.unsaid],
        machine=constants.machine,
        measured=f"{constants.date}, {constants.command}",
    )


def _assumed(load: Load, n_fold: int) -> Iterator[str]:
    keys, lists = KEYS_A_QUERY * n_live(load) / n_fold, n_open(load) / n_fold
    for n, most, what in (
        (keys, MEASURED_KEYS, "keys"),
        (lists, MEASURED_OPEN, "open lists"),
    ):
        if n > most:
            yield (
                f"a restart with {n:,.0f} {what} takes as long for each as one with "
                f"{most:,}"
            )
    n_lists = load.n_counted / max(n_live(load), 1.0)
    if not is_measured(load, n_lists):
        yield (
            f"memory of a query of {n_lists:,.0f} lists grows as its state does, and "
            "that goes on as it went: memory was measured for 100 lists of a query, "
            "state was counted for 10,000"
        )


def _topic(load: Load, topic: Topic, costs: Costs, input_days: float) -> TopicNeed:
    """What a topic gets, and holds."""
    per_s = costs.bytes_of(topic.name, drivers_of(load))
    kept_s, keeps = _keeps(topic, load, input_days)
    held = None if per_s is None or kept_s is None else per_s * kept_s
    if held is not None and topic.name == STATISTICS:
        live = n_live(load)
        held += (
            DIRTY
            * live
            * scope_bytes(STATE_BYTES, load, load.n_counted / max(live, 1.0))
        )
    copies = load.settings.kafka.replication_factor
    return TopicNeed(
        topic.name,
        topic.partitions,
        per_s,
        None if held is None else held * copies,
        keeps,
    )


def _keeps(
    topic: Topic, load: Load, input_days: float = 0.0
) -> tuple[float | None, str]:
    """For how many seconds a topic keeps what it gets, and that in words."""
    time = load.settings.time
    if topic.config.get("cleanup.policy") == "compact":
        recent_s = (time.click_window_ms + time.disorder_ms + time.remember_ms) / 1e3
        return recent_s + SEGMENT_S, "last of each key"
    asked_ms = kept_ms(topic, load.settings) or topic.config.get("retention.ms")
    if asked_ms == -1:
        return None, "without end"
    kept_s = int(asked_ms) / 1e3 if asked_ms else input_days * DAY_S
    return kept_s, f"{kept_s / DAY_S:g} days"


def _sum(values: Iterable[float | None]) -> float | None:
    """None where one is."""
    known = list(values)
    return None if None in known else sum(each for each in known if each is not None)
