"""Tables of learning from the first k documents: stopped, resumed, and what they say.

Law tests of the clicks are in `tests/laws/test_top_k_clicks.py`.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from rankstream.lab.reproduction.data import prepare
from rankstream.lab.reproduction.engine import (
    Job,
    Setup,
    core_hours,
    finished_runs,
    to_measure,
)
from rankstream.lab.reproduction.top_k.clicks import (
    click_chances,
    labelled_chunk,
    ranks_of,
)
from rankstream.lab.reproduction.top_k.fitting import tuned, worths_for
from rankstream.lab.reproduction.top_k.plan import (
    CANDIDATES,
    LABELS,
    LINEAR_ARP,
    PRODUCTION,
    SELECTED,
    TRUNCATED,
    Cell,
    Logging,
)
from rankstream.lab.reproduction.top_k.runs import (
    fold_of,
    live_once,
    logged_chunks,
    production_weights,
)
from rankstream.operations.cli import main

FEW = ("--runs", "1", "--folds", "2", "--processes", "1", "--shown", "1", "3")
N_DOCUMENTS = 12


def write_split(path: Path, first_query: int, seed: int, n_queries: int = 40) -> None:
    """Queries of twelve documents; two features tell their grade, with noise."""
    rng = np.random.default_rng(seed)
    lines = []
    for query in range(first_query, first_query + n_queries):
        for _ in range(N_DOCUMENTS):
            values = rng.random(4)
            told = values[1] + 0.5 * values[2] + 0.1 * rng.standard_normal()
            label = int(np.digitize(told, [1.0, 1.2]))
            numbers = " ".join(f"{i}:{value:.4f}" for i, value in enumerate(values, 1))
            lines.append(f"{label} qid:{query} {numbers}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folds."""
    folder = tmp_path_factory.mktemp("data") / "shop"
    folder.mkdir()
    for number in (1, 2, 3):
        write_split(folder / f"S{number}.txt", 100 * number, number)
    plan = {
        "Fold1": {"train": ["S1"], "vali": ["S2"], "test": ["S3"]},
        "Fold2": {"train": ["S2"], "vali": ["S3"], "test": ["S1"]},
    }
    (folder / "folds.json").write_text(json.dumps(plan))
    return folder


@pytest.fixture(scope="module")
def setup(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """The first fold, prepared."""
    place = tmp_path_factory.mktemp("place")
    prepare(folder, 1, place, normalisation="min-max")
    return Setup(place, "min-max", 1, 1)


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a table."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_of_estimators_goes_on_where_it_stopped(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that were cut off are run again, to the same numbers; others are not."""
    words = ["reproduce", str(folder), "--table", "top-k", "--out", str(tmp_path)]
    words += [*FEW, "--clicks", "1000", "100000"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    rows = rows_of(tmp_path / "top-k.csv")
    runs = tmp_path / "top-k.txt"
    whole = finished_runs(runs)

    assert "runs are left: 0.0" in printed
    assert "NDCG: policy-aware at 1 as at all k" in printed
    # Of grades 0 to 2 the two highest are relevant.
    assert {key.split("/")[2] for key in whole} == {"1"}
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "top-k-shown.svg",
        "top-k-clicks.svg",
    }
    assert all(0.0 < float(row["mean"]) <= 1.0 for row in rows)
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(lines[:-3]) + lines[-3][:50])
    assert main(words) == 0
    again = finished_runs(runs)
    assert rows_of(tmp_path / "top-k.csv") == rows
    assert again.keys() == whole.keys()
    assert all(again[key]["ndcg"] == whole[key]["ndcg"] for key in whole)
    untouched = runs.read_bytes()
    capsys.readouterr()
    assert main(words) == 0
    assert runs.read_bytes() == untouched
    printed = capsys.readouterr().out
    assert "runs are left" not in printed
    took = sum(result["seconds"] for result in again.values()) / 3600.0
    assert f"{len(again)} runs took {took:.2g} core-hours" in printed


def test_the_table_of_losses_tells_what_was_selected(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each candidate estimated and true, and the chosen one is one of them."""
    words = ["reproduce", str(folder), "--table", "losses", "--out", str(tmp_path)]
    words += [*FEW, "--clicks", "100000"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    found = {
        (row["loss"], row["figure"]): float(row["mean"])
        for row in rows_of(tmp_path / "losses-selection.csv")
    }

    assert {name for name, _ in found} == {*CANDIDATES, SELECTED}
    for loss in CANDIDATES:
        assert found[loss, "estimated"] == pytest.approx(found[loss, "true"], rel=0.1)
    most = max(found[loss, "true"] for loss in CANDIDATES)
    assert most - found[SELECTED, "true"] <= found[SELECTED, "lost"] + 1e-6
    assert "the selected loss lacks no DCG@5" in printed
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "losses-shown.svg",
        "losses-selection.svg",
    }


def test_policy_aware_learning_is_indifferent_to_the_cutoff(setup: Setup) -> None:
    """It is near full information at each; others stay behind where k is small."""

    def ndcg(estimator: str, cutoff: int, *, is_randomised: bool) -> float:
        logging = Logging(cutoff, is_randomised, 10**7)
        cell = Cell(estimator, TRUNCATED, logging)
        return float(live_once(setup, Job(cell, 1, 0))["ndcg"])

    full = ndcg(LABELS, 0, is_randomised=False)
    for cutoff in (1, 2, 5):
        aware = ndcg("policy-aware", cutoff, is_randomised=True)
        assert aware == pytest.approx(full, abs=0.02)
    # Alone at the first rank, all documents are as likely to be shown.
    assert ndcg("oblivious", 1, is_randomised=True) == pytest.approx(full, abs=0.02)
    assert ndcg(PRODUCTION, 0, is_randomised=False) < full - 0.02
    for estimator in ("oblivious", "rerank", "affine"):
        assert ndcg(estimator, 2, is_randomised=False) < full - 0.02


def test_cells_of_a_run_share_their_ranker_and_clicks(setup: Setup) -> None:
    """Estimators are paired; other runs and loggings have draws of their own."""
    first, second = (production_weights(setup, 1, run) for run in (0, 1))
    assert not np.array_equal(first, second)

    def clicks(estimator: str, logging: Logging, run: int = 0) -> bytes:
        cell = Cell(estimator, TRUNCATED, logging)
        chunks, _ = logged_chunks(setup, Job(cell, 1, run), first)
        return next(iter(chunks.values())).weights.tobytes()

    logging = Logging(3, True, 10_000)
    assert clicks("oblivious", logging) == clicks("policy-aware", logging)
    assert clicks("oblivious", logging) != clicks("oblivious", logging, run=1)
    other = Logging(3, False, 10_000)
    assert clicks("oblivious", logging) != clicks("oblivious", other)


def test_training_is_clipped_in_three_ways_and_what_judges_it_is_not(
    setup: Setup,
) -> None:
    """Values times propensities, raised or not, are the same; held-out clicks are few.

    Of twelve documents and five shown, the last one is any of eight.
    """
    logging = Logging(5, True, 10**6)
    job = Job(Cell("policy-aware", TRUNCATED, logging), 1, 0)
    production = production_weights(setup, 1, 0)
    chunks, judged = logged_chunks(setup, job, production)
    assert [*chunks] == ["none", "1/50", "1/10"]
    train = fold_of(setup, 1).train
    ranks = ranks_of(train.features @ production, train.offsets)
    chances = np.where(ranks >= 5, 1 / 5 / 8, 1 / ranks)
    for name, floor in (("none", 0.0), ("1/50", 0.02), ("1/10", 0.1)):
        raised = chunks[name].values * np.maximum(chances, floor)
        assert raised == pytest.approx(chunks["none"].values * chances)
    wanted = click_chances(fold_of(setup, 1).validation.labels > 0)
    assert judged.values.mean() == pytest.approx(wanted.mean(), rel=0.05)
    few = Job(Cell("oblivious", TRUNCATED, Logging(5, True, 400)), 1, 0)
    (chunk,), judged = (
        (found := logged_chunks(setup, few, production))[0].values(),
        found[1],
    )
    lists = [1.0 / each.weights[each.weights > 0.0].min() for each in (chunk, judged)]
    assert lists[1] < 0.4 * lists[0]


def test_a_selection_is_told_by_clicks_and_judged_by_labels(setup: Setup) -> None:
    """After very many clicks estimates are the truth, of the same queries."""
    cell = Cell("policy-aware", SELECTED, Logging(5, True, 10**10))
    found = live_once(setup, Job(cell, 1, 0))
    true = {name: each["true"] for name, each in found["losses"].items()}
    estimated = {name: each["estimated"] for name, each in found["losses"].items()}

    assert estimated == pytest.approx(true, rel=0.003)
    assert found["chosen"] == max(estimated, key=estimated.__getitem__)
    assert found["best"] == max(true, key=true.__getitem__)
    assert found["lost"] == max(true.values()) - true[found["chosen"]]
    behind = estimated[found["chosen"]] - estimated[found["best"]]
    assert found["behind"] == pytest.approx(behind, abs=1e-12)


def test_held_out_values_choose_between_trainings(setup: Setup) -> None:
    """By ranks of all documents where these are optimised, else by DCG of the first."""
    fold = fold_of(setup, 1)
    good, held_out = labelled_chunk(fold.train), labelled_chunk(fold.validation)
    bad = good._replace(values=1.0 - good.values)
    for loss in (TRUNCATED, LINEAR_ARP):
        found = tuned(loss, {"bad": bad, "good": good}, held_out, seed=1)
        assert found.setting == "good"

    assert worths_for(LINEAR_ARP, held_out).tolist() == [-1.0 * r for r in range(1, 13)]
    assert worths_for("arp-logistic", held_out)[-1] == -12.0
    discounts = 1.0 / np.log2(np.arange(2.0, 7.0))
    assert worths_for(TRUNCATED, held_out) == pytest.approx(discounts)


def test_labels_are_relevant_from_the_one_that_is_asked_for(folder: Path) -> None:
    """The two highest of three grades, or the highest alone."""
    place = folder.parent / "graded"
    prepare(folder, 1, place, normalisation="min-max")
    lower, higher = (fold_of(Setup(place, "min-max", n, 1), 1) for n in (1, 2))

    assert {*lower.train.labels.tolist()} == {0, 1}
    assert lower.train.labels.sum() > higher.train.labels.sum() > 0
    assert (lower.validation.labels >= higher.validation.labels).all()


def test_cost_is_that_of_runs_like_those_that_were_measured() -> None:
    """By the median of each kind; a kind that is not known counts as the others."""
    jobs = ["a1", "a2", "a3", "a4", "b1", "c1"]
    assert to_measure(jobs, lambda job: job[0]) == ["a1", "a2", "a3", "b1", "c1"]
    known = {
        "a": [{"seconds": 1.0}, {"seconds": 2.0}, {"seconds": 90.0}],
        "b": [{"seconds": 4.0}],
    }
    hours = core_hours(jobs, lambda job: job[0], known)

    assert hours * 3600.0 == pytest.approx(4 * 2.0 + 4.0 + 3.0)
    assert core_hours(jobs, lambda job: job[0], {}) == 0.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "0"], "--runs, --folds and --processes must be at least 1"),
        (["--shown", "0"], "--shown must be at least 1; got 0"),
        (["--clicks", "0"], "--clicks must be at least 1; got 0"),
        (["--relevant-from", "3"], "--relevant-from must lie in 1..2"),
    ],
)
def test_wrong_calls_say_so(
    words: list[str],
    said: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line that names what is wrong, and status 2, before long work on data."""
    call = ["reproduce", str(folder), "--table", "top-k", "--out", str(tmp_path / "o")]

    assert main([*call, *words]) == 2
    assert said in capsys.readouterr().err
    # What is relevant is known from labels alone.
    assert (tmp_path / "o" / "data").exists() is (words[0] == "--relevant-from")
