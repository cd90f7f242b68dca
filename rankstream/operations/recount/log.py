"""The canonical log counted again, from Kafka or from a dumped file."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from producers.formats.canonical_dump import read_dump, read_header
from rankstream.operations.answers.folders import statistics_in
from rankstream.operations.recount.stored_statistics import stored
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, INTERACTIONS, STATISTICS
from streams.fold.segments import STATE_TOPIC
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.partition_fold import partition_fold
from streams.recount.differences import Verdict
from streams.recount.recount import Found, recount
from streams.recount.rules import Rules, Split, rules_of
from streams.repartitioning.log_split import splits_of
from streams.stage import Change
from streams.statistics import keys


def recount_topics(settings: Settings) -> Verdict:
    """Count the log in Kafka again; a worker may go on meanwhile."""
    # Kafka's client is not loaded for a file.
    from producers.topic_reader import TopicReader, read_topic  # noqa: PLC0415
    from rankstream.operations.answers.installation.health import (  # noqa: PLC0415
        accepted_losses,
        loss_in_words,
    )

    with TopicReader(settings) as reader:
        losses = accepted_losses(reader)
    state = steady_state(settings)
    statistics = stored(state.statistics())
    interactions = (
        (partition, value or b"")
        for partition, _, _, value in read_topic(settings, INTERACTIONS)
    )
    log = (
        (partition, offset, value or b"")
        for partition, offset, _, value in read_topic(settings, EVENTS)
    )
    verdict = recount(
        log, state.found(settings), statistics, interactions, rules_of(settings)
    )
    verdict.accepted_losses = [loss_in_words(loss) for loss in losses]
    return verdict


def recount_dump(events: Path, folder: Path, rules: Rules) -> Verdict:
    """Count a dumped log again; there is nothing but statistics to compare with."""
    from streams.local import read_changes  # noqa: PLC0415  Kafka needs no such file

    values = list(read_changes(statistics_in(folder)))
    _check_settings(values, rules)
    whole = Found(sys.maxsize, -1, None)
    found = dict.fromkeys(range(read_header(events).n_partitions), whole)
    return recount(_in_order(events), found, stored(values), None, rules)


def _check_settings(values: Iterable[tuple[bytes, bytes]], rules: Rules) -> None:
    """Refuse settings under which every count would be another."""
    for key, value in values:
        if keys.decode(key)[0] != "counted":
            continue
        was = keys.decode_counted(value)
        for name, then, now in (
            ("statistics.groups", was.groups, rules.groups),
            ("time.keep_ms", was.keep_ms, rules.keep_ms),
            ("statistics.reward", was.reward, rules.reward),
            ("statistics.actions", dict(was.actions), rules.actions),
        ):
            if then != now:
                raise ValueError(
                    f"{name} must be what the statistics were counted under, {then!r}; "
                    f"got {now!r}: name the settings of the replay with --config"
                )


def _in_order(dump: Path) -> Iterator[tuple[int, int, bytes]]:
    """Partition, number and value of each record, one partition after another."""
    seen: list[int] = []
    for number, (partition, value) in enumerate(read_dump(dump)):
        if partition not in seen[-1:]:
            if partition in seen:
                raise ValueError(
                    "a dump must have one partition after another to be counted "
                    f"again; got partition {partition} again, behind {seen[-1]}, at "
                    f"record {number} of {dump}: take one that `rankstream dump` wrote"
                )
            seen.append(partition)
        yield partition, number, value


ATTEMPTS = 20
BETWEEN_S = 0.5


class FoldState:
    """The fold's state topics, the last value of each key of each partition."""

    def __init__(self, settings: Settings) -> None:
        from producers.topic_reader import read_topic  # noqa: PLC0415

        self._of: dict[int, dict[tuple[str, bytes], bytes]] = {}
        self.positions = positions_of(settings)
        for topic in (STATISTICS, STATE_TOPIC):
            for partition, _, key, value in read_topic(settings, topic):
                of_it = self._of.setdefault(partition, {})
                place = (topic, key or b"")
                if value:
                    of_it[place] = value
                else:
                    of_it.pop(place, None)
        after = positions_of(settings)
        self.is_steady = {
            p: checkpoint for p, (checkpoint, _) in self.positions.items()
        } == {p: checkpoint for p, (checkpoint, _) in after.items()}

    def statistics(self) -> list[tuple[bytes, bytes]]:
        """Keys and values of statistics; what was counted once for each partition."""
        return [
            (key, value)
            for _, of_it in sorted(self._of.items())
            for (topic, key), value in sorted(of_it.items())
            if topic == STATISTICS
        ]

    def found(self, settings: Settings) -> dict[int, Found]:
        """What the state says of each partition."""
        from producers.topic_reader import TopicReader  # noqa: PLC0415
        from rankstream.operations.recount.referred_log import (  # noqa: PLC0415
            referred_records,
        )

        with TopicReader(settings) as reader:
            log = {
                partition: [*referred_records(reader, partition, of_it)]
                for partition, of_it in self._of.items()
            }
        found = {}
        for partition, (checkpoint_offset, offset) in self.positions.items():
            fold = partition_fold(partition, settings)
            values = self._of.get(partition, {})
            state = (
                Change(topic, key, value)
                for (topic, key), value in values.items()
                if key != POSITION_KEY
            )
            fold.restore([*state, *log.get(partition, ())])
            splits = tuple(Split(*each) for each in splits_of(values))
            found[partition] = Found(checkpoint_offset, offset, fold.counters(), splits)
        return found


def steady_state(settings: Settings) -> FoldState:
    """The state as it was at one checkpoint of each partition."""
    for _ in range(ATTEMPTS):
        state = FoldState(settings)
        if state.is_steady:
            return state
        time.sleep(BETWEEN_S)
    raise RuntimeError(
        "the state must stand still while it is read; it moved each time: stop the "
        "worker, or raise delivery.state_s"
    )


def positions_of(settings: Settings) -> dict[int, tuple[int, int]]:
    """Checkpoint and offset of the fold's resume position, by partition."""
    from producers.topic_reader import read_topic  # noqa: PLC0415

    positions: dict[int, tuple[int, int]] = {}
    for partition, _, key, value in read_topic(settings, STATE_TOPIC):
        if key == POSITION_KEY and value:
            position = decode_position(value)
            positions[partition] = (position.checkpoint_offset, position.offset)
    return positions
