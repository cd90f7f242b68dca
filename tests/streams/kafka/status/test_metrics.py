"""Metrics as they are written: both texts, labels from outside, times of stages."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from rankstream.snapshots import Pointer
from streams.comparisons.verdicts import refused_verdict
from streams.kafka.status import metrics, stage_times
from streams.kafka.status.adapt_status import AdaptStatus
from streams.kafka.status.experiment_series import experiment_series
from streams.kafka.status.exposition import written
from streams.kafka.status.metrics import Gauges, families_of
from streams.kafka.status.role_status import MOST_ENDS, Lag
from streams.kafka.status.stage_times import StageTimes
from streams.kafka.status.status_page import Status
from streams.redis_copies.model_times import MOST_WAITING, ModelTimes
from streams.series import LONGEST, MOST, SecondsHistogram, Series, label_of

OPEN = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"

HOSTILE = ['a"b', "a\\b", "a\nb", 'x"} 1\nrankstream_lag 9', "\ud800", "é", "", "\0\r"]


class Told:
    """A collector of what a test says."""

    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self.collect = collect


def text_of(collect: Callable[[], Iterator[Metric]], accept: str) -> tuple[str, str]:
    """A page of this, and its type."""
    registry = CollectorRegistry()
    registry.register(Told(collect))
    body, kind = written(registry, accept)
    return body.decode(), kind


@dataclass
class Committer:
    """What a page asks of a partition."""

    counts: dict[str, int] = field(default_factory=dict)
    restored: dict[str, int] = field(default_factory=dict)
    appended_ms: float = 0.0
    partition: int = 3
    folded: int = 7
    backlog: tuple[()] = ()

    class kind:  # noqa: N801  an attribute
        """Of the fold."""

        name = "fold"

    class position:  # noqa: N801  an attribute
        """The first."""

        number = 1
        losses = ()


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (OPEN, True),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=nonsense, */*", False),
        ("application/openmetrics-text; version=2.0.0, text/plain", False),
        ("application/openmetrics-text; q=0", False),
        ("application/openmetrics-text;q=0.0", False),
        ("application/openmetrics-text;Q=0.000", False),
        ("application/openmetrics-text;q=nan", False),
        ("application/openmetrics-text;q=0.001", True),
        ("", False),
        ("*/*", False),
        (";;=,=;\x00", False),
    ],
)
def test_a_client_gets_the_text_that_it_takes(accept: str, is_open: bool) -> None:
    """OpenMetrics ends with a line of its own; nonsense gets the older text."""
    body, kind = written(Status("fold").registry, accept)
    assert kind.startswith(
        "application/openmetrics-text; version=1.0.0" if is_open else "text/plain"
    )
    assert body.endswith(b"# EOF\n") is is_open
    assert b'rankstream_ready{role="fold"} 0.0' in body


def test_a_page_of_every_kind_is_openmetrics() -> None:
    """Its own strict parser takes it; units are told, and histograms whole."""
    took = SecondsHistogram((0.5, 1.0))
    took.observe(0.7, 3)
    took.observe(9.0)
    series = [
        Series("trainings", {"model": "m", "outcome": "refused"}, 2),
        Series("training_duration_seconds", {"model": "m"}, took),
        Series("redis_up", {}, True),
    ]
    text, _ = text_of(lambda: families_of(series, "train"), OPEN)
    found = {each.name: each for each in text_string_to_metric_families(text)}
    times = found["rankstream_training_duration_seconds"]
    assert (times.type, times.unit) == ("histogram", "seconds")
    ends = {
        sample.labels["le"]: sample.value
        for sample in times.samples
        if sample.name.endswith("_bucket")
    }
    assert ends == {"0.5": 0, "1.0": 3, "+Inf": 4}
    assert found["rankstream_trainings"].type == "counter"
    assert found["rankstream_redis_up"].samples[0].value == 1.0


@pytest.mark.parametrize("accept", [OPEN, ""])
def test_names_of_users_break_no_line_and_stay_apart(accept: str) -> None:
    """Each is one series, read back as it was shown; the others are as they were."""
    names = [*HOSTILE, "x" * 10_000, "x" * 10_001]
    names += [label_of(each) for each in names if label_of(each) != each]
    series = [Series("experiment_lists", {"experiment": x}, 1) for x in names]
    text, _ = text_of(lambda: families_of(series, "evaluate", most=MOST), accept)
    parse = text_string_to_metric_families if accept else plain_families
    (lists,) = [x for x in parse(text) if x.name == "rankstream_experiment_lists"]
    shown = [sample.labels["experiment"] for sample in lists.samples]
    assert shown == [label_of(name) for name in names]
    assert len(set(shown)) == len(names)
    assert max(map(len, shown)) == LONGEST
    assert all(each.isprintable() for each in shown)
    assert {"rankstream_lag"}.isdisjoint(each.name for each in parse(text))


def test_series_are_bounded_and_the_rest_is_counted() -> None:
    """The experiments with most lists stay, whatever they are called."""
    n = MOST + 20
    verdicts = []
    for number in range(n):
        verdict = refused_verdict(f"e{number:03}", 1, "")
        method = msgspec.structs.replace(verdict.drawn_by, impressions=number)
        methods = {verdict.method: method}
        verdicts.append(msgspec.structs.replace(verdict, methods=methods))
    found = {
        each.name: each
        for each in families_of(experiment_series(verdicts), "evaluate", most=MOST)
    }
    lists = found["rankstream_experiment_lists"].samples
    assert [each.value for each in lists] == [*range(n - 1, n - 1 - MOST, -1)]
    left_out = found["rankstream_series_left_out"].samples
    assert {each.labels["metric"]: each.value for each in left_out} == {
        f"rankstream_experiment_{name}": 20.0 for name in ("epoch", "lists", "health")
    }


def test_a_stage_has_its_histograms_before_any_partition() -> None:
    """And its counts before the first commit, as it was restored."""
    open_: dict[str, Committer] = {}
    gauges = Gauges(open_, {"fold": StageTimes(has_joins=True)}, lambda _: 0, _nothing)
    names = {family.name for family in gauges.collect()}
    assert names == {
        "rankstream_commit_duration_seconds",
        "rankstream_join_delay_seconds",
    }
    open_["here"] = Committer(restored={"late": 4, "watermark_ms": -1})
    values = {family.name: family.samples[0].value for family in gauges.collect()}
    assert values["rankstream_late"] == 4
    assert "rankstream_watermark_timestamp_seconds" not in values
    open_["here"].counts = {"late": 5, "watermark_ms": 2_500}
    values = {family.name: family.samples[0].value for family in gauges.collect()}
    assert values["rankstream_watermark_timestamp_seconds"] == 2.5
    assert values["rankstream_late"] == 5


def _nothing(_: str) -> None:
    """No clock is known."""


def test_lag_in_seconds_is_of_the_next_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since the last one was appended, by the broker's clock, or since it was level."""
    now_ms = [1_000_000_000]
    monkeypatch.setattr(metrics, "wall_ms", lambda: now_ms[0])
    one, lags, ahead_s = Committer(appended_ms=now_ms[0] - 90_000), {"here": 5}, [0.0]
    gauges = Gauges({"here": one}, {}, lags.__getitem__, lambda _: ahead_s[0])

    def lag_s() -> float:
        (found,) = [x for x in gauges.collect() if x.name == "rankstream_lag_seconds"]
        return found.samples[0].value

    assert lag_s() == 90.0
    ahead_s[0] = 60.0
    assert lag_s() == 30.0
    gauges.look()
    assert lag_s() == 30.0, "it is not level"
    one.appended_ms = 0
    assert lag_s() == 0.0, "nothing is known before the first record"
    one.appended_ms = now_ms[0] - 90_000
    lags["here"] = 0
    assert lag_s() == 0.0
    gauges.look()
    lags["here"] = 1
    now_ms[0] += 2_000
    gauges.look()
    assert lag_s() == 2.0, "it was level two seconds ago"


def test_joins_are_timed_by_what_the_watermark_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as were applied, since the watermark; nothing where none was."""
    monkeypatch.setattr(stage_times, "wall_ms", lambda: 1_020_000)
    times = StageTimes(has_joins=True)
    after = {"applied_impressions": 9, "watermark_ms": 1_000_000}
    times.counted({"applied_impressions": 2}, after)
    times.counted(after, after)
    times.counted({}, {"passed": 5})
    ends, total_s = times.joins.read()
    assert (dict(ends)["10.0"], dict(ends)["30.0"], dict(ends)["+Inf"]) == (0, 7, 7)
    assert total_s == 7 * 20.0


def test_versions_are_timed_once_and_only_new_ones() -> None:
    """A refill, a rollback and what lay in the topic before say nothing of latency."""
    times, made_ms = ModelTimes(), round(time.time() * 1_000) - 20_000
    old, new, newer = Pointer(0, 1), Pointer(0, 2), Pointer(0, 3)
    times.take(old, made_ms - 10**9, is_new=False)
    times.wrote(old)
    times.wrote(None)
    times.take(new, made_ms, is_new=True)
    times.take(newer, made_ms + 1_000, is_new=True)
    times.wrote(newer)
    times.wrote(newer)
    created, latency = times.series("m")
    assert created.value == (made_ms + 1_000) / 1_000.0
    assert isinstance(latency.value, SecondsHistogram)
    assert dict(latency.value.read()[0])["+Inf"] == 1
    assert [each.name for each in ModelTimes().series("m")] == [latency.name]


def test_times_below_0_took_no_time() -> None:
    """Clocks differ: a sum must not fall."""
    found = SecondsHistogram((0.5,))
    found.observe(-3.0, 2)
    assert found.read() == ([("0.5", 2), ("+Inf", 2)], 0.0)


def test_versions_that_wait_for_redis_are_bounded() -> None:
    """The last ones stay, whenever Redis is there again."""
    times = ModelTimes()
    for number in range(MOST_WAITING + 9):
        times.take(Pointer(0, number), number * 1_000, is_new=True)
    assert len(times._waiting) == MOST_WAITING
    times.wrote(Pointer(0, MOST_WAITING + 8))
    created, _ = times.series("m")
    assert created.value == MOST_WAITING + 8
    assert not times._waiting


def test_sources_are_told_of_before_their_first_document() -> None:
    """And how long one is behind, while it is."""
    fares = AdaptStatus("adapt", ["ubi"])
    values = {x.name: x.samples[0].value for x in fares.collect()}
    assert values["rankstream_documents_refused"] == 0
    fares.lag({TopicPartition("t", 0): Lag(3, 0)})
    fares.lag({TopicPartition("t", 0): Lag(2, 1), TopicPartition("t", 1): Lag(0, 0)})
    lags = {x.name: [s.value for s in x.samples] for x in fares.collect()}
    assert lags["rankstream_source_lag_records"] == [2, 0]
    assert lags["rankstream_source_lag_seconds"][0] > 0.0
    assert lags["rankstream_source_lag_seconds"][1] == 0.0


def test_a_role_that_keeps_up_has_a_lag_that_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though it never is at the end; one that stands still has one that grows."""
    place, now_s, fares = TopicPartition("t", 0), [100.0], AdaptStatus("adapt")
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])

    def lag_s() -> float:
        found = {x.name: x.samples[0].value for x in fares.collect()}
        return found["rankstream_source_lag_seconds"]

    for n_s in range(2_000):
        now_s[0] = 100.0 + n_s
        fares.lag({place: Lag(50, 10 * n_s)})
        assert lag_s() <= 5.0
    stopped_s, position = now_s[0], 10 * 1_999
    for n_s in range(1, 5 * MOST_ENDS):
        now_s[0] = stopped_s + n_s
        fares.lag({place: Lag(50 + 10 * n_s, position)})
    assert n_s <= lag_s() <= n_s + 5.0
    assert len(fares._lags._ends[place]._ends) <= MOST_ENDS
    fares.lag({place: Lag(9, position + 41 + 10 * n_s)})
    assert lag_s() < 60.0, "it has caught up with all but the last ones"
    fares.lag({place: Lag(0, position + 50 + 10 * n_s)})
    assert lag_s() == 0.0
