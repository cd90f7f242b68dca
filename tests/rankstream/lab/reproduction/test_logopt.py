"""The table of logging policies: its pairs, its runs, stopped, resumed, and written."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from rankstream.lab.reproduction.data import prepare
from rankstream.lab.reproduction.engine import Job, Setup, finished_runs
from rankstream.lab.reproduction.logopt.claims import Pairs, claims_of, median_of
from rankstream.lab.reproduction.logopt.pairs import N_RANKERS, pair_of, scene_of
from rankstream.lab.reproduction.logopt.plan import (
    AWARE,
    CLOSE,
    INTERLEAVED,
    LOGOPT,
    METHODS,
    OPTIMUM,
    RIVAL,
    UNBIASED,
    UNIFORM,
    Cell,
)
from rankstream.lab.reproduction.logopt.runs import (
    FIGURES,
    SQUARED,
    live_once,
    named,
)
from rankstream.operations.cli import main
from tests.rankstream.lab.reproduction.test_reproduce import parts_folder


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """One fold of eight queries in each split."""
    place = tmp_path_factory.mktemp("place")
    prepare(parts_folder(place / "data"), 1, place, normalisation="min-max")
    return Setup(place, "min-max", 2, 1)


def test_pairs_are_as_far_apart_as_their_cell_says(setup: Setup) -> None:
    """No two of a cell are the same, and their difference is that of click rates."""
    scene = scene_of(setup, 1)
    for is_close in (True, False):
        pairs = [pair_of(setup, Job(Cell(is_close, 100), 1, run)) for run in range(5)]
        assert len({tuple(pair.rankers.tolist()) for pair in pairs}) == 5
        for pair in pairs:
            one, other = scene.looked(pair.rankers) @ scene.relevance
            assert pair.difference == pytest.approx((one - other) / 8.0, rel=1e-9)
            assert (abs(pair.difference) <= CLOSE) == is_close
    with pytest.raises(ValueError, match="--runs must be at most"):
        pair_of(setup, Job(Cell(True, 100), 1, 10_000))


def test_a_run_has_all_figures_and_the_same_again(setup: Setup) -> None:
    """Of all methods after each number of queries; policies that no click moves."""
    job = Job(Cell(False, 2_000), 1, 0)
    found = live_once(setup, job)
    for method in METHODS:
        for figure in FIGURES if method in UNBIASED else FIGURES[2:]:
            values = found[named(figure, method)]
            assert len(values) == 3
            assert all(math.isfinite(value) and value >= 0.0 for value in values)
    assert live_once(setup, job) == found
    squared = {method: found[named(SQUARED, method)] for method in UNBIASED}
    for method in (RIVAL, UNIFORM, OPTIMUM):
        assert len(set(squared[method])) == 1
    assert squared[OPTIMUM][0] < squared[RIVAL][0] < squared[UNIFORM][0]
    assert squared[LOGOPT][-1] < squared[UNIFORM][0]
    assert squared[AWARE] == pytest.approx(squared[LOGOPT], rel=0.1)


def test_a_table_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was cut off is run again, to the same numbers."""
    folder, out = parts_folder(tmp_path / "data"), tmp_path / "out"
    words = ["reproduce", str(folder), "--table", "logopt", "--impressions", "100"]
    words += ["--runs", "4", "--folds", "1", "--processes", "1", "--out", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    table = (out / "logopt.csv").read_text()
    runs = out / "logopt.txt"
    whole = finished_runs(runs)
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(lines[:6]) + lines[6][:50])
    assert main(words) == 0
    again = finished_runs(runs)

    assert "5 runs are left: 0.00 core-hours" in printed
    assert len(whole) == 8
    assert [{**again[key], "seconds": 0} for key in whole] == [
        {**result, "seconds": 0} for result in whole.values()
    ]
    assert (out / "logopt.csv").read_text() == table
    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == 2 * len(METHODS)
    assert {row["n_pairs"] for row in rows} == {"4"}
    drawn = {path.name for path in out.glob("*.svg")}
    assert drawn == {"logopt-squared.svg", "logopt-binary.svg"}
    rates = list(csv.DictReader((out / "logopt-rates.csv").read_text().splitlines()))
    assert [int(row["ranker"]) for row in rates] == list(range(1, N_RANKERS + 1))
    assert 0.0 < float(rates[0]["clicks_per_list"]) < 3.0
    with (out / "logopt-claims.csv").open() as file:
        assert {row["holds"] for row in csv.DictReader(file)} <= {
            "True",
            "False",
            "undecided",
        }


def planted(squared: dict[str, float], wrong: dict[str, float]) -> Pairs:
    """Twenty pairs whose errors are these, all but a little."""
    noise = 1.0 + 0.01 * np.arange(-9.5, 10.0)[:, None]
    return Pairs(
        [1_000_000],
        np.full(20, 0.01),
        {each: squared.get(each, 1.0) * noise for each in UNBIASED},
        dict.fromkeys(UNBIASED, noise),
        {each: wrong.get(each, 0.0) * noise for each in METHODS},
    )


def test_claims_hold_where_they_are_planted_and_only_there() -> None:
    """Medians at their bounds, uniform lists, zeta, and errors that stay."""
    staying = dict.fromkeys(INTERLEAVED, 0.2)
    fine = {OPTIMUM: 0.5, LOGOPT: 0.55, AWARE: 0.55, UNIFORM: 4.0}
    good = {claim.text: claim.holds for claim in claims_of(planted(fine, staying))}
    bad = {claim.text: claim.holds for claim in claims_of(planted({}, {}))}

    assert [text for text, holds in good.items() if not holds] == [
        "LogOpt, theta estimated: at most 0.85 of A/B's lists at 1,000,000",
        "LogOpt, theta estimated: at most 0.7 of A/B's lists at 1,000,000",
    ]
    assert not any(bad.values())
    assert list(good) == list(bad)


def test_the_error_of_a_median_is_that_of_many_samples() -> None:
    """Of a skewed sample, too; of few values nothing is told."""
    rng = np.random.default_rng(1)
    samples = rng.exponential(size=(2_000, 50))
    told = [median_of(each) for each in samples]
    deviation = np.std([each.value for each in told])

    assert np.mean([each.error for each in told]) == pytest.approx(deviation, rel=0.2)
    assert median_of(samples[0]).value == np.median(samples[0])
    assert math.isnan(median_of(samples[0, :7]).error)


def test_too_few_queries_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read."""
    words = ["reproduce", str(tmp_path), "--table", "logopt", "--impressions", "99"]

    assert main(words) == 2
    assert "at least 100, after which" in capsys.readouterr().err
