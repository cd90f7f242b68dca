"""Raw sessions and their sums have the same curve, and both benchmarks have figures."""

import numpy as np
import pytest

from models.bias.trust import estimate_trust
from rankstream.lab.benchmarks import curves
from rankstream.lab.benchmarks.curves import (
    N_ITEMS,
    N_RANKS,
    fit_raw,
    planted_sums,
    raw_views,
)


def test_raw_sessions_and_their_sums_have_the_same_curve() -> None:
    """Each view is in the sums once, and the rival ends where ours does."""
    sums = planted_sums(20_000, np.random.default_rng(4))
    views = raw_views(sums, np.random.default_rng(5))
    places = views.items * N_RANKS + views.rows
    shown = np.bincount(places, minlength=len(sums.shown))
    assert shown.tolist() == sums.shown.tolist()
    assert np.bincount(places, views.clicked).tolist() == sums.clicked.tolist()

    alpha, way = fit_raw(views, N_ITEMS, N_RANKS)
    found = estimate_trust(sums, n_ranks=N_RANKS)

    assert way.is_converged
    assert alpha == pytest.approx(found.curve.alpha, abs=1e-5)


def test_sums_have_the_same_rows_however_many_clicks() -> None:
    """And about as many clicks as are asked for."""
    for n_clicks in (10**5, 10**8):
        sums = planted_sums(n_clicks, np.random.default_rng(1))
        assert (sums.shown > 0).all()
        assert len(sums.shown) == N_ITEMS * N_RANKS
        assert sums.clicked.sum() == pytest.approx(n_clicks, rel=0.02)


def test_a_quick_run_has_every_figure() -> None:
    """None of them void, and none to be quoted."""
    figures = curves.measure(quick=True)

    assert len(figures) == 5
    assert all(figure["ratio"] is not None for figure in figures)
    assert "2,000 non-zero rows" in figures[0]["name"]
