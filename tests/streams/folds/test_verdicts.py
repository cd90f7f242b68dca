"""Verdicts: a planted winner is found, broken chance and sick logs are seen."""

from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.combining import combine
from rankstream.events import MULTILEAVE, ClickMark, Interaction
from rankstream.settings import ExperimentSettings
from streams.evaluator import Evaluator
from streams.folds.closed import closed_of
from streams.folds.join import OUTCOMES
from streams.folds.preferences import PreferencesFold
from streams.folds.verdicts import health_of, verdict_of
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
        found = combine(settings.method, lists, 6, seed=int(rng.integers(2**62)))
        extra = {
            "experiment": {"id": "x", "epoch": 1, "method": settings.method},
            "rankings": found.rankings,
        }
        if found.assignments is not None:
            extra["assignments"] = found.assignments
        one = impression(
            f"i{i}", START_MS + i, items=ITEMS, shown=found.shown,
            policy=MULTILEAVE, extra=msgspec.msgpack.encode(extra),
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


def lights(verdict: dict) -> dict[str, str]:
    """State of each check."""
    return {check["name"]: check["state"] for check in verdict["health"]}


@pytest.mark.parametrize("method", ["team-draft", "pairwise-preference", "ab"])
def test_a_planted_winner_is_found(method: str) -> None:
    """By the interval that allows peeking; all checks are green."""
    fold = run_of(settings_of(method), {"good": GOOD, "bad": BAD}, 2_000)
    verdict = verdict_of(fold.comparisons()[0])
    found = verdict["methods"][method]
    (pair,) = found["pairs"]

    assert found["winner"] == "good"
    assert found["copeland"] == [-1, 1]
    assert found["bradley_terry"][1] > 0
    assert (pair["a"], pair["b"]) == ("bad", "good")
    assert pair["anytime"][0] < pair["mean"] < pair["anytime"][1] < 0
    assert pair["log_e_b"] > np.log(100)
    assert set(lights(verdict).values()) == {"ok"}
    assert msgspec.json.decode(msgspec.json.encode(verdict)) == verdict
    assert len(verdict["clicks_per_list"]) == (method == "ab")


def test_equal_rankers_have_no_winner_and_no_coverage() -> None:
    """The same list twice."""
    fold = run_of(settings_of("pairwise-preference"), {"good": GOOD, "bad": GOOD}, 300)
    verdict = verdict_of(fold.comparisons()[0])

    assert verdict["methods"]["pairwise-preference"]["winner"] is None
    assert verdict["methods"]["pairwise-preference"]["pairs"][0]["anytime"] == [
        None,
        None,
    ]
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
    checks = {c["name"]: c for c in health_of(fold.comparisons()[0], outcomes)}

    assert lights(verdict)["empty lists"] == "alarm"
    assert lights(verdict)["list length"] == "alarm"
    assert checks["late"]["state"] == "alarm"
    assert checks["orphan"]["state"] == "ok"
    assert checks["join rate"] | {"value": 0.8} == checks["join rate"]
    assert checks["join rate"]["state"] == "warning"
    assert checks["unknown experiments"]["state"] == "alarm"
    assert verdict["methods"]["team-draft"]["winner"] is None


def test_nothing_yet_is_a_verdict_too() -> None:
    """Before the first impression."""
    fold = PreferencesFold({"x": settings_of("team-draft")}, 0)
    verdict = verdict_of(fold.comparisons()[0])

    assert verdict["methods"]["team-draft"]["winner"] is None
    assert msgspec.json.encode(verdict)


def test_the_evaluator_speaks_when_something_moved() -> None:
    """Partitions merged; the same state is judged once."""
    evaluator = Evaluator()
    settings = settings_of("team-draft")
    fold = run_of(settings, {"good": GOOD, "bad": BAD}, 20)
    for change in fold.changes(dict.fromkeys(OUTCOMES, 1)):
        evaluator.take(0, change.key, change.value)
    ((key, value),) = evaluator.verdicts(evaluator.values())

    assert key == b"x"
    assert msgspec.json.decode(value)["totals"]["impressions"] == 20
    assert evaluator.verdicts(evaluator.values()) == []
