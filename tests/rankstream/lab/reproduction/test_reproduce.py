"""Tables from LETOR folders: both layouts, stopped and resumed, to the same numbers."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from models.click_models.registry import click_model_of
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.reproduction.data import n_folds_of, prepare, world_of
from rankstream.lab.reproduction.engine import Job, Setup, finished_runs
from rankstream.lab.reproduction.online.plan import (
    EXACT,
    PUBLISHED,
    Cell,
    config_of,
    live_once,
    n_grades_of,
)
from rankstream.operations.cli import main


def write_split(path: Path, first_query: int, seed: int, n_queries: int = 8) -> None:
    """Queries of five documents whose second feature tells their grade."""
    rng = np.random.default_rng(seed)
    lines = []
    for query in range(first_query, first_query + n_queries):
        for _ in range(5):
            values = rng.random(3)
            label = int(values[1] * 3)
            lines.append(
                f"{label} qid:{query} 1:7 "
                + " ".join(f"{i}:{value:.4f}" for i, value in enumerate(values, 2))
            )
    path.write_text("\n".join(lines) + "\n")


def parts_folder(folder: Path) -> Path:
    """Splits, and a plan that says what they are for."""
    folder.mkdir()
    for number in (1, 2, 3):
        write_split(folder / f"S{number}.txt", 100 * number, number)
    plan = {
        "Fold1": {"train": ["S1"], "vali": ["S2"], "test": ["S3"]},
        "Fold2": {"train": ["S2"], "vali": ["S3"], "test": ["S1"]},
    }
    (folder / "folds.json").write_text(json.dumps(plan))
    return folder


def folds_folder(folder: Path) -> Path:
    """The same as folders of folds."""
    for fold, names in ((1, (1, 2, 3)), (2, (2, 3, 1))):
        inside = folder / f"Fold{fold}"
        inside.mkdir(parents=True)
        for split, number in zip(("train", "vali", "test"), names, strict=True):
            write_split(inside / f"{split}.txt", 100 * number, number)
    return folder


def reproduce(folder: Path, out: Path, *more: str) -> list[dict[str, str]]:
    """Run the command; returns the rows of its table."""
    words = ["reproduce", str(folder), "--out", str(out), "--processes", "1"]
    words += ["--impressions", "300", *more]
    assert main(words) == 0
    (table,) = out.glob("*-table.csv")
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("layout", [parts_folder, folds_folder])
def test_folds_are_prepared(layout, tmp_path: Path) -> None:
    """Features that never vary are left out, and the others scaled by query."""
    folder = layout(tmp_path / "data")
    assert n_folds_of(folder) == 2
    prepare(folder, 2, tmp_path / "place", normalisation="min-max")
    world = world_of(tmp_path / "place", 2, "train", "min-max")

    assert world.features.shape == (40, 3)
    assert world.offsets.tolist() == list(range(0, 41, 5))
    assert world.features.reshape(8, 5, 3).min(axis=1).max() == 0.0
    assert world.features.reshape(8, 5, 3).max(axis=1).min() == 1.0


def test_a_table_has_every_learner_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs cut off in the middle are run again, to the same numbers; others are not."""
    folder, out = parts_folder(tmp_path / "MQ2008"), tmp_path / "out"
    few = ("--learners", "pdgd-linear", "mgd-linear", "--users", "perfect")
    rows = reproduce(folder, out, "--runs", "2", "--published", *few)
    capsys.readouterr()

    assert [(row["figure"], row["learner"]) for row in rows] == [
        ("offline", "pdgd-linear"),
        ("offline", "mgd-linear"),
        ("online", "pdgd-linear"),
        ("online", "mgd-linear"),
        ("recent", "pdgd-linear"),
        ("recent", "mgd-linear"),
    ]
    assert all(float(row["exact_form"]) > 0.5 for row in rows)
    assert all(float(row["published_form"]) > 0.5 for row in rows)
    assert {path.suffix for path in out.glob("learners-300*")} == {".csv", ".svg"}
    runs = out / "runs.txt"
    whole = finished_runs(runs)
    assert len(whole) == 2 * 2 * 2 * 2
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(lines[:3]) + lines[3][:40])
    again = reproduce(folder, out, "--runs", "2", "--published", *few)

    assert again == rows
    assert finished_runs(runs) == whole
    untouched = runs.read_bytes()
    assert reproduce(folder, out, "--runs", "2", "--published", *few) == rows
    assert runs.read_bytes() == untouched


def test_other_data_under_the_same_name_are_run_anew(tmp_path: Path) -> None:
    """Results of two folders of one name stand beside each other, in both layouts."""
    one = parts_folder(tmp_path / "data")
    other = folds_folder(tmp_path / "elsewhere" / "data")
    few = ["--runs", "1", "--folds", "1", "--learners", "pairwise-linear"]
    few += ["--users", "perfect"]
    rows = reproduce(one, tmp_path / "out", *few)

    assert reproduce(other, tmp_path / "out", *few) == rows
    assert len(finished_runs(tmp_path / "out" / "runs.txt")) == 1
    write_split(other / "Fold1" / "train.txt", 100, 9)
    assert reproduce(other, tmp_path / "out", *few) != rows
    assert len(finished_runs(tmp_path / "out" / "runs.txt")) == 2
    assert reproduce(one, tmp_path / "out", *few) == rows


def test_runs_under_other_settings_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner's settings are in the key, though its name stays."""
    job = Job(Cell(PUBLISHED, "pdgd-linear", "perfect", 100), 1, 0)
    before = job.key()
    monkeypatch.setattr("rankstream.lab.reproduction.online.plan.DECAY", 0.9)

    assert job.key() != before


def test_errors_of_other_data_are_not_taken_for_these(tmp_path: Path) -> None:
    """Multileaving: one file of results holds those of two folders apart."""
    words = ["--table", "multileaving", "--name", "few", "--rankers", "2"]
    words += ["--users", "perfect", "--impressions", "100", "--processes", "1"]
    words += ["--methods", "team-draft", "--runs", "1", "--folds", "1"]
    out = tmp_path / "out"
    for place, seed in (("one", 1), ("other", 9)):
        folder = parts_folder(tmp_path / place)
        write_split(folder / "S1.txt", 100, seed)
        assert main(["reproduce", str(folder), "--out", str(out), *words]) == 0
    (kept,) = out.glob("multileaving-exact.jsonl")

    assert len(kept.read_text().splitlines()) == 2


def test_the_long_run_has_its_orderings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every claim is printed with its interval."""
    folder = folds_folder(tmp_path / "folds")
    rows = reproduce(folder, tmp_path / "out", "--runs", "2", "--table", "long-run")
    printed = capsys.readouterr().out

    assert len(rows) == 3 * 7
    assert "PDGD above DBGD with an oracle, perfect users" in printed
    assert printed.count("PDGD loses less than 0.03 by almost random") == 2


def test_lags_cost_what_users_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ranker that lacks everything shows random lists, and learns nothing yet."""
    folder = parts_folder(tmp_path / "data")
    rows = reproduce(folder, tmp_path / "out", "--runs", "2", "--table", "lags")
    shown = {
        row["learner"].rpartition("-")[2]: float(row["exact_form"])
        for row in rows
        if row["figure"] == "recent" and row["users"] == "perfect"
    }

    assert shown["0"] > shown["100"] > shown["1000"]
    assert shown["1000"] == pytest.approx(shown["10000"], abs=0.02)
    assert "of the last lists shown" in capsys.readouterr().out


def test_learners_that_score_all_candidates_have_a_table(tmp_path: Path) -> None:
    """COLTR and PL-Rank beside PDGD, each better than a random ranker."""
    folder = folds_folder(tmp_path / "folds")
    words = ("--runs", "1", "--table", "candidates", "--users", "perfect")
    rows = reproduce(folder, tmp_path / "out", *words)
    found = {row["learner"]: row for row in rows if row["figure"] == "offline"}

    assert set(found) == {"pdgd-linear", "coltr-linear", "pl-rank-linear"}
    assert all(float(row["exact_form"]) > 0.8 for row in found.values())


def test_only_published_users_stop_without_a_click(tmp_path: Path) -> None:
    """So they leave fewer clicks to learn from; those who never stop leave as many."""
    folder = folds_folder(tmp_path / "folds")
    prepare(folder, 1, tmp_path, normalisation="min-max")
    setup = Setup(tmp_path, "min-max", 3, 1, Conventions())
    updates = {
        (form, users): live_once(
            setup, Job(Cell(form, "pdgd-linear", users, 2_000), 1, 0)
        )["updates"]
        for form in (EXACT, PUBLISHED)
        for users in ("perfect", "navigational")
    }

    stopped, asked = (updates[form, "navigational"] for form in (PUBLISHED, EXACT))
    assert stopped < 0.9 * asked
    one, other = (updates[form, "perfect"] for form in (PUBLISHED, EXACT))
    assert one == pytest.approx(other, rel=0.05)


@pytest.mark.parametrize("learner", ["pdgd-linear", "pairwise-linear"])
def test_a_run_is_what_it_says(learner: str, tmp_path: Path) -> None:
    """Its figures again, one impression after another, from the seed of its pair."""
    prepare(folds_folder(tmp_path / "folds"), 2, tmp_path, normalisation="min-max")
    setup = Setup(tmp_path, "min-max", 3, 7, Conventions(cutoff=3))
    cell = Cell(EXACT, learner, "almost_random", 1_500)
    found = live_once(setup, Job(cell, 2, 4))

    train, test = (
        world_of(tmp_path, 2, split, "min-max") for split in ("train", "test")
    )
    seeds = np.random.SeedSequence([7, 2, 4]).spawn(3)
    loop_rng, tie_rng, init_rng = map(np.random.default_rng, seeds)
    config = config_of(cell, 3, seed=int(init_rng.integers(2**31)))
    users = click_model_of("almost_random", 3)
    loop = loop_of(config, train, users, cutoff=3, rng=loop_rng)
    shown, held_out = (
        Judge(train, Conventions(cutoff=3)),
        Judge(test, Conventions(cutoff=3)),
    )
    values: list[float] = []
    for at, checkpoint in enumerate([100, 200, 500, 1_000, 1_500]):
        values += shown.shown(loop.run(checkpoint - len(values))).tolist()
        scores = test.features.astype(np.float64) @ loop.parameters
        discounted = sum(0.9995**i * value for i, value in enumerate(values))

        assert found["online"][at] == pytest.approx(discounted, rel=1e-9)
        assert found["offline"][at] == held_out.held_out(scores, rng=tie_rng)
    assert found["recent"][-1] == pytest.approx(np.mean(values[-500:]), rel=1e-9)
    assert found["updates"] == loop.updates


def test_what_users_see_now_is_of_the_last_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of all that were shown since the checkpoint before."""
    prepare(folds_folder(tmp_path / "folds"), 1, tmp_path, normalisation="min-max")
    setup = Setup(tmp_path, "min-max", 3, 1, Conventions())
    job = Job(Cell(EXACT, "pdgd-linear", "perfect", 200), 1, 0)
    whole = live_once(setup, job)["recent"][-1]
    monkeypatch.setattr("rankstream.lab.reproduction.online.plan.LAST", 10)

    assert live_once(setup, job)["recent"][-1] != whole


@pytest.mark.parametrize(
    "words",
    [
        ["nowhere"],
        ["FOLDER", "--runs", "0"],
        ["FOLDER", "--users", "nobody"],
        ["FOLDER", "--folds", "0"],
        ["FOLDER", "--cutoff", "0"],
    ],
)
def test_wrong_calls_say_so(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names what is wrong, and status 2."""
    folder = parts_folder(tmp_path / "data")
    words = [str(folder) if word == "FOLDER" else word for word in words]

    assert main(["reproduce", *words, "--out", str(tmp_path / "out")]) == 2
    assert "must" in capsys.readouterr().err


def test_users_are_found_for_every_number_of_grades() -> None:
    """The smallest tables that know all labels."""
    assert [n_grades_of(label) for label in range(5)] == [2, 2, 3, 5, 5]
    with pytest.raises(ValueError, match="labels must be grades 0 to 4; got 5"):
        n_grades_of(5)


def test_the_table_of_multileaving_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors are rates; finished runs are not run again, and more can be added."""
    folder, out = parts_folder(tmp_path / "data"), tmp_path / "out"
    words = ["reproduce", str(folder), "--table", "multileaving", "--out", str(out)]
    words += ["--name", "few", "--rankers", "2", "--users", "perfect", "--json"]
    words += ["--impressions", "200", "--processes", "1", "--methods"]
    words += ["pairwise-preference", "team-draft"]

    def cells(*more: str) -> list[dict[str, object]]:
        assert main([*words, *more]) == 0
        found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return found

    first = cells("--runs", "1")
    (kept,) = out.glob("multileaving-exact.jsonl")
    lines = kept.read_text().splitlines()
    second = cells("--runs", "2")

    assert [cell["method"] for cell in first] == words[-2:]
    assert all(0.0 <= float(str(cell["error"])) <= 1.0 for cell in second)
    assert all(cell["checkpoints"] == [100, 200] for cell in second)
    assert {cell["runs"] for cell in second} == {4}
    assert kept.read_text().splitlines()[: len(lines)] == lines
    assert cells("--runs", "2") == second
