"""Tables of learning with interventions: stopped, resumed, and what they claim."""

import csv
import itertools
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from models.learners.pdgd import PdgdConfig
from rankstream.lab.closed_loops.intervention_loop import chance_of_first
from rankstream.lab.closed_loops.policy_log import (
    AFFINE,
    AWARE,
    OBLIVIOUS,
    POLICY_AWARE,
)
from rankstream.lab.closed_loops.policy_training import (
    LAMBDA_LOSS,
    POLICY_GRADIENT,
    scores_of,
)
from rankstream.lab.reproduction.data import prepare, world_of
from rankstream.lab.reproduction.engine import Finished, Job, Setup, finished_runs
from rankstream.lab.reproduction.interventions.plan import (
    BIASED_PDGD,
    COLTR,
    CONTINUOUS,
    COUNTS,
    DECAY,
    FIRST_CHANCE,
    LONG,
    PARTS,
    PDGD,
    SHARP,
    SOFT,
    Cell,
    cells_of,
    learner_of,
)
from rankstream.lab.reproduction.interventions.report import (
    InterventionStudy,
    curves_with_production,
)
from rankstream.lab.reproduction.interventions.runs import (
    FIGURES,
    _Counterfactual,
    _rank_weights,
    _scene_of,
    live_once,
)
from rankstream.operations.cli import main
from tests.rankstream.lab.reproduction.test_reproduce import parts_folder

STUDY = InterventionStudy(Namespace(impressions=None))

WORDS = ("--table", "interventions", "--processes", "1", "--runs", "1", "--folds", "2")


def test_a_table_has_every_cell_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was cut off is run again, to the same numbers; others are not."""
    folder, out = parts_folder(tmp_path / "data"), tmp_path / "out"
    words = ["reproduce", str(folder), "--out", str(out), *WORDS]
    words += ["--impressions", "200", "--parts", SOFT]
    assert main(words) == 0
    printed = capsys.readouterr().out
    curves = (out / "interventions-curves.csv").read_text()
    runs = out / "interventions.txt"
    whole = finished_runs(runs)
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(lines[:4]) + lines[4][:50])
    assert main(words) == 0
    again = finished_runs(runs)

    assert len(whole) == 3 * 2
    assert [_without_seconds(again[key]) for key in whole] == [
        _without_seconds(result) for result in whole.values()
    ]
    assert (out / "interventions-curves.csv").read_text() == curves
    assert "soft: 50 interventions within 0.015 of none" in printed
    assert "intervention-aware, 50" in printed
    rows = list(csv.DictReader(curves.splitlines()))
    assert [row["impressions"] for row in rows] == ["100", "200"] * 3
    names = {path.name for path in out.glob("*.svg")}
    assert names == {"interventions-other-production-rankers.svg"}


def _without_seconds(result: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in result.items() if name != "seconds"}


def test_what_is_left_is_said_in_core_hours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a few runs of each kind."""
    folder = parts_folder(tmp_path / "data")
    words = ["reproduce", str(folder), "--out", str(tmp_path / "out"), *WORDS]
    words += ["--impressions", "100", "--parts", SOFT, "--runs", "2"]

    assert main(words) == 0
    assert "3 runs are left: 0.00 core-hours" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "count"),
    [(AWARE, 5), (OBLIVIOUS, 2), (PDGD, 5), (PDGD, CONTINUOUS), (COLTR, CONTINUOUS)],
)
def test_a_run_has_all_figures(method: str, count: int, tmp_path: Path) -> None:
    """From a production ranker that its pair shares; the same again from its seed."""
    prepare(parts_folder(tmp_path / "data"), 1, tmp_path, normalisation="min-max")
    setup = Setup(tmp_path, "min-max", 3, 1)
    loss = POLICY_GRADIENT if count >= 0 and method != PDGD else ""
    cell = Cell(SHARP, method, count, loss, 500)
    found = live_once(setup, Job(cell, 1, 0))
    static = Cell(SHARP, AWARE, 0, POLICY_GRADIENT, 500)
    other = live_once(setup, Job(static, 1, 0))

    assert found == live_once(setup, Job(cell, 1, 0))
    assert found["production"] == other["production"]
    assert other["logging"] == [other["production"]] * 3
    for name in FIGURES:
        assert len(found[name]) == 3
        assert all(0.0 < value <= 1.0 for value in found[name])
    if count == CONTINUOUS:
        assert found["logging"] == found["trained"]
    else:
        assert set(found["logging"]) != {found["production"]}


def test_pdgd_serves_what_it_learned_at_interventions(tmp_path: Path) -> None:
    """Lists differ from those of the production ranker, so what is learned does too."""
    prepare(parts_folder(tmp_path / "data"), 1, tmp_path, normalisation="min-max")
    setup = Setup(tmp_path, "min-max", 3, 1)
    served, static = (
        live_once(setup, Job(Cell(SHARP, PDGD, count, "", 500), 1, 0))
        for count in (5, 0)
    )

    assert static["logging"] == [static["production"]] * 3
    assert static["trained"][-1] != static["production"]
    assert served["trained"][-1] != static["trained"][-1]
    assert served["on_training"] != served["trained"]


@pytest.mark.parametrize("part", [SHARP, SOFT, DECAY])
def test_runs_begin_with_a_ranker_as_sure_as_the_part_says(
    part: str, tmp_path: Path
) -> None:
    """Users ask training queries, then validation queries; tests are of others."""
    prepare(parts_folder(tmp_path / "data"), 1, tmp_path, normalisation="min-max")
    setup = Setup(tmp_path, "min-max", 3, 1)
    cell = Cell(part, AWARE, 5, POLICY_GRADIENT, 500)
    scene = _scene_of(setup, Job(cell, 1, 0), np.random.default_rng(1))
    train, held_out, test = (
        world_of(tmp_path, 1, split, "min-max") for split in ("train", "vali", "test")
    )
    scores = scores_of(scene.ranker, scene.production, scene.train)
    learner = _Counterfactual(
        scene, cell, np.random.default_rng(1), np.random.default_rng(2)
    )
    first, rest = learner._loop._parts

    assert chance_of_first(scores, scene.train.offsets) == pytest.approx(
        FIRST_CHANCE[part], abs=1e-6
    )
    assert scene.both.labels.tolist() == [*train.labels, *held_out.labels]
    assert scene.both.features[-1].tolist() == held_out.features[-1].tolist()
    assert first.offsets.tolist() == train.offsets.tolist()
    assert rest.offsets.tolist() == held_out.offsets.tolist()
    assert scene.test.labels.tolist() == test.labels.tolist()
    relevant = scene.users.click_probabilities(np.full(5, 2))
    assert _rank_weights(scene.users) == pytest.approx(relevant)


def test_the_table_asks_for_what_the_chapter_did() -> None:
    """Cells by part, their rankers, and what learners serve."""
    sharp = cells_of(SHARP, 1_000)
    found = {(cell.method, cell.n_interventions, cell.loss) for cell in sharp}
    grid = itertools.product((AWARE, AFFINE, POLICY_AWARE), COUNTS, [POLICY_GRADIENT])
    assert set(grid) < found
    assert (AWARE, 50, LAMBDA_LOSS) in found
    assert {(PDGD, 100, ""), (PDGD, CONTINUOUS, ""), (COLTR, CONTINUOUS, "")} < found
    assert len(sharp) == len(found) == 20
    assert {cell.n_impressions for cell in cells_of(LONG, 1_000)} == {10_000}
    decay = cells_of(DECAY, 100_000)
    assert {cell.n_impressions for cell in decay} == {3_000_000}
    assert len(STUDY.jobs(decay, n_folds=5, n_runs=5)) == 2 * 5 * 2
    assert [cell.hidden for cell in decay] == [(32, 32)] * 2
    configs = [learner_of(cell, 7) for cell in decay]
    assert [isinstance(one, PdgdConfig) and one.counterfactual for one in configs] == [
        True,
        False,
    ]
    labels = [cell.label for part in PARTS for cell in cells_of(part, 1_000)]
    assert "intervention-aware, LambdaLoss, 50" in labels
    assert "biased-pdgd, online" in labels
    biased = [cell for cell in sharp if learner_of(cell, 7) == _biased_pdgd()]
    assert [cell.method for cell in biased] == [BIASED_PDGD]


def _biased_pdgd() -> PdgdConfig:
    return PdgdConfig(7, learning_rate=0.1, biased=True)


def test_runs_under_other_settings_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A production ranker that is surer of itself leads to other results."""
    jobs = STUDY.jobs(cells_of(SHARP, 1_000), n_folds=2, n_runs=3)
    assert len({job.key() for job in jobs}) == len(jobs) == 19 * 6 + 2
    before = jobs[0].key()
    monkeypatch.setitem(FIRST_CHANCE, SHARP, 0.9)

    assert jobs[0].key() != before


def test_runs_that_are_missing_are_left_out() -> None:
    """Their columns are not numbers, and no mean counts them."""
    cell = Cell(SOFT, AWARE, 0, POLICY_GRADIENT, 200)
    result = {name: [0.5, 0.6] for name in FIGURES} | {"production": 0.4}
    results = {f"setup/{Job(cell, 2, 0).key()}": result}
    curves = curves_with_production(cell, Finished(results, "setup", 2, 1))

    assert curves.impressions == [100, 200]
    assert curves.end("trained").tolist()[1] == [0.6]
    assert np.isnan(curves.end("trained")[0, 0])
    assert curves.of["production"][1, 0] == 0.4


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (["--runs", "0"], "at least 1"),
        (["--folds", "0"], "at least 1"),
        (["--processes", "0"], "at least 1"),
        (["--impressions", "0"], "at least 100"),
        (["--impressions", "99"], "at least 100"),
    ],
)
def test_wrong_calls_say_so(
    words: list[str], least: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names what is wrong, and status 2."""
    folder = parts_folder(tmp_path / "data")
    called = ["reproduce", str(folder), "--out", str(tmp_path / "out"), *WORDS]

    assert main([*called, *words]) == 2
    assert f"must be {least}" in capsys.readouterr().err
