"""Means, errors and tests of differences, on planted numbers."""

import argparse
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from models.learners.coltr import ColtrConfig
from models.learners.duel_learner import DuelConfig
from rankstream.lab.commands.reproduce import add_arguments
from rankstream.lab.reproduction.engine import checkpoints_of
from rankstream.lab.reproduction.figures import Curves, figure_of, paired_difference
from rankstream.lab.reproduction.literature import DATA_SETS, published_of
from rankstream.lab.reproduction.literature import Published as Printed
from rankstream.lab.reproduction.online.plan import (
    DECAY,
    EXACT,
    PUBLISHED,
    Cell,
    cells_of,
    config_of,
)
from rankstream.lab.reproduction.online.report import (
    comparison_rows,
    comparison_table,
    curve_rows,
    difference_of,
    is_as_printed,
    learning_curves,
    orderings,
)


def test_published_tables_are_those_of_the_thesis() -> None:
    """Cells picked by hand, of all five data sets."""
    small = published_of("MQ2008")
    assert small["pdgd-linear", "perfect"] == (0.699, 0.024, 959.7, 43.4)
    assert small["dbgd-neural", "informational"] == (0.595, 0.053, 720.9, 79.0)
    assert published_of("MQ2007")["mgd-linear", "navigational"].online == 635.9
    assert published_of("istella")["pairwise-linear", "perfect"].offline == 0.252
    assert [len(published_of(name)) for name in DATA_SETS] == [18] * 5
    assert published_of("shop") == {}


def test_errors_of_a_mean_leave_the_spread_of_folds_out() -> None:
    """Two folds far apart, each with runs that deviate by 1."""
    rng = np.random.default_rng(0)
    values = np.array([[10.0], [50.0]]) + rng.normal(size=(2, 400))
    figure = figure_of(values)

    assert figure.mean == pytest.approx(30.0, abs=0.2)
    assert figure.deviation == pytest.approx(20.0, rel=0.05)
    assert figure.error == pytest.approx(1.0 / math.sqrt(800), rel=0.1)
    assert figure_of(np.full((2, 3), np.nan)).n_runs == 0
    assert math.isnan(figure_of(np.ones((1, 1))).error)


def test_differences_are_tested_against_both_errors() -> None:
    """Two standard errors apart gives a p of about .05."""
    figure = figure_of(np.random.default_rng(1).normal(5.0, 1.0, (5, 20)))
    error = math.hypot(0.1, figure.deviation / 10.0)
    gap = difference_of(figure, figure.mean + 1.96 * error, 1.0, 100, slack=0.0)

    assert gap.p == pytest.approx(0.05, abs=0.001)
    assert not gap.is_same
    assert difference_of(figure, figure.mean + 0.19, 1.0, 100, slack=0.0).is_same
    assert difference_of(figure, figure.mean + 0.21, 1.0, 100, slack=0.02).is_same


def test_paired_runs_cancel_what_they_share() -> None:
    """Differences of .01 under a shared noise of 1."""
    shared = np.random.default_rng(2).normal(size=(5, 25))
    own = 0.001 * np.random.default_rng(3).normal(size=(5, 25))
    gap = paired_difference(shared + 0.01 + own, shared)

    assert gap.value == pytest.approx(0.01, abs=0.001)
    assert gap.p < 1e-6


def planted(value: float) -> Curves:
    """A cell whose runs end at a value."""
    noise = 1e-3 * np.random.default_rng(4).normal(size=(2, 5, 3))
    of = {"offline": value + noise, "online": 100.0 * value + noise, "recent": noise}
    return Curves([100, 200, 300], of)


def test_orderings_hold_as_planted() -> None:
    """PDGD above both DBGDs, near its best under one user and far under another."""
    ends = {
        ("pdgd-linear", "perfect"): 0.70,
        ("pdgd-linear", "almost_random"): 0.69,
        ("pdgd-linear", "almost_random_by_rank"): 0.60,
        ("dbgd-oracle", "perfect"): 0.695,
        ("dbgd-long", "perfect"): 0.71,
        ("dbgd-long", "almost_random"): 0.60,
        ("dbgd-long", "almost_random_by_rank"): 0.55,
    }
    cells = {Cell(EXACT, *key, 300): planted(value) for key, value in ends.items()}
    holds = [holds for _, _, holds in orderings(cells)]

    assert holds == [True, False, True, True, True, False]
    assert len(curve_rows(cells)) == 7 * 3


def test_pictures_are_whole_and_name_every_curve() -> None:
    """Valid XML, with the words of each panel and line."""
    cells = {
        Cell(EXACT, learner, users, 300): planted(0.5)
        for learner in ("pdgd-linear", "a<b")
        for users in ("perfect", "informational")
    }
    root = ET.fromstring(learning_curves("NDCG & more", cells))  # noqa: S314  our own
    words = {"".join(element.itertext()) for element in root.iter()}

    assert {"NDCG & more", "PDGD", "a<b", "users: perfect"} <= words
    assert "users: informational" in words


def test_forms_differ_as_the_published_code_does() -> None:
    """Decay but not for MGD, sampled assignments, own ties, the worst first."""
    exact, published = (
        {
            cell.learner: config_of(cell, 46, seed=1)
            for cell in cells_of("learners", form, 10_000)
        }
        for form in (EXACT, PUBLISHED)
    )
    assert published["pdgd-linear"].decay == published["dbgd-neural"].decay == DECAY
    assert published["mgd-linear"].decay == exact["dbgd-linear"].decay == 1.0
    for name in ("dbgd-linear", "dbgd-neural", "mgd-linear"):
        assert (published[name].n_samples, published[name].own_ties) == (10_000, True)  # type: ignore[attr-defined]
        assert (exact[name].n_samples, exact[name].own_ties) == (0, False)  # type: ignore[attr-defined]
    assert published["pairwise-linear"].worst_first  # type: ignore[attr-defined]
    assert not exact["pairwise-linear"].worst_first  # type: ignore[attr-defined]


def test_checkpoints_end_with_the_run() -> None:
    """Before, they are 1, 2 and 5 times powers of ten."""
    assert checkpoints_of(1_500) == [100, 200, 500, 1_000, 1_500]
    assert checkpoints_of(50) == [50]


def test_settings_are_those_of_the_literature() -> None:
    """Rates, decay, candidates and exploration, written out once more."""
    exact, published = (
        {
            cell.learner: config_of(cell, 46, seed=1)
            for table in ("learners", "long-run", "lags", "candidates")
            for cell in cells_of(table, form, 10_000)
        }
        for form in (EXACT, PUBLISHED)
    )
    rates = {
        "pdgd-linear": 0.1,
        "pdgd-neural": 0.1,
        "pdgd-linear-behind-1000": 0.1,
        "dbgd-linear": 0.01,
        "dbgd-neural": 0.01,
        "mgd-linear": 0.01,
        "pairwise-linear": 0.1,
        "dbgd-long": 0.001,
        "dbgd-oracle": 0.001,
        "coltr-linear": 0.05,
    }
    for name, rate in rates.items():
        assert exact[name].learning_rate == published[name].learning_rate == rate
        assert exact[name].decay == 1.0
        decay = 1.0 if name == "mgd-linear" else 0.9999977
        assert published[name].decay == decay
        assert exact[name].optimiser == "sgd"
    for name in ("pdgd-neural", "dbgd-neural"):
        assert (exact[name].kind, exact[name].hidden) == ("neural", (64,))
    assert exact["pdgd-linear"].hidden == ()
    duels = {name: exact[name] for name in ("dbgd-linear", "dbgd-long", "mgd-linear")}
    for name, config in duels.items():
        assert isinstance(config, DuelConfig)
        assert config.n_candidates == (49 if name == "mgd-linear" else 1)
        assert (config.unit, config.tau) == (1.0, 3.0)
        assert config.comparison == "probabilistic"
    assert exact["dbgd-oracle"].comparison == "oracle"  # type: ignore[attr-defined]
    assert exact["pairwise-linear"].exploration == 0.8  # type: ignore[attr-defined]
    coltr = exact["coltr-linear"]
    assert isinstance(coltr, ColtrConfig)
    assert (coltr.n_candidates, coltr.unit, coltr.variance_weight) == (50, 1.0, 1.0)


@pytest.mark.parametrize(
    ("beyond", "is_same"), [(0.98, True), (1.02, False)], ids=["within", "beyond"]
)
def test_what_counts_as_the_same(beyond: float, is_same: bool) -> None:
    """Two standard errors of the printed value, plus 0.005 offline and 1 % online."""
    error_offline, error_online = 0.02 / math.sqrt(125), 40.0 / math.sqrt(125)
    for sign in (-1.0, 1.0):
        printed = Printed(
            0.7 + sign * beyond * (2.0 * error_offline + 0.005), 0.02, 900.0, 40.0
        )
        # The slack is a share of the printed value, hence the division.
        gap = sign * beyond
        mean = 900.0 * (1.0 - gap * 0.01) - gap * 2.0 * error_online
        noise = np.zeros((2, 5, 3))
        of = {"offline": 0.7 + noise, "online": mean + noise, "recent": noise}
        curves = Curves([100, 200, 300], of)
        cells = {Cell(EXACT, "pdgd-linear", "perfect", 300): curves}
        rows = comparison_rows(cells, {("pdgd-linear", "perfect"): printed})
        same = {row["figure"]: row.get("exact_form_same") for row in rows}

        assert same["offline"] is is_same
        assert same["online"] is is_same


@pytest.mark.parametrize(
    ("words", "is_printed"),
    [
        ([], True),
        (["--published", "--seed", "2"], True),
        (["--cutoff", "5"], False),
        (["--gain", "linear"], False),
        (["--normalisation", "none"], False),
        (["--keep-empty"], False),
        (["--table", "candidates"], False),
    ],
)
def test_other_measures_stand_beside_no_printed_value(
    words: list[str], is_printed: bool
) -> None:
    """An NDCG@5 is not held against a printed NDCG@10."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = parser.parse_args(["MQ2008", *words])

    assert is_as_printed(arguments, 10_000) is is_printed
    assert not is_as_printed(arguments, 9_999)


def test_tables_say_what_their_p_is() -> None:
    """Where a printed value stands beside, and only there."""
    cells = {Cell(EXACT, "pdgd-linear", "perfect", 300): planted(0.7)}
    for printed in (published_of("MQ2008"), {}):
        rows = comparison_rows(cells, printed)
        caption = comparison_table(rows, "offline", "title").caption

        assert ("conservative" in str(caption)) is bool(printed)
