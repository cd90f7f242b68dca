"""The canonical log counted again, from Kafka or from a dumped file."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from producers.formats.canonical_dump import read_dump, read_header
from rankstream.operations.answers.folders import statistics_in
from rankstream.operations.recount.fold_state import steady_state
from rankstream.operations.recount.stored_statistics import stored
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, INTERACTIONS
from streams.recount.differences import Verdict
from streams.recount.recount import Found, recount
from streams.recount.rules import Rules, rules_of
from streams.statistics import keys


def recount_topics(settings: Settings) -> Verdict:
    """Count the log in Kafka again; a worker may go on meanwhile."""
    # Kafka's client is not loaded for a file.
    from producers.topic_reader import TopicReader, read_topic  # noqa: PLC0415
    from rankstream.operations.answers.health import (  # noqa: PLC0415
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
