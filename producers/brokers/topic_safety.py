"""What keeps a topic's records safe: replicas, leaders, elections, retention, times.

Pure: from what the broker says of a topic to sentences. What is wrong here endangers
records or holds commits up, but no count is wrong because of it, so a worker starts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, LEAST_DAYS, Topic

IN_SYNC = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
RETENTION = "retention.ms"
RETENTION_BYTES = "retention.bytes"

TIMES = "message.timestamp.type"
BY_BROKER = "LogAppendTime"

UNCOMPACTED = ("segment.ms", "delete.retention.ms")
"""How long the broker keeps in a compacted topic what nobody needs any more."""

CHECKED = (IN_SYNC, UNCLEAN, RETENTION, RETENTION_BYTES, TIMES, *UNCOMPACTED)

DAY_MS = 86_400_000
LEAST_RETENTION_MS = LEAST_DAYS * DAY_MS
"""Of what stages read: a worker that ended on a Friday evening is seen on Monday.

Its state holds all that it has folded, so a restart needs what came meanwhile and the
few seconds since its last checkpoint.
"""

INTERNAL = ("__consumer_offsets", "__transaction_state")
"""Topics of the cluster's own: without them nobody can commit."""


class Danger(NamedTuple):
    """A setting of a topic that endangers its records: what it should be, and is."""

    key: str
    wanted: str
    got: str
    why: str


def least_in_sync(n_replicas: int) -> int:
    """`min.insync.replicas` for so many replicas: most of them, but 1 of 2.

    An acknowledged record is then on most of the replicas, and one broker may be away.
    With two replicas one must do, or a broker that is away would stop all writing.

    Examples
    --------
    >>> [least_in_sync(n) for n in (1, 2, 3, 4, 5)]
    [1, 1, 2, 3, 3]
    """
    return 1 if n_replicas < 3 else n_replicas // 2 + 1


def safe_config(n_replicas: int) -> dict[str, str]:
    """The configuration that a new topic is given beside its own."""
    in_sync = str(least_in_sync(n_replicas))
    return {IN_SYNC: in_sync, UNCLEAN: "false", TIMES: BY_BROKER}


def kept_ms(topic: Topic, settings: Settings) -> int | None:
    """`retention.ms` that the settings ask for; -1 without end, None where they do not.

    What a sum counts leaves at the end of its era's time, one to two `time.keep_ms`
    after it was shown: so long everything that a sum is made of can be read again.
    """
    if not topic.days:
        return None
    days: int = getattr(settings.kafka, topic.days)
    if days < 0:
        return -1
    return days * DAY_MS or max(2 * settings.time.keep_ms, LEAST_RETENTION_MS)


def open_ms(topic: Topic, settings: Settings) -> int:
    """For how long a topic must have what the state of the fold refers to.

    A list whose click window is open lies in `events` alone; where windows are longer
    than a third of what is kept at least, the state has it, and it is 0.
    """
    needed_ms = settings.time.click_window_ms + settings.time.disorder_ms
    refers = topic.name == EVENTS and needed_ms <= LEAST_RETENTION_MS // 3
    return needed_ms if refers else 0


def new_config(topic: Topic, settings: Settings) -> dict[str, str]:
    """The whole configuration of a topic that is created."""
    kept = kept_ms(topic, settings)
    asked = {} if kept is None else {RETENTION: str(kept)}
    return safe_config(settings.kafka.replication_factor) | topic.config | asked


def dangers(
    topic: Topic,
    n_replicas: int,
    there: Mapping[str, str],
    wanted_ms: int | None = None,
    needed_ms: int = 0,
) -> list[Danger]:
    """Settings of a topic that endanger its records.

    Parameters
    ----------
    n_replicas
        That it must have and that each partition has: the smaller number.
    there
        Its configuration on the cluster.
    wanted_ms
        For how long it is to keep a record: what `kept_ms` says.
    needed_ms
        For how long a worker that starts may need one: what `open_ms` says.
    """
    found = []
    least = least_in_sync(n_replicas)
    in_sync = there.get(IN_SYNC, str(least))
    if int(in_sync) < least:
        why = "a record that was acknowledged is lost with one broker"
        found.append(Danger(IN_SYNC, str(least), in_sync, why))
    if there.get(UNCLEAN) == "true":
        why = "a broker that is behind may lead, and drops what was acknowledged"
        found.append(Danger(UNCLEAN, "false", "true", why))
    times = there.get(TIMES, BY_BROKER)
    if times != BY_BROKER and TIMES not in topic.config:
        why = (
            "the broker refuses what a worker writes whose clock is an hour ahead, and "
            "deletes too early what one writes that is behind"
        )
        found.append(Danger(TIMES, BY_BROKER, times, why))
    if topic.is_source:
        found += _retention_dangers(there, wanted_ms, needed_ms)
    for key in UNCOMPACTED:
        wanted = topic.config.get(key, there.get(key, "0"))
        if int(there.get(key, wanted)) > int(wanted):
            why = "who takes a partition over reads for longer what nobody needs"
            found.append(Danger(key, wanted, there[key], why))
    return found


def _retention_dangers(
    there: Mapping[str, str], wanted_ms: int | None, needed_ms: int
) -> Iterable[Danger]:
    there_ms, kept_bytes = there.get(RETENTION, "-1"), there.get(RETENTION_BYTES, "-1")
    least = LEAST_RETENTION_MS if wanted_ms is None else wanted_ms
    if 0 <= int(there_ms) < needed_ms:
        why = "lists leave while their click window is open, and a worker that needs "
        why += "them does not start"
        yield Danger(RETENTION, str(least), there_ms, why)
    elif 0 <= int(there_ms) < LEAST_RETENTION_MS:
        why = "records leave before a worker that was away for longer has read them"
        yield Danger(RETENTION, str(least), there_ms, why)
    elif int(there_ms) >= 0 and not 0 <= least <= int(there_ms):
        why = "records leave before the time that the settings say, so no recount and "
        why += "no other fold has all that was counted"
        yield Danger(RETENTION, str(least), there_ms, why)
    if int(kept_bytes) >= 0:
        why = "the more is sent, the sooner records leave, read or not"
        yield Danger(RETENTION_BYTES, "-1", kept_bytes, why)


def cannot_be_written(n_replicas: int, there: Mapping[str, str]) -> Danger | None:
    """More replicas asked to be in sync than there are: no commit could succeed."""
    in_sync = there.get(IN_SYNC, "1")
    if int(in_sync) <= n_replicas:
        return None
    wanted = str(least_in_sync(n_replicas))
    return Danger(IN_SYNC, wanted, in_sync, "no record is taken")


def replica_dangers(
    name: str, partitions: Sequence[Mapping[str, Any]], least: int
) -> list[str]:
    """What is the matter with a topic's replicas now, a sentence for each kind.

    Parameters
    ----------
    partitions
        As the broker describes them.
    least
        Its `min.insync.replicas`.
    """
    without_leader: list[Mapping[str, Any]] = []
    few: list[Mapping[str, Any]] = []
    behind: list[Mapping[str, Any]] = []
    for each in partitions:
        n_in_sync = len(each["isr_nodes"])
        if each["leader_id"] < 0:
            without_leader.append(each)
        elif n_in_sync < len(each["replica_nodes"]):
            (few if n_in_sync < least else behind).append(each)
    told = []
    if without_leader:
        told.append(
            f"topic {name} must have a leader for each partition; "
            f"{_partitions(without_leader, 'has', 'have')} none: "
            f"{_start(without_leader)}; until then nobody reads or writes there"
        )
    if few:
        told.append(
            f"topic {name} must have {least} replicas in sync to be written; "
            f"{_partitions(few, 'has', 'have')} fewer: {_start(few)}; until then no "
            "commit that writes there succeeds"
        )
    if behind:
        told.append(
            f"topic {name} must have all its replicas in sync; "
            f"{_partitions(behind, 'lacks', 'lack')} {_lacking(behind)}: "
            f"{_start(behind)}; one broker less may stop all writing"
        )
    return told


def replicas_of_internal(
    there: Mapping[str, Mapping[str, Any]], n_wanted: int
) -> Iterable[str]:
    """Topics of the cluster's own with fewer replicas than ours have."""
    for name in INTERNAL:
        if name in there:
            fewest = fewest_replicas(there[name])
            if fewest < n_wanted:
                yield (
                    f"topic {name} must have {n_wanted} replicas, as ours have; it has "
                    f"{fewest}: add them with kafka-reassign-partitions.sh; while its "
                    "only brokers are away nobody can commit"
                )


def fewest_replicas(described: Mapping[str, Any]) -> int:
    """Of any partition of a topic."""
    return min(len(each["replica_nodes"]) for each in described["partitions"])


def _partitions(those: Sequence[Mapping[str, Any]], one: str, several: str) -> str:
    numbers = sorted(each["partition_index"] for each in those)
    if len(numbers) == 1:
        return f"partition {numbers[0]} {one}"
    return f"partitions {_listed(numbers)} {several}"


def _lacking(those: Sequence[Mapping[str, Any]]) -> str:
    away, late = _missing(those)
    told = [f"{_brokers(away)}, away"] if away else []
    return " and ".join([*told, *([f"{_brokers(late)}, behind"] if late else [])])


def _start(those: Sequence[Mapping[str, Any]]) -> str:
    away, late = _missing(those)
    if away:
        return f"start {_brokers(away)}"
    return f"see why {_brokers(late)} cannot keep up" if late else "wait for one"


def _missing(those: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[int]]:
    """Brokers whose replicas are not in sync: those that are away, and the others."""
    lacking = {
        node
        for each in those
        for node in set(each["replica_nodes"]) - set(each["isr_nodes"])
    }
    # Without a leader the last one in sync is still named so, and is away.
    away = {node for each in those for node in each["offline_replicas"]}
    return sorted(away), sorted(lacking - away)


def _brokers(nodes: Sequence[int]) -> str:
    if len(nodes) == 1:
        return f"broker {nodes[0]}"
    return f"brokers {_listed(nodes)}"


def _listed(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last
