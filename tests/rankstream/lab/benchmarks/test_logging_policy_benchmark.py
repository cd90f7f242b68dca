"""Both gradients of the benchmark are of one query, and a quick run has its figures."""

import numpy as np

from rankstream.lab.benchmarks import logging_policy


def test_both_sides_have_one_mean_and_the_rival_varies_more() -> None:
    """Within errors, item by item."""
    rng = np.random.default_rng(1)
    query = logging_policy.planted_query(rng)
    scores = 0.5 * rng.normal(size=logging_policy.N_ITEMS)
    ours, rival = (
        np.stack([gradient(scores, query, rng) for _ in range(150)])
        for gradient in (logging_policy.exact_first, logging_policy.all_drawn)
    )
    error = np.sqrt((ours.var(axis=0) + rival.var(axis=0)) / 150)

    assert (np.abs(ours.mean(axis=0) - rival.mean(axis=0)) < 4.5 * error).all()
    assert ours.var(axis=0).sum() < rival.var(axis=0).sum()
    assert np.abs(ours.mean(axis=0)).max() > 10.0 * error.max()


def test_a_quick_run_has_all_figures() -> None:
    """None is void; a list's is that of the two times beside it."""
    *steps, times, ours, plain, _, _, _ = logging_policy.measure(quick=True)

    assert len(steps) == 2
    assert all(figure["ratio"] is not None for figure in steps)
    assert all(figure["goal"] == 30.0 for figure in steps)
    assert times["goal"] == 3.0
    assert times["value"] == ours["value"] / plain["value"]
