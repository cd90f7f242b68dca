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
    decode_interaction_record,
    encode_record,
)
from streams.recount.differences import (
    Verdict,
    compare_counted,
    compare_scopes,
    compare_weights,
)
from streams.recount.join import OUTCOMES, SlowJoin
from streams.recount.query_counts import count_query
from streams.recount.rules import Closed, Rules
from streams.recount.scopes import Counted, Scopes
from streams.recount.weights import CURVES, ItemWeights, weights_of

DIGEST = 8


class Found(NamedTuple):
    """What the pipeline says of one partition of the log.

    `checkpoint_offset` is the last record that its statistics and outcomes hold,
    `position_offset` the last one whose outputs were written; -1 for none.
    """

    checkpoint_offset: int
    position_offset: int
    outcomes: dict[str, int] | None


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
    queries: set[str] = set()
    partitions: set[int] = set()
    for partition, records in groupby(log, key=itemgetter(0)):
        state = found.get(partition, Found(-1, -1, None))
        one = Partition(partition, state, rules, written, verdict)
        for _, offset, value in records:
            where = f"events[{partition}]@{offset}"
            one.take(offset, decode_event_record(value, where))
        one.compare_outcomes()
        partitions.add(partition)
        queries |= one.by_query.keys()
        one.compare_statistics(statistics)
    for query in sorted(statistics.queries - queries):
        verdict.find("extra", f"query {query!r}")
    for stray in statistics.strays:
        verdict.find("extra", stray)
    for source in sorted(statistics.counted.keys() - partitions):
        n_found = statistics.counted[source].interactions
        verdict.compare(f"interactions counted of events[{source}]", 0, n_found)
    if written is not None:
        written.conclude()
    return verdict


class InteractionsLog:
    """Digests of what stands in `interactions`, by partition of the log and target.

    Numbers that are missing, repeated or out of order are noted at once.
    """

    def __init__(self, records: Iterable[tuple[int, bytes]], verdict: Verdict) -> None:
        self._verdict = verdict
        self._digests: dict[tuple[int, int], bytearray] = {}
        self._n_expected: dict[tuple[int, int], int] = {}
        for target, value in records:
            self._take(target, value)

    def _take(self, target: int, value: bytes) -> None:
        batch = decode_interaction_record(value, f"interactions[{target}]")
        digests = self._digests.setdefault((batch.source, target), bytearray())
        number = batch.first_sequence
        for interaction in batch.interactions:
            present = len(digests) // DIGEST
            where = f"interaction {number} of {batch.source} in {target}"
            if number <= present:
                self._verdict.find("double", f"{where}: written again")
            else:
                if number > present + 1:
                    n_missing = number - present - 1
                    self._verdict.find(
                        "lost", f"{where}: {n_missing} before it missing"
                    )
                    digests += bytes(DIGEST * n_missing)
                digests += digest_of(interaction)
            number += 1

    def compare(
        self, source: int, target: int, interaction: Interaction, *, is_due: bool
    ) -> None:
        """Compare the next interaction; if it is due it must be there."""
        place = (source, target)
        number = self._n_expected.get(place, 0)
        self._n_expected[place] = number + 1
        digests = self._digests.get(place, b"")
        written = bytes(digests[DIGEST * number : DIGEST * (number + 1)])
        where = f"interaction {number + 1} of {source} in {target}"
        if not written:
            if is_due:
                self._verdict.find("lost", where)
        elif written != digest_of(interaction) and written != bytes(DIGEST):
            name = interaction.impression.impression_id
            self._verdict.find("wrong", f"{where}: must be {name!r:.80} and its clicks")

    def conclude(self) -> None:
        """Note what the log does not explain."""
        for place, digests in self._digests.items():
            n_extra = len(digests) // DIGEST - self._n_expected.get(place, 0)
            if n_extra > 0:
                self._verdict.find("extra", f"interactions of {place}", n_extra)


class Partition:
    """One partition of the log: joined to its end, counted up to the checkpoint."""

    def __init__(
        self,
        number: int,
        found: Found,
        rules: Rules,
        written: InteractionsLog | None,
        verdict: Verdict,
    ) -> None:
        self.by_query: dict[str, list[Closed]] = {}
        self.leaving: list[int] = []
        self._number = number
        self._found = found
        self._rules = rules
        self._written = written
        self._verdict = verdict
        self._join = SlowJoin(rules, self._close, self._enter)
        self._sequences: dict[int, int] = {}
        self._offset = -1
        self._watermark_ms: int | None = None
        self._oldest_closed = sys.maxsize
        self._outcomes = dict.fromkeys(OUTCOMES, 0)

    def take(self, offset: int, record: EventRecord) -> None:
        """Take the next record."""
        self._offset = offset
        expected = self._sequences.get(record.source, 0) + 1
        if record.sequence != expected:
            kind = "lost" if record.sequence > expected else "double"
            self._verdict.find(
                kind,
                f"events[{self._number}]@{offset}: record {record.sequence} of source "
                f"{record.source} after {expected - 1}",
            )
        self._sequences[record.source] = record.sequence
        before = self._join.outcomes["consumed"]
        self._join.take(record.elements)
        self._verdict.n_events += self._join.outcomes["consumed"] - before
        if offset <= self._found.checkpoint_offset:
            self._outcomes = dict(self._join.outcomes)

    def compare_outcomes(self) -> None:
        """Hold the outcomes at the checkpoint against those that were counted."""
        where = f"events[{self._number}]"
        if self._offset < self._found.position_offset - 1:
            self._verdict.find("lost", f"{where}: the log ends at {self._offset}")
        if self._found.outcomes is not None:
            found = {name: self._found.outcomes.get(name, 0) for name in OUTCOMES}
            self._verdict.compare_all(where, self._outcomes, found)

    def compare_statistics(self, statistics: Statistics) -> None:
        """Hold what is stored of this partition's queries against the count."""
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
        where = f"counted of events[{self._number}]"
        found = statistics.counted.get(self._number)
        if found is not None:
            compare_counted(where, counted, found, self._verdict)
        elif self._found.outcomes is not None or not statistics.counted:
            self._verdict.compare(where, counted.interactions, 0)

    def _close(self, interaction: Interaction) -> None:
        if self._written is not None:
            target = target_of(interaction.impression.model, self._rules.n_targets)
            is_due = self._offset <= self._found.position_offset
            self._written.compare(self._number, target, interaction, is_due=is_due)
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


def digest_of(interaction: Interaction) -> bytes:
    """What two equal interactions share."""
    return hashlib.blake2b(encode_record(interaction), digest_size=DIGEST).digest()
