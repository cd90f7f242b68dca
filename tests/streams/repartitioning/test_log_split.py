"""Partitions that are divided go on as one log, and a recount finds nothing amiss."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from rankstream.operations.recount.stored_statistics import stored
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import (
    Click,
    Element,
    EventRecord,
    Frontier,
    Impression,
    encode_record,
)
from rankstream.wire.routing import (
    identity,
    partition_of_route,
    route_of_click,
    route_of_query,
)
from streams.fold.canonical_fold import CanonicalFold
from streams.fold.join import OUTCOMES
from streams.partition_fold import partition_fold
from streams.recount.differences import Verdict
from streams.recount.recount import Found, recount
from streams.recount.rules import Split, rules_of
from streams.repartitioning.log_split import LogSplit, divided, splits_of
from streams.repartitioning.records import divided_statistics
from streams.stage import Change, SourceRecord, referred
from streams.statistics.reader import Statistics
from tests.session.cases import n_cases
from tests.streams.recount.recounted import random_log, settings_of

N_TARGETS = 3

Values = dict[tuple[str, bytes], bytes]


class Log:
    """A log of several partitions, the folds of them, and all that they wrote."""

    def __init__(self, settings: Settings, n_partitions: int) -> None:
        self.settings = settings
        self.folds = [partition_fold(p, settings) for p in range(n_partitions)]
        self.states: list[Values] = [{} for _ in self.folds]
        self.records: list[list[bytes]] = [[] for _ in self.folds]
        self.interactions: list[tuple[int, bytes]] = []
        self.aside: list[tuple[str, bytes | None]] = []
        self.checkpoints = [-1] * n_partitions
        self.outcomes: list[dict[str, int]] = [{} for _ in self.folds]

    def take(self, elements: list[Element]) -> None:
        """Write elements of one input record, and fold what came of them."""
        n = len(self.folds)
        for number, fold in enumerate(self.folds):
            own = [one for one in elements if number_of(one, n) in (number, None)]
            if not own:
                continue
            log = self.records[number]
            value = encode_record(EventRecord(1, 0, len(log) + 1, own))
            place = SourceRecord("events", number, len(log), 0, None, value, ())
            log.append(value)
            fold.fold(place)
            for output in fold.outputs():
                if output.topic == "interactions":
                    self.interactions.append((output.partition, output.value or b""))
                else:
                    self.aside.append((output.topic, output.value))

    def checkpoint(self) -> None:
        """Write the state of every partition."""
        for number, fold in enumerate(self.folds):
            for topic, key, value in fold.changes():
                if value is None:
                    self.states[number].pop((topic, key), None)
                else:
                    self.states[number][topic, key] = value
            self.checkpoints[number] = len(self.records[number]) - 1
            self.outcomes[number] = fold.counters()

    def split(self, n_after: int) -> None:
        """Divide every partition, and go on from what was written alone."""
        n_before, states = len(self.folds), self.states
        self.checkpoint()
        self.states = [{} for _ in range(n_after)]
        for number, values in enumerate(states):
            split = LogSplit(self.checkpoints[number], n_before, n_after)
            for offset, value in enumerate(self.records[number]):
                topic, key, _ = referred("events", offset, value)
                values[topic, key] = value
            for child, changes in divided(values, number, split, self.settings).items():
                assert all(each.value is not None for each in changes)
                assert len({each[:2] for each in changes}) == len(changes)
                self.states[child] = {each[:2]: each.value or b"" for each in changes}
                assert n_missing(changes) == 0
        n_new = n_after - n_before
        self.records += [[] for _ in range(n_new)]
        self.checkpoints += [-1] * n_new
        self.folds = [
            restored(n, one, self.settings) for n, one in enumerate(self.states)
        ]
        self.outcomes = [fold.counters() for fold in self.folds]

    def verdict(self) -> Verdict:
        """What the recount says of all of it."""
        found = {
            number: Found(
                self.checkpoints[number],
                len(self.records[number]) - 1,
                self.outcomes[number],
                tuple(Split(*each) for each in splits_of(self.states[number])),
            )
            for number in range(len(self.folds))
        }
        log = [
            (number, offset, value)
            for number, values in enumerate(self.records)
            for offset, value in enumerate(values)
        ]
        values = [
            (key, value)
            for state in self.states
            for (topic, key), value in state.items()
            if topic == "statistics"
        ]
        rules = rules_of(self.settings)
        return recount(log, found, stored(values), self.interactions, rules)

    def total(self, name: str) -> int:
        """A count of all partitions."""
        return sum(fold.counters()[name] for fold in self.folds)


def restored(number: int, values: Values, settings: Settings) -> CanonicalFold:
    """The fold of a partition, taken back from what was written."""
    fold = partition_fold(number, settings)
    fold.restore(Change(*place, value) for place, value in values.items())
    return fold


def n_missing(changes: list[Change]) -> int:
    """Impressions that one partition counted, has not left, and holds in no scope."""
    of_it = [(key, value) for topic, key, value in changes if topic == "statistics"]
    statistics = Statistics(of_it)
    return statistics.n_missing(sum(n for n, _ in statistics.queries().values()))


def number_of(element: Element, n_partitions: int) -> int | None:
    """The partition that ingestion would write an element to; None for all."""
    if isinstance(element, Frontier):
        return None
    if isinstance(element, Impression):
        return partition_of_route(route_of_query(element.query_id), n_partitions)
    named = msgspec.json.decode(element.raw)
    route = route_of_click(named.get("query_id"), named["impression_id"])
    assert route is not None
    return partition_of_route(route, n_partitions)


def some_log(seed: int) -> Iterator[list[Element]]:
    """Of many queries; every third click names another query than its list."""
    queries: dict[bytes, str] = {}
    log = random_log(seed, 250)
    for record in log:
        for nth, one in enumerate(record):
            if isinstance(one, Impression):
                query = queries.setdefault(one.identity, f"q{len(queries) % 23}")
                record[nth] = msgspec.structs.replace(one, query_id=query)
    for number in range(1_000):  # clicks may name lists that come later, or never
        queries.setdefault(identity("i", f"i{number}"), f"q{number % 23}")
    n_clicks = 0
    for record in log:
        yield [
            _named(one, queries, is_wrong=n_clicks % 3 == 0)
            if isinstance(one, Click) and (n_clicks := n_clicks + 1)
            else one
            for one in record
        ]


def _named(click: Click, queries: dict[bytes, str], *, is_wrong: bool) -> Click:
    query = queries[click.impression]
    event = {
        "impression_id": "i",
        "at_ms": click.at_ms,
        "query_id": f" Q{(int(query[1:]) + 1) % 23}" if is_wrong else query,
    }
    return msgspec.structs.replace(click, raw=msgspec.json.encode(event))


def some_settings(n_targets: int = N_TARGETS) -> Settings:
    """Eras that leave, and models in several partitions."""
    kafka = KafkaSettings(learner_partitions=n_targets)
    return msgspec.structs.replace(settings_of(), kafka=kafka)


@pytest.mark.parametrize("widths", [(2, 6), (1, 16), (3, 6, 12)])
@pytest.mark.parametrize("seed", range(n_cases(2, 4)))
def test_a_log_that_was_split_is_counted_as_it_came(
    seed: int, widths: tuple[int, ...]
) -> None:
    """At any place: with what is open and what waits, and after eras that left."""
    log = Log(some_settings(), widths[0])
    places = [100 + 37 * seed + 60 * nth for nth in range(len(widths) - 1)]
    n_pending = []
    for number, elements in enumerate(some_log(seed)):
        if number in places:
            before = {n: log.total(n) for n in ("consumed", "pending", "duplicate")}
            log.split(widths[1 + places.index(number)])
            assert before == {name: log.total(name) for name in before}
            n_pending.append(before["pending"])
        log.take(elements)
        if number % 40 == 7:
            log.checkpoint()
    log.checkpoint()
    verdict = log.verdict()
    assert verdict.is_clean, verdict.differences
    assert verdict.n_events > 400
    assert min(n_pending) > 0
    outcomes = {n: log.total(n) for n in ("duplicate", "late", "orphan", "dead_letter")}
    assert min(outcomes.values()) > 0
    assert log.total("statistics_left") > 0


def test_a_split_changes_no_outcome() -> None:
    """Where clicks name the query of their list, all is as without it."""
    whole, split = Log(some_settings(1), 1), Log(some_settings(1), 1)
    for number, elements in enumerate(some_log(1)):
        right = [
            one
            for one in elements
            if not (isinstance(one, Click) and b'" Q' in one.raw)
        ]
        whole.take(right)
        if number == 150:
            split.split(5)
        split.take(right)
    names = [*OUTCOMES, "pending", "statistics_impressions"]
    assert {n: whole.total(n) for n in names} == {n: split.total(n) for n in names}
    assert sorted(map(str, whole.aside)) == sorted(map(str, split.aside))


def test_a_recount_sees_what_was_divided_wrongly() -> None:
    """A scope that went to another child than its query is lost, or is found twice."""
    log = Log(some_settings(), 1)
    for number, elements in enumerate(some_log(2)):
        if number == 200:
            break
        log.take(elements)
    log.split(4)
    assert log.verdict().is_clean
    statistics = {
        key: value for key, value in log.states[1].items() if key[0] == "statistics"
    }
    scope = next(
        key for key in statistics if msgspec.msgpack.decode(key[1])[0] == "scope"
    )
    del log.states[1][scope]
    assert not log.verdict().is_clean


def test_a_query_of_another_partition_is_refused() -> None:
    """What was never routed by this number of partitions cannot be divided by it."""
    log = Log(some_settings(), 1)
    for elements in some_log(2):
        log.take(elements)
    log.checkpoint()
    values: dict[bytes, Any] = {
        key: value
        for (topic, key), value in log.states[0].items()
        if topic == "statistics"
    }
    with pytest.raises(ValueError, match=r"queries must be of partitions \[0, 2\]"):
        divided_statistics(values, [0, 2], 4)
