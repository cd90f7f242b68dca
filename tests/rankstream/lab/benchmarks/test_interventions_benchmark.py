"""A ranker that learns from its own lists rises, and by its correction for position."""

import numpy as np

from rankstream.lab.benchmarks.interventions import NAIVE, closed_loop, measure
from tests.session.cases import n_cases

N_RUNS, N_LISTS = 3, n_cases(2_500, 4_000)


def test_the_correction_is_what_makes_a_poor_ranker_good() -> None:
    """Paired over runs, on lists that users saw, where few look below the first rank.

    Without it, the order that users see is the order that they seem to like.
    """
    gains, above = [], []
    for seed in range(N_RUNS):
        ours, naive = (closed_loop(seed, N_LISTS, x) for x in ((), NAIVE))
        assert ours.n_trained == naive.n_trained == 3
        assert ours.first.ndcg_shown == naive.first.ndcg_shown
        shown = [x.last.ndcg_shown or 0.0 for x in (ours, naive)]
        gains.append(shown[0] - (ours.first.ndcg_shown or 0.0))
        above.append(shown[0] - shown[1])
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / np.sqrt(N_RUNS)
    assert min(above) > 0.0
    assert min(np.mean(gains), np.mean(above)) > 0.05


def test_a_short_run_gives_all_figures() -> None:
    """Both loops of each run are told."""
    figures = measure(quick=True)
    assert len(figures) == 5
    assert [figure["floor"] for figure in figures] == [1.0, 1.0, None, None, None]
    for run in figures[0]["runs"]:
        assert all(run[side]["interventions"] for side in ("corrected", "naive"))
