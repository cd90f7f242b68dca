"""Cells of the tables, their jobs, and how runs become figures."""

from argparse import Namespace

import numpy as np
import pytest

from rankstream.lab.reproduction.engine import Finished, Job
from rankstream.lab.reproduction.top_k.losses import ESTIMATED, TRUE, selections_of
from rankstream.lab.reproduction.top_k.plan import (
    CANDIDATES,
    ESTIMATORS,
    LABELS,
    NDCG,
    NOTHING,
    PRODUCTION,
    SELECTED,
    TRUNCATED,
    WHOLE,
    Cell,
    Logging,
    over_clicks,
    over_cutoffs,
    selections,
)
from rankstream.lab.reproduction.top_k.report import (
    Axis,
    TopKStudy,
    cutoffs_below,
    laid_out,
    share_longer,
)

ASKED = Namespace(shown=None, clicks=None)


def test_estimators_learn_from_lists_as_they_are_and_randomised_ones() -> None:
    """But policy-aware learning needs chance; and what they are compared to."""
    cells = over_cutoffs(ESTIMATORS, TRUNCATED, (2, 3), 10)
    found = {(cell.label, cell.logging) for cell in cells}

    wanted = {("policy-aware", Logging(k, True, 10)) for k in (2, 3)}
    for k in (2, 3):
        for name in ("oblivious", "rerank", "affine"):
            wanted |= {
                (name, Logging(k, False, 10)),
                (f"{name}, randomised", Logging(k, True, 10)),
            }
    wanted |= {("no cutoff", Logging(WHOLE, False, 10))}
    wanted |= {(PRODUCTION, NOTHING), (LABELS, NOTHING)}
    assert found == wanted
    assert len(cells) == len(wanted)
    assert {cell.loss for cell in cells} == {TRUNCATED}


def test_clicks_vary_at_one_number_of_documents() -> None:
    """Whole lists have as many clicks; labels and the production ranker have none."""
    cells = over_clicks(ESTIMATORS, TRUNCATED, 5, (10, 100))
    lines = laid_out(cells, "n_clicks", (10, 100))

    assert len(cells) == len({*cells}) == 2 * (7 + 1) + 2
    for label, row in lines.items():
        counts = [0, 0] if label in (PRODUCTION, LABELS) else [10, 100]
        assert [cell.logging.n_clicks for cell in row] == counts
    assert {cell.logging.cutoff for cell in lines["rerank, randomised"]} == {5}
    assert selections(5, (10,)) == [
        Cell("policy-aware", SELECTED, Logging(5, True, 10))
    ]


def test_runs_of_all_cells_and_folds_follow_each_other() -> None:
    """Folds from 1, runs from 0: whoever stops early has all cells."""
    cells = selections(5, (10, 100))
    jobs = TopKStudy(ASKED).jobs(cells, n_folds=2, n_runs=2)
    found = [(job.run, job.fold, job.cell) for job in jobs]

    assert found == [
        (run, fold, cell) for run in (0, 1) for fold in (1, 2) for cell in cells
    ]


def test_tables_go_up_to_the_length_of_most_lists() -> None:
    """A list of k documents hides nothing at k."""
    sizes = np.array([2, 5, 5, 5, 30])

    assert [share_longer(k, sizes) for k in (1, 2, 4, 5)] == [1.0, 0.8, 0.8, 0.2]
    assert cutoffs_below(sizes) == (1, 2, 3)
    assert cutoffs_below(np.array([11, 10, 4, 11])) == (1, 2, 3, 5, 7)
    assert cutoffs_below(np.array([1, 1])) == (1,)


def test_bands_are_two_errors_wide() -> None:
    """Within folds; of one run there is none."""
    axis = Axis("cutoff", (3,), "")
    (point,) = axis.points([np.array([[0.1, 0.3], [0.5, 0.7]])])

    assert point == pytest.approx((3.0, 0.4, 2.0 * np.sqrt(0.02 / 4)))
    (alone,) = axis.points([np.array([[0.1]])])
    assert alone == (3.0, 0.1, 0.0)


@pytest.mark.parametrize(
    ("behind", "error", "is_within"),
    [(0.0, 0.0, 1.0), (0.19, 0.1, 1.0), (0.21, 0.1, 0.0)],
)
def test_a_selection_has_the_figures_of_what_it_chose(
    behind: float, error: float, is_within: float
) -> None:
    """And is within its error where the best is at most two of them ahead of it."""
    cell = Cell("policy-aware", SELECTED, Logging(5, True, 10))
    losses = {
        name: {NDCG: 0.1 * i, ESTIMATED: 1.0 + i, TRUE: 2.0 + i}
        for i, name in enumerate(CANDIDATES)
    }
    chosen, best = CANDIDATES[1], CANDIDATES[4]
    result = {
        "losses": losses, "chosen": chosen, "best": best, "lost": 3.0,
        "behind": behind, "behind_error": error,
    }  # fmt: skip
    results = {f"setup/{Job(cell, 1, 0).key()}": result}
    found = selections_of(cell, Finished(results, "setup", 1, 2))

    for what, value in ((NDCG, 0.1), (ESTIMATED, 2.0), (TRUE, 3.0)):
        assert found.figures[SELECTED, what][0, 0] == value
        assert found.figures[best, what][0, 0] == losses[best][what]
        assert np.isnan(found.figures[best, what][0, 1])
    assert found.is_within[0, 0] == is_within
    assert found.is_best[0, 0] == 0.0
    assert found.lost[0, 0] == 3.0
    assert found.gained[0, 0] == pytest.approx(3.0 - (2.0 + 3.0 + 4.0 + 5.0 + 6.0) / 5)
    assert np.isnan(found.gained[0, 1])
