"""The whole recount: the log joined and counted again, and held against the rest."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    EventRecord,
    Impression,
    Interaction,
    decode_event_record,
)
from rankstream.wire.routing import route_of_query
from streams.recount.differences import (
    Verdict,
    compare_counted,
    compare_scopes,
    compare_sums,
    compare_weights,
)
from streams.recount.interactions_log import InteractionsLog
from streams.recount.join import OUTCOMES, SlowJoin
from streams.recount.query_counts import count_query
from streams.recount.rules import Closed, Rules, Split
from streams.recount.scopes import Counted, Scopes
from streams.recount.weights import CURVES, ItemWeights, weights_of


class Found(NamedTuple):
    """What the pipeline says of one partition of the log.

    `checkpoint_offset` is the last record that its statistics and outcomes hold,
    `position_offset` the last one whose outputs were written; -1 for none. `splits`
    are those that it went through, oldest first.
    """

    checkpoint_offset: int
    position_offset: int
    outcomes: dict[str, int] | None
    splits: tuple[Split, ...] = ()


WeightsOf = Callable[[str, str], dict[str, ItemWeights] | None]
"""Gives stored weights of a query under a curve."""


def _nothing_known(_: str, __: str) -> None:
    return None


ScopesOf = Callable[[str], Scopes]
"""Gives the stored scopes of a query."""


class Statistics(NamedTuple):
    """Stored statistics: the queries that there are, and the scopes of each.

    `strays` names records that belong to no scope, `counted` what is said of each
    partition of the log (of a dump, which has one value of a key, of one of them).
    `weights_of` gives what corrects clicks of a query under a curve of
    `streams.recount.weights`; None where nobody knows.
    """

    queries: set[str]
    scopes_of: ScopesOf
    strays: Sequence[str] = ()
    counted: Mapping[int, Counted] = {}
    weights_of: WeightsOf = _nothing_known


def recount(
    log: Iterable[tuple[int, int, bytes]],
    found: dict[int, Found],
    statistics: Statistics,
    interactions: Iterable[tuple[int, bytes]] | None,
    rules: Rules,
) -> Verdict:
    """Count a log again and compare.

    What was found must have been read before the log is, so that the log reaches
    further.

    Parameters
    ----------
    log
        Partition, offset and value of the records of `events`, partition by
        partition, each in the order of its offsets.
    found
        By partition of the log.
    interactions
        Partition and value of the records of `interactions`; None where there are
        none to compare with.

    Raises
    ------
    SchemaRefused
        Where another release wrote either log.
    """
    verdict = Verdict()
    written = None
    if interactions is not None:
        written = InteractionsLog(interactions, verdict)
    log_counts = LogCounts(statistics, verdict)
    for partition, records in groupby(log, key=itemgetter(0)):
        one = log_counts.children.pop(partition, None)
        if one is None:
            one = Partition(partition, found, rules, written, verdict)
        for _, offset, value in records:
            where = f"events[{partition}]@{offset}"
            one.take(offset, decode_event_record(value, where))
        log_counts.take(one)
    log_counts.conclude()
    if written is not None:
        written.conclude()
    return verdict


class LogCounts:
    """What of the statistics the partitions of the log explain.

    Attributes
    ----------
    children
        Partitions that others were divided into, until their own log was taken.
    """

    def __init__(self, statistics: Statistics, verdict: Verdict) -> None:
        self.children: dict[int, Partition] = {}
        self._statistics = statistics
        self._verdict = verdict
        self._queries: set[str] = set()
        self._partitions: set[int] = set()
        self._sums: dict[int, list[tuple[str, Counted, Counted]]] = {}

    def take(self, one: "Partition") -> None:
        """Compare a partition whose log has ended."""
        self.children |= one.divided_to_the_end()
        one.compare_outcomes()
        self._partitions.add(one.number)
        self._queries |= one.by_query.keys()
        sums = one.compare_statistics(self._statistics)
        if sums is not None:
            self._sums.setdefault(one.first, []).append(sums)

    def conclude(self) -> None:
        """Compare what needs all of the log."""
        while self.children:  # of which the log has nothing yet
            self.take(self.children.pop(min(self.children)))
        for parts in self._sums.values():
            compare_sums(parts, self._verdict)
        statistics, verdict = self._statistics, self._verdict
        for query in sorted(statistics.queries - self._queries):
            verdict.find("extra", f"query {query!r}")
        for stray in statistics.strays:
            verdict.find("extra", stray)
        for source in sorted(statistics.counted.keys() - self._partitions):
            n_found = statistics.counted[source].interactions
            verdict.compare(f"interactions counted of events[{source}]", 0, n_found)


class Partition:
    """One partition of the log: joined to its end, counted up to the checkpoint.

    Parameters
    ----------
    found
        By partition of the log.

    Attributes
    ----------
    first
        The partition that this one, and others, were divided from.
    """

    def __init__(
        self,
        number: int,
        found: Mapping[int, Found],
        rules: Rules,
        written: InteractionsLog | None,
        verdict: Verdict,
    ) -> None:
        self.number = self.first = number
        self.by_query: dict[str, list[Closed]] = {}
        self.leaving: list[int] = []
        self.join = SlowJoin(rules, self._close, self._enter)
        self._all_found = found
        self._found = found.get(number, Found(-1, -1, None))
        self._splits = list(self._found.splits)
        self._heirs: dict[int, Partition] = {}
        self._rules = rules
        self._written = written
        self._verdict = verdict
        self._sequences: dict[int, int] = {}
        self._offset = -1
        self._watermark_ms: int | None = None
        self._oldest_closed = sys.maxsize
        self._outcomes = dict.fromkeys(OUTCOMES, 0)

    def take(self, offset: int, record: EventRecord) -> None:
        """Take the next record."""
        while self._splits and offset > self._splits[0].offset:
            self._divide(self._splits.pop(0))
        self._offset = offset
        expected = self._sequences.get(record.source, 0) + 1
        if record.sequence != expected:
            kind = "lost" if record.sequence > expected else "double"
            self._verdict.find(
                kind,
                f"events[{self.number}]@{offset}: record {record.sequence} of source "
                f"{record.source} after {expected - 1}",
            )
        self._sequences[record.source] = record.sequence
        before = self.join.outcomes["consumed"]
        self.join.take(record.elements)
        self._verdict.n_events += self.join.outcomes["consumed"] - before
        if offset <= self._found.checkpoint_offset:
            self._outcomes = self.join.outcomes | self.join.excluded

    def divided_to_the_end(self) -> dict[int, "Partition"]:
        """Hear that its log has ended; gives those that it was divided into."""
        while self._splits:
            self._divide(self._splits.pop(0))
        return self._heirs

    def inherit(self, other: "Partition", n_partitions: int) -> None:
        """Begin where another partition was divided, with what is of its queries."""
        self.first = other.first
        self.leaving = other.leaving.copy()
        self._watermark_ms = other._watermark_ms  # noqa: SLF001  one of these too
        self._oldest_closed = other._oldest_closed  # noqa: SLF001
        for query in list(other.by_query):
            if route_of_query(query) % n_partitions == self.number:
                self.by_query[query] = other.by_query.pop(query)
        self._outcomes = self.join.outcomes | self.join.excluded

    def _divide(self, split: Split) -> None:
        made = {
            number: Partition(
                number, self._all_found, self._rules, self._written, self._verdict
            )
            for number in split.children(self.number)
        }
        n_after, own = split.n_after, self.number
        joins = {number: child.join for number, child in made.items()}
        self.join.hand_over(
            joins, lambda route: own if route is None else route % n_after
        )
        for child in made.values():
            child.inherit(self, n_after)
        self._outcomes = self.join.outcomes | self.join.excluded
        self._heirs |= made

    def compare_outcomes(self) -> None:
        """Hold the outcomes at the checkpoint against those that were counted."""
        where = f"events[{self.number}]"
        if self._offset < self._found.position_offset - 1:
            self._verdict.find("lost", f"{where}: the log ends at {self._offset}")
        if self._found.outcomes is not None:
            found = {name: self._found.outcomes.get(name, 0) for name in self._outcomes}
            self._verdict.compare_all(where, self._outcomes, found)

    def compare_statistics(
        self, statistics: Statistics
    ) -> tuple[str, Counted, Counted] | None:
        """Hold what is stored of this partition's queries against the count.

        Returns
        -------
        The sums that were expected and found, with their place, for whoever compares
        those of a partition that was divided; None where none were found.
        """
        rules, counted = self._rules, Counted(watermark_ms=self._watermark_ms)
        counted.settings = (rules.groups, rules.keep_ms, rules.classes, rules.reward)
        for query, impressions in self.by_query.items():
            expected = count_query(impressions, self.leaving, rules, counted)
            of_query = Verdict()
            compare_scopes(query, expected, statistics.scopes_of(query), of_query)
            # What is made of other counts is another as well, and says no more.
            if of_query.is_clean:
                _compare_weights(query, expected, statistics, of_query)
            self._verdict.add(of_query)
        where = f"counted of events[{self.number}]"
        found = statistics.counted.get(self.number)
        if found is not None:
            compare_counted(where, counted, found, self._verdict)
            return where, counted, found
        if self._found.outcomes is not None or not statistics.counted:
            self._verdict.compare(where, counted.interactions, 0)
        return None

    def _close(self, interaction: Interaction) -> None:
        if self._written is not None:
            target = target_of(interaction.impression.model, self._rules.n_targets)
            is_due = self._offset <= self._found.position_offset
            self._written.compare(self.number, target, interaction, is_due=is_due)
        if self._offset <= self._found.checkpoint_offset:
            query = interaction.impression.query_id
            closed = closed_of(interaction, len(self.leaving), self._rules)
            era = closed.at_ms // self._rules.keep_ms
            self._oldest_closed = min(self._oldest_closed, era)
            self.by_query.setdefault(query, []).append(closed)

    def _enter(self, watermark_ms: int) -> None:
        if self._offset > self._found.checkpoint_offset:
            return
        self._watermark_ms = watermark_ms
        # An era leaves as long after its end as it lasted; so does what closes later.
        least = watermark_ms // self._rules.keep_ms - 1
        if not self.leaving or least > self.leaving[-1] or self._oldest_closed < least:
            self.leaving.append(least)
        self._oldest_closed = sys.maxsize


def _compare_weights(
    query: str, expected: Scopes, statistics: Statistics, verdict: Verdict
) -> None:
    """Hold what corrects clicks of a query against the count, under each curve."""
    for curve in CURVES:
        found = statistics.weights_of(query, curve)
        if found is not None:
            label = f"{query!r:.60} under {curve}"
            compare_weights(label, weights_of(expected, curve), found, verdict)


def closed_of(interaction: Interaction, n_left: int, rules: Rules) -> Closed:
    """What the statistics need of an interaction."""
    impression = interaction.impression
    marks = {
        (rules.actions.get(mark.action, "click"), mark.position)
        for mark in interaction.clicks
    }
    return Closed(
        n_left,
        impression.at_ms,
        impression.unit % rules.groups,
        impression.policy,
        impression.is_open_set,
        impression.intervention,
        impression.candidates,
        _material_of(impression),
        impression.shown,
        tuple(sorted(rank for name, rank in marks if name == rules.reward)),
        tuple(
            sorted(
                (rules.classes.index(name), rank)
                for name, rank in marks
                if name != rules.reward
            )
        ),
    )


def _material_of(impression: Impression) -> bytes:
    materials = {
        PLACKETT_LUCE: impression.scores,
        DETERMINISTIC: impression.shown,
        TAIL_SHUFFLE: impression.shown[:-2],
        LOGGED: impression.exposures,
    }
    return materials.get(impression.policy, b"")


def target_of(model: str, n_targets: int) -> int:
    """The partition of `interactions` that a model's are in."""
    digest = hashlib.blake2b(model.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % n_targets
