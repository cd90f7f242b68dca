"""The fold of closed impressions into preferences between compared rankers.

What is kept of each (experiment, epoch) is said in `comparison`. All of it adds up,
so that partitions may be merged in any order, to the last bit. What compares is loaded
where there is an experiment: it is compiled, and most folds have none. Beside it lie
the lists of each intervention of models whose versions are deployed, and those of both
arms of canaries, as `intervention_lists` and `canary_lists` say.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rankstream.wire.events import Interaction
from rankstream.wire.schemas import SchemaRefused, check_schema
from rankstream.wire.topics import PREFERENCES
from streams.comparisons.canary_lists import CanaryLists, tag_of
from streams.comparisons.extra import SCHEMA, experiment_of, extra_of
from streams.comparisons.intervention_lists import (
    UNCOUNTED,
    InterventionLists,
    name_of,
)
from streams.native.closed_impressions import Closed
from streams.native.comparing import count_compared
from streams.native.intervention_lists import Rules
from streams.stage import Change, LogRefused, Output
from streams.state_pieces import Parts

if TYPE_CHECKING:
    from rankstream.configuration.experiments import ExperimentSettings
    from streams.comparisons.comparison import Comparison
    from streams.comparisons.logged_lists import ListReader
    from streams.comparisons.plain_lists import PlainLists

COUNTS = b"\x92\xa6counts"
"""How the keys of counts begin; the partition follows."""

COUNTED = "the counts of comparisons"

MARK = b"experiment"
"""What `extra` holds where an impression takes part."""

UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    SchemaRefused,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""What comes of records of other versions: others do not wait for their mending."""

Counts = tuple[int, int, int, dict[str, int]]
"""Schema, impressions of experiments, those of unknown ones, outcomes of events."""

_encode = msgspec.msgpack.Encoder().encode


class ExperimentChanged(LogRefused):
    """An experiment was changed under the epoch that its sums were kept by.

    Operator action: raise `epoch` of the experiment in the settings.
    """


class PreferencesFold:
    """Preferences of one partition of the canonical log.

    Parameters
    ----------
    experiments
        Those of the settings. Earlier epochs that the state knows go on counting.
    trained
        Models whose interventions are counted, if there are any.
    canaries
        Counts those of canaries, if there are models that may have one.
    """

    topic = PREFERENCES

    def __init__(
        self,
        experiments: Mapping[str, ExperimentSettings],
        partition: int,
        trained: Rules | None = None,
        canaries: CanaryLists | None = None,
    ) -> None:
        self._partition = partition
        self.interventions = (
            None if trained is None else InterventionLists(trained, partition)
        )
        self._canaries = canaries
        self._known: dict[tuple[str, int], Comparison] = {}
        self._plain: PlainLists | None = None
        self._reader: ListReader | None = None
        self._parts = Parts()
        self._n_taken = 0
        self._n_unknown = 0
        if experiments:
            from streams.comparisons.comparison import Comparison  # noqa: PLC0415

            for name, each in sorted(experiments.items()):
                self._known[name, each.epoch] = Comparison(name, each)

    def take(self, closed: Closed) -> None:
        """Take closed impressions; those of no experiment are not even decoded."""
        if self.interventions is not None:
            self.interventions.take(closed)
        if self._canaries is not None:
            self._canaries.take(closed)
        if not closed.extras.any():
            return
        if not self._known:
            self._count(closed)
            return
        plain = self._plain
        if plain is None:
            from streams.comparisons.plain_lists import PlainLists  # noqa: PLC0415

            plain = self._plain = PlainLists(self.comparisons())
        which = plain.take(closed, 0)
        while which < len(closed):
            self._take(closed[which])
            which = plain.take(closed, which + 1)
        self._n_taken += plain.pass_on()

    def _count(self, closed: Closed) -> None:
        """Nothing is known: those of experiments are only counted."""
        first = 0
        while first < len(closed):
            first, n_compared = count_compared(closed, first)
            self._n_taken += n_compared
            self._n_unknown += n_compared
            if first < len(closed):
                self._take(closed[first])
                first += 1

    def _take(self, interaction: Interaction) -> None:
        packed = interaction.impression.extra
        if MARK not in packed:
            return
        extra = extra_of(packed)
        named = experiment_of(packed) if extra is None else extra.experiment
        if extra is not None and named is None:
            return
        self._n_taken += 1
        comparison = self._known.get((named.id, named.epoch)) if named else None
        if comparison is None:
            self._n_unknown += 1
            return
        if extra is None:
            comparison.refuse("unreadable")
            return
        if self._reader is None:
            from streams.comparisons.logged_lists import ListReader  # noqa: PLC0415

            self._reader = ListReader()
        comparison.take(interaction, extra, self._reader)

    def advance(self, watermark_ms: int) -> None:
        """Nothing here passes with time."""

    def settle(self) -> None:
        """Nothing is pending here."""

    def outputs(self) -> list[Output]:
        """All that is credited is state."""
        return []

    def comparisons(self) -> list[Comparison]:
        """Every epoch of every experiment."""
        return [comparison for _, comparison in sorted(self._known.items())]

    def changes(self, outcomes: Mapping[str, int]) -> Iterator[Change]:
        """What changed since the last call.

        Parameters
        ----------
        outcomes
            Of all events of the partition; kept for whoever judges its health.
        """
        for (name, epoch), comparison in sorted(self._known.items()):
            if not comparison.is_changed:
                continue
            comparison.is_changed = False
            key = comparison_key(name, epoch, self._partition)
            for part, value in self._parts.split(key, comparison.encoded()):
                yield Change(PREFERENCES, part, value)
        if self._n_taken:
            counts = [SCHEMA, self._n_taken, self._n_unknown, outcomes]
            key = COUNTS + _encode(self._partition)
            yield Change(PREFERENCES, key, _encode(counts))
        if self.interventions is not None:
            yield from self.interventions.changes()
        if self._canaries is not None:
            yield from self._canaries.changes()

    def restore(self, items: Iterable[Change]) -> None:
        """Take back what `changes` gave.

        Raises
        ------
        ExperimentChanged
            Where the settings differ from those of the same epoch.
        SchemaRefused
            Where another release wrote it.
        """
        latest = {
            key: value
            for topic, key, value in items
            if topic == PREFERENCES and value is not None
        }
        for key, value in self._parts.joined(latest).items():
            if key.startswith(COUNTS):
                where = f"preferences[{self._partition}], key 'counts'"
                check_schema(value, SCHEMA, COUNTED, where)
                _, self._n_taken, self._n_unknown, _ = msgspec.msgpack.decode(value)
                continue
            if self._is_of_lists(key, value):
                continue
            from streams.comparisons.comparison import decoded  # noqa: PLC0415

            _, name, epoch, _ = msgspec.msgpack.decode(key)
            found = decoded(name, value)
            known = self._known.get((name, epoch))
            if known is not None and known.settings != found.settings:
                raise ExperimentChanged(
                    f"experiments.{name} must not change within an epoch; epoch "
                    f"{epoch} was counted under other settings: raise `epoch`"
                )
            self._known[name, epoch] = found
            self._plain = None  # the arrays are others

    def _is_of_lists(self, key: bytes, value: bytes) -> bool:
        """Whether it is of lists by intervention or stage; takes it back if so."""
        interventions, canaries = self.interventions, self._canaries
        intervention, tag = name_of(key), tag_of(key)
        if interventions is not None and key.startswith(UNCOUNTED):
            interventions.restore_uncounted(value)
        elif interventions is not None and intervention is not None:
            interventions.restore(intervention, value)
        elif canaries is not None and tag is not None:
            canaries.restore(tag, value)
        return key.startswith(UNCOUNTED) or bool(intervention or tag)

    def fingerprint(self) -> bytes:
        """Counts that equal states share."""
        totals = [int(each.totals.sum()) for each in self._known.values()]
        own = struct.pack("<3q", self._n_taken, self._n_unknown, sum(totals))
        others = (self.interventions, self._canaries)
        return own + b"".join(each.fingerprint() for each in others if each)

    def counters(self) -> dict[str, int]:
        """Impressions of experiments: all, credited, refused, and of unknown ones.

        With trained models also the lists of their interventions, and how many of them
        are of ones that were not kept.
        """
        known = self._known.values()
        others = self.interventions
        lists = {}
        if others is not None:
            lists["intervention_lists"] = others.n_lists()
            lists["intervention_lists_uncounted"] = others.n_uncounted()
        if self._canaries is not None:
            lists["canary_lists"] = self._canaries.n_lists()
        return {
            "compared_impressions": self._n_taken,
            "compared_credited": sum(int(each.totals[0]) for each in known),
            "compared_refused": sum(each.n_refused for each in known),
            "compared_unknown": self._n_unknown,
            **lists,
        }


def comparison_key(name: str, epoch: int, partition: int) -> bytes:
    """Where one partition keeps its share of an (experiment, epoch)."""
    return _encode(["epoch", name, epoch, partition])


class Records(NamedTuple):
    """What the records of all partitions say.

    The experiments in order, each epoch merged, and why others, by name and epoch,
    are not among them.
    """

    comparisons: list[Comparison]
    refused: dict[tuple[str, int], str]


def read_records(values: Mapping[bytes, bytes]) -> Records:
    """The experiments, from the records of all partitions.

    An epoch of which a record cannot be read, or was counted under other settings
    than the rest, is refused as a whole: a part of it is another experiment.

    Parameters
    ----------
    values
        The last value of each key of `preferences`.
    """
    from streams.comparisons.comparison import decoded  # noqa: PLC0415

    merged: dict[tuple[str, int], Comparison] = {}
    refused: dict[tuple[str, int], str] = {}
    for key in sorted(values):
        place = _place_of(key)
        if place is None or place in refused:
            continue
        try:
            found = decoded(place[0], Parts().value(key, values))
            if place in merged:
                merged[place].merge(found)
            else:
                merged[place] = found
        except UNREADABLE as error:
            refused[place] = f"{type(error).__name__}: {error}"
            merged.pop(place, None)
    return Records([each for _, each in sorted(merged.items())], refused)


def _place_of(key: bytes) -> tuple[str, int] | None:
    """Name and epoch that a key is of; None where it is of no experiment."""
    try:
        kind, name, epoch, _ = msgspec.msgpack.decode(
            key, type=tuple[str, str, int, int]
        )
    except (ValueError, RecursionError):
        return None
    return (name, epoch) if kind == "epoch" else None


def read_outcomes(values: Mapping[bytes, bytes]) -> dict[str, int]:
    """Outcomes of the events of all partitions, and impressions of experiments.

    `compared` and `unknown`: impressions of any experiment, and of one that nobody
    has set. `unread`, where there are any: partitions whose counts are of another
    release, so that the rest is no sum of all.
    """
    total = {"compared": 0, "unknown": 0}
    for key, value in values.items():
        if key.startswith(COUNTS):
            try:
                check_schema(value, SCHEMA, COUNTED, "preferences, key 'counts'")
                counts = msgspec.msgpack.decode(value, type=Counts)
            except (SchemaRefused, ValueError, RecursionError):
                found = {"unread": 1}
            else:
                _, compared, unknown, outcomes = counts
                found = outcomes | {"compared": compared, "unknown": unknown}
            total |= {name: n + total.get(name, 0) for name, n in found.items()}
    return total
