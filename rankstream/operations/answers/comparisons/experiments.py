"""Comparisons of rankers: what clients follow, and what came out."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from producers.readiness import why_no_kafka
from rankstream.experiment_publication import Counted, check_drawable, planned
from rankstream.experiment_records import (
    ExperimentRecord,
    decode_record,
    encode_record,
    put_records,
    stored_records,
)
from rankstream.operations.answers.as_builtins import Answer, types_of
from rankstream.settings import ExperimentSettings, Settings
from rankstream.snapshots import SnapshotStore
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.topics import EVALUATIONS, EXPERIMENTS, PREFERENCES
from rankstream.wire.verdicts import Verdict, decode_verdict

MOST_OF_COURSE = 400
"""Verdicts of an epoch that are kept of its course."""

if TYPE_CHECKING:
    from streams.comparisons.comparison import Comparison as Sums


@dataclass(frozen=True)
class Comparison(Answer):
    """An experiment of the settings, or one that clients follow.

    Parameters
    ----------
    clients
        What they follow, and what is to be done where that is not this.
    """

    name: str
    settings: ExperimentSettings
    clients: str

    def to_dict(self) -> dict[str, Any]:
        """Its name, its settings, and what clients do."""
        fields: dict[str, Any] = msgspec.to_builtins(self.settings)
        return {"name": self.name, **fields, "clients": self.clients}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {"name": str, **types_of(ExperimentSettings), "clients": str}


@dataclass(frozen=True)
class Judged(Answer):
    """The verdict on an experiment.

    Parameters
    ----------
    verdict
        None where no list of it is counted yet.
    why
        There is none, in words.
    refused
        Epochs that were asked for and cannot be read, and why.
    sums
        What the verdict is of.
    """

    verdict: Verdict | None
    why: str
    refused: Mapping[int, str]
    sums: "Sums | None" = None


def comparisons(
    settings: Settings, store: SnapshotStore
) -> tuple[list[Comparison], dict[str, str]]:
    """All experiments by name, and why records of others are refused.

    Raises
    ------
    StoreUnavailable
    """
    stored, refused = stored_records(store)
    followed = {name for name, record in stored.items() if record.settings}
    names = sorted({*settings.experiments, *followed})
    found = [
        _comparison(name, settings.experiments.get(name), stored.get(name))
        for name in names
    ]
    return [each for each in found if each is not None], dict(refused)


def _comparison(
    name: str,
    wanted: ExperimentSettings | None,
    record: ExperimentRecord | None,
) -> Comparison | None:
    stored = record.settings if record else None
    shown = wanted or stored
    if stored is None:
        clients = "not published"
        if wanted is not None and record is not None and wanted.epoch <= record.epoch:
            clients = f"epoch {record.epoch} was removed: raise the epoch"
    elif wanted is None:
        clients = "not in the settings"
    elif wanted == stored:
        clients = "follow"
    elif wanted.epoch > stored.epoch:
        clients = f"follow epoch {stored.epoch}"
    else:
        clients = f"follow other settings, of epoch {stored.epoch}: raise the epoch"
    return None if shown is None else Comparison(name, shown, clients)


def publish(settings: Settings, store: SnapshotStore) -> dict[str, str]:
    """The settings into the topic and, as it has them, into Redis; what became of each.

    The topic comes first: the role `publish` brings to Redis what a stop leaves.
    """
    # Kafka's client is loaded only where it is needed.
    from producers.brokers.cluster import KafkaAway  # noqa: PLC0415
    from producers.event_producer import send_records  # noqa: PLC0415

    why = why_no_kafka(settings.kafka)
    if why:
        raise KafkaAway(
            f"Kafka must answer at {settings.kafka.bootstrap}, as its topic keeps the "
            f"experiments; {why}; nothing was published"
        )
    logged, held = _logged(settings), stored_records(store).records
    # An older release wrote to Redis alone; what the topic knows goes before that.
    verdicts, records = planned(
        held | logged, settings.experiments, lambda: _counted(settings)
    )
    news = _differing(records, logged)
    values = [(name.encode(), encode_record(name, each)) for name, each in news.items()]
    if values:
        send_records(settings, EXPERIMENTS, values)
    put_records(store, _differing(records, held))
    return verdicts


def _differing(
    records: Mapping[str, ExperimentRecord], held: Mapping[str, ExperimentRecord]
) -> dict[str, ExperimentRecord]:
    """Those that are not held already."""
    return {name: each for name, each in records.items() if held.get(name) != each}


def _logged(settings: Settings) -> dict[str, ExperimentRecord]:
    """The last record of each experiment in the topic."""
    found = {}
    for key, value in _last_values(settings, EXPERIMENTS).items():
        try:
            found[key.decode()] = decode_record(value)
        except ValueError as error:
            raise ValueError(
                f"the record of experiment {key!r} in the topic must be readable; "
                f"{error}; if nobody can have published it, write a record without "
                "a value under that key"
            ) from error
    return found


def _counted(settings: Settings) -> Counted:
    """Epochs that lists were counted under; none where there are no topics yet."""
    # The science is loaded only where it is needed.
    from streams.comparisons.preference_fold import read_records  # noqa: PLC0415

    found = read_records(_last_values(settings, PREFERENCES, may_be_missing=True))
    counted: dict[str, dict[int, ExperimentSettings | None]] = {}
    for each in found.comparisons:
        counted.setdefault(each.name, {})[each.settings.epoch] = each.settings
    for name, epoch in found.refused:
        counted.setdefault(name, {})[epoch] = None
    return counted


def _last_values(
    settings: Settings, topic: str, *, may_be_missing: bool = False
) -> dict[bytes, bytes]:
    """The last value of each key of a topic."""
    # Kafka's client is loaded only where it is needed.
    from producers.topic_reader import TopicReader  # noqa: PLC0415

    values: dict[bytes, bytes] = {}
    with TopicReader(settings) as reader:
        if may_be_missing and not reader.partitions(topic):
            return values
        for record in reader.records(topic):
            if record.key is not None and record.value is not None:
                values[record.key] = record.value
            elif record.key is not None:
                values.pop(record.key, None)
    return values


def check_foldable(settings: Settings) -> None:
    """Refuse what clients cannot draw or the fold cannot count."""
    wanted = sorted(settings.experiments.items())
    for name, experiment in wanted:
        try:
            check_drawable(name, experiment)
        except ValueError as error:
            where = f"; in {settings.file}" if settings.file else ""
            raise ValueError(f"{error}{where}") from error
    # The science is loaded only where it is needed, and compiles.
    from streams.comparisons.comparison import Comparison  # noqa: PLC0415

    for name, experiment in wanted:
        Comparison(name, experiment)


def judged(settings: Settings, name: str, epoch: int | None) -> Judged:
    """The verdict on an experiment, of an epoch or of the last one.

    Raises
    ------
    TopicUnreadable
    """
    # The science is loaded only where it is needed.
    from streams.comparisons.preference_fold import (  # noqa: PLC0415
        read_outcomes,
        read_records,
    )
    from streams.comparisons.verdicts import verdict_of  # noqa: PLC0415

    def is_asked_for(place: tuple[str, int]) -> bool:
        return place[0] == name and epoch in (None, place[1])

    values = _last_values(settings, PREFERENCES)
    records = read_records(values)
    refused = {
        place[1]: why
        for place, why in sorted(records.refused.items())
        if is_asked_for(place)
    }
    found = [
        each
        for each in records.comparisons
        if is_asked_for((each.name, each.settings.epoch))
    ]
    if not found:
        known = {*settings.experiments, *(each.name for each in records.comparisons)}
        return Judged(None, _what_is_missing(known, name, epoch), refused)
    verdict = verdict_of(found[-1], read_outcomes(values))
    return Judged(verdict, "", refused, found[-1])


def course(settings: Settings, verdict: Verdict) -> list[Verdict]:
    """Verdicts that were given on the same epoch before, oldest first, and this one.

    Of very many every second one is left out, again and again.

    Raises
    ------
    TopicUnreadable
    """
    # Kafka's client is loaded only where it is needed.
    from producers.topic_reader import TopicReader  # noqa: PLC0415

    key, place = verdict.experiment.encode(), (verdict.experiment, verdict.epoch)
    found: list[Verdict] = []
    with TopicReader(settings) as reader:
        # Nobody may have judged yet, nor created the topic.
        given = reader.records(EVALUATIONS) if reader.partitions(EVALUATIONS) else ()
        for record in given:
            if record.key != key or record.value is None:
                continue
            with contextlib.suppress(msgspec.DecodeError):  # of another release
                before = decode_verdict(record.value)
                if (before.experiment, before.epoch) == place:
                    found.append(before)
            if len(found) > MOST_OF_COURSE:
                found = found[::2]
    return found if found[-1:] == [verdict] else [*found, verdict]


def _what_is_missing(known: set[str], name: str, epoch: int | None) -> str:
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        meant = suggestion(name, known)
        return (
            f"an experiment must be known; {name!r} is not; there are: {there}{meant}"
        )
    of_epoch = "" if epoch is None else f" of epoch {epoch}"
    return (
        f"an experiment must have lists{of_epoch} whose click window has closed; "
        f"{name!r} has none yet"
    )
