"""Verdicts: a planted winner is found, broken chance and sick logs are seen."""

from typing import Any

import msgspec
import numpy as np
import pytest

from models.evaluation.list_counts import TOTALS
from rankstream.operations.monitoring.overview import Gathered
from rankstream.ranking.combining import combine, draw_seed
from rankstream.settings import ExperimentSettings, Settings
from rankstream.wire.events import MULTILEAVE, ClickMark, Interaction
from rankstream.wire.verdicts import Verdict, decode_verdict, encode_verdict
from streams.comparisons.health import health_of
from streams.comparisons.preference_fold import COUNTS, PreferencesFold, comparison_key
from streams.comparisons.verdicts import verdict_of
from streams.fold.join import OUTCOMES
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.reader_role import FollowedPartition
from streams.native.closed_impressions import closed_of
from streams.roles.evaluator import Evaluator
from tests.ends import ends_of
from tests.event_factory import START_MS, impression

ITEMS = [f"d{i}" for i in range(10)]
GOOD, BAD = ITEMS[:6], ITEMS[9:3:-1]


def run_of(
    settings: ExperimentSettings, lists: dict[str, list[str]], n: int, *, seed: int = 0
) -> PreferencesFold:
    """Users who like low numbers, and read from the top."""
    rng = np.random.default_rng(seed)
    fold = PreferencesFold({"x": settings}, 0)
    for i in range(n):
        seed = draw_seed("x", 1, f"i{i}")
        found = combine(settings.method, lists, 6, seed=seed)
        extra = {
            "experiment": {"id": "x", "epoch": 1, "method": settings.method},
            "rankings": found.rankings,
            "session": f"s{i}",
        }
        if found.assignments is not None:
            extra["assignments"] = found.assignments
        one = impression(
            f"i{i}", START_MS + i, items=ITEMS, shown=found.shown,
            policy=MULTILEAVE, extra=msgspec.msgpack.encode(extra), seed=seed,
        )  # fmt: skip
        marks = [
            ClickMark(place, START_MS + i, "click")
            for place, item in enumerate(found.shown, 1)
            if rng.random() < (0.5 if item < "d5" else 0.15) / place
        ]
        fold.take(closed_of([Interaction(one, marks)]))
    return fold


def settings_of(method: str, **fields: object) -> ExperimentSettings:
    """Two rankers, lists of six."""
    given: dict[str, Any] = {"length": 6} | fields
    return ExperimentSettings(rankers={"good": "", "bad": ""}, method=method, **given)


def lights(verdict: Verdict) -> dict[str, str]:
    """State of each check."""
    return {check.name: check.state for check in verdict.health}


@pytest.mark.parametrize("method", ["team-draft", "pairwise-preference", "ab"])
def test_a_planted_winner_is_found(method: str) -> None:
    """By the interval that allows peeking; all checks are green."""
    fold = run_of(settings_of(method), {"good": GOOD, "bad": BAD}, 2_000)
    verdict = verdict_of(fold.comparisons()[0])
    found = verdict.methods[method]
    (pair,) = found.pairs

    assert found.winner == "good"
    assert found.copeland == [-1, 1]
    assert found.bradley_terry[1] > 0
    assert (pair.a, pair.b) == ("bad", "good")
    for which in ("to_come", "came"):
        low, high = ends_of(pair, which)
        assert low < pair.mean < high < 0
    assert pair.log_e_b > np.log(100)
    assert set(lights(verdict).values()) == {"ok"}
    assert decode_verdict(encode_verdict(verdict)) == verdict
    assert len(verdict.clicks_per_list) == (method == "ab")


def test_equal_rankers_have_no_winner_and_no_coverage() -> None:
    """The same list twice."""
    fold = run_of(settings_of("pairwise-preference"), {"good": GOOD, "bad": GOOD}, 300)
    verdict = verdict_of(fold.comparisons()[0])

    assert verdict.methods["pairwise-preference"].winner is None
    (pair,) = verdict.methods["pairwise-preference"].pairs
    assert pair.came == pair.to_come == (None, None)
    assert lights(verdict)["coverage"] == "warning"


def test_a_broken_coin_is_seen() -> None:
    """Clients that drop a third of one ranker's lists, and of one team's firsts."""
    for method, check in (("ab", "sample ratio"), ("team-draft", "first picks")):
        fold = run_of(settings_of(method), {"good": GOOD, "bad": BAD}, 600)
        comparison = fold.comparisons()[0]
        column = 4 if method == "ab" else 3
        comparison.by_ranker[0, column] *= 2
        assert lights(verdict_of(comparison))[check] == "alarm"


def test_sick_logs_are_seen() -> None:
    """Lists of unequal length, empty lists, late events of the whole log."""
    lists = {"good": GOOD, "bad": []}
    fold = run_of(settings_of("team-draft"), lists, 50)
    verdict = verdict_of(fold.comparisons()[0])
    outcomes = dict.fromkeys(OUTCOMES, 0) | {"consumed": 100, "late": 20}
    outcomes |= {"applied_clicks": 80, "compared": 50, "unknown": 5}
    checks = {c.name: c for c in health_of(fold.comparisons()[0], outcomes)}

    assert lights(verdict)["empty lists"] == "alarm"
    assert lights(verdict)["list length"] == "alarm"
    assert checks["late"].state == "alarm"
    assert checks["orphan"].state == "ok"
    assert checks["join rate"].value == 0.8
    assert checks["join rate"].state == "warning"
    assert checks["unknown experiments"].state == "alarm"
    assert verdict.methods["team-draft"].winner is None


def test_nothing_yet_is_a_verdict_too() -> None:
    """Before the first impression."""
    fold = PreferencesFold({"x": settings_of("team-draft")}, 0)
    verdict = verdict_of(fold.comparisons()[0])

    assert verdict.methods["team-draft"].winner is None
    assert msgspec.json.encode(verdict)


def give(evaluator: Evaluator, partition: int, records: dict[bytes, bytes]) -> None:
    """Records of `preferences`, as they are read."""
    batch = CommittedBatch(list(records.items()), at_end=True)
    evaluator.take(FollowedPartition("preferences", partition), batch)


def test_the_evaluator_speaks_when_something_moved() -> None:
    """Partitions merged; the same state is judged once."""
    evaluator = Evaluator(Settings())
    settings = settings_of("team-draft")
    fold = run_of(settings, {"good": GOOD, "bad": BAD}, 20)
    changes = fold.changes(dict.fromkeys(OUTCOMES, 1))
    give(evaluator, 0, {each.key: each.value for each in changes if each.value})
    ((key, value),) = evaluator.verdicts(evaluator.values())

    assert key == b"x"
    assert decode_verdict(value).totals["impressions"] == 20
    assert evaluator.verdicts(evaluator.values()) == []


def records_of(
    settings: ExperimentSettings, partition: int = 0, name: str = "x"
) -> dict[bytes, bytes]:
    """What one partition wrote."""
    fold = run_of(settings, {"good": GOOD, "bad": BAD}, 20)
    (comparison,) = fold.comparisons()
    key = comparison_key(name, settings.epoch, partition)
    return {key: comparison.encoded()}


def states_of(evaluator: Evaluator) -> dict[str, Verdict]:
    """The verdicts of now by experiment."""
    found = evaluator.verdicts(evaluator.values())
    return {key.decode(): decode_verdict(value) for key, value in found}


@pytest.mark.parametrize(
    "other",
    [
        settings_of("team-draft", planned_impressions=5),
        settings_of("team-draft", also={"sample-scored": {}}),
        settings_of("ab"),
    ],
)
def test_partitions_of_different_settings_are_not_merged(
    other: ExperimentSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """An alarm and a line in the log; other experiments are judged."""
    evaluator = Evaluator(Settings())
    settings = settings_of("team-draft")
    for records in (
        records_of(settings), records_of(other, 1), records_of(settings, 0, "y"),
        records_of(settings, 1, "y"), records_of(settings, 2),
    ):  # fmt: skip
        give(evaluator, 0, records)
    found = states_of(evaluator)

    assert found["y"].totals["impressions"] == 40
    assert lights(found["x"]) == {"records refused": "alarm"}
    assert "different settings" in found["x"].health[0].detail
    assert "event=experiment-refused experiment=x" in caplog.text
    assert states_of(evaluator) == {}


@pytest.mark.parametrize("value", [b"", b"\x91\x02", b"\x00", b"\xc1\x02\x00\x00\x00"])
def test_a_record_that_cannot_be_read_stops_nobody(value: bytes) -> None:
    """Of another version, cut off, or a part that is missing; nor a strange key."""
    evaluator = Evaluator(Settings())
    settings = settings_of("team-draft")
    strange = comparison_key("x", 1, 0), b"nonsense", COUNTS + b"\x00"
    give(evaluator, 0, records_of(settings, 0, "y") | dict.fromkeys(strange, value))
    found = states_of(evaluator)

    assert found["y"].totals["impressions"] == 20
    assert lights(found["x"]) == {"records refused": "alarm"}
    gathered = Gathered()
    gathered.take_verdict(msgspec.json.encode(found["x"]))
    assert gathered.overview()["experiments"][0]["health"] == "alarm"


def test_a_log_that_sickens_is_told_though_nothing_was_compared() -> None:
    """A million late events later; not for one more of many."""
    evaluator = Evaluator(Settings())
    fold = run_of(settings_of("team-draft"), {"good": GOOD, "bad": BAD}, 20)
    well = dict.fromkeys(OUTCOMES, 0) | {"consumed": 10**6, "applied_clicks": 10**6}

    def told(outcomes: dict[str, int]) -> list[str]:
        changes = fold.changes(outcomes)
        give(evaluator, 0, {each.key: each.value for each in changes if each.value})
        verdicts = states_of(evaluator).values()
        return [lights(verdict)["late"] for verdict in verdicts]

    assert told(well) == ["ok"]
    assert told(well | {"late": 1}) == []
    assert told(well | {"late": 10**6}) == ["alarm"]


def test_one_empty_list_does_not_silence_the_sample_ratio() -> None:
    """Lists of queries for which all rankers returned something are compared."""
    fold = run_of(settings_of("ab"), {"good": GOOD, "bad": BAD}, 600)
    (comparison,) = fold.comparisons()
    other = run_of(settings_of("ab"), {"good": GOOD, "bad": []}, 5)
    comparison.merge(other.comparisons()[0])
    comparison.by_ranker[0, 4] *= 2

    assert comparison.by_ranker[1, 0] == 0
    assert comparison.by_ranker[0, 0] == 5
    assert lights(verdict_of(comparison))["sample ratio"] == "alarm"


def test_rates_are_compared_where_every_ranker_returned_something() -> None:
    """Silent on hard queries, as good on the others: no difference in clicks."""
    rng = np.random.default_rng(0)
    settings = settings_of("ab")
    fold = PreferencesFold({"x": settings}, 0)
    for i in range(4_000):
        is_easy = rng.random() < 0.5
        lists = {"good": ITEMS[:3] if is_easy else [], "bad": ITEMS[3:6]}
        found = combine("ab", lists, 6, seed=i)
        extra = {
            "experiment": {"id": "x", "epoch": 1, "method": "ab"},
            "rankings": found.rankings,
            "assignments": found.assignments,
        }
        packed = msgspec.msgpack.encode(extra)
        one = impression(
            f"i{i}", START_MS, items=ITEMS, shown=found.shown, extra=packed
        )
        is_clicked = rng.random() < (0.8 if is_easy else 0.2)
        marks = [ClickMark(1, START_MS, "click")] if is_clicked else []
        fold.take(closed_of([Interaction(one, marks)]))
    verdict = verdict_of(fold.comparisons()[0])
    (rates,) = verdict.clicks_per_list
    low, high = ends_of(rates, "fixed")

    assert low < 0 < high
    assert 1_800 < sum(rates.lists) < 2_200
    assert lights(verdict)["empty lists"] == "alarm"
    assert lights(verdict)["sample ratio"] == "ok"


def test_what_was_not_credited_is_health() -> None:
    """Preferences too large to count, lists without teams, methods never fair."""
    long = [f"e{i:02}" for i in range(30)]
    settings = settings_of("pairwise-preference", length=30)
    fold = PreferencesFold({"x": settings}, 0)
    extra = {
        "experiment": {"id": "x", "epoch": 1, "method": "pairwise-preference"},
        "rankings": {"good": long, "bad": long[1:] + long[:1]},
    }
    one = impression(items=long, extra=msgspec.msgpack.encode(extra))
    fold.take(closed_of([Interaction(one, [])] * 3))
    without = run_of(settings_of("sample-scored"), {"good": GOOD, "bad": BAD}, 5)
    unfair = lights(verdict_of(without.comparisons()[0]))
    (teamless,) = run_of(
        settings_of("team-draft"), {"good": GOOD, "bad": BAD}, 5
    ).comparisons()
    teamless.totals[TOTALS.index("without_assignments")] = 5

    assert lights(verdict_of(fold.comparisons()[0]))["too heavy"] == "alarm"
    assert lights(verdict_of(teamless))["teams missing"] == "alarm"
    assert unfair["unfair methods"] == "warning"
    assert "unfair methods" not in lights(verdict_of(teamless))
