"""A planted examination curve is recovered from sums."""

import numpy as np

from models.bias.examination import estimate_examination


def test_planted_examination_is_recovered_where_naive_rates_are_not() -> None:
    """Better documents stand higher, which fools click rates by rank but not this."""
    rng = np.random.default_rng(4)
    n_documents, n_ranks = 400, 10
    examination = np.arange(1.0, n_ranks + 1) ** -0.5
    relevance = rng.uniform(0.05, 0.95, n_documents)
    usual = 1 + ((1 - relevance) * (n_ranks - 1)).astype(np.int64)
    documents = np.repeat(np.arange(n_documents), n_ranks)
    ranks = np.tile(np.arange(1, n_ranks + 1), n_documents)
    distance = np.abs(ranks - usual[documents])
    shown = np.maximum(2, 4_000 // 2**distance).astype(np.int64)
    clicked = rng.binomial(shown, examination[ranks - 1] * relevance[documents])

    estimated = estimate_examination(
        documents, ranks, shown, clicked, n_ranks=n_ranks, n_iterations=300
    )
    rates = np.bincount(ranks, clicked)[1:] / np.bincount(ranks, shown)[1:]

    assert np.abs(estimated - examination).max() < 0.03
    assert np.abs(rates / rates[0] - examination).max() > 0.1


def test_a_rank_that_was_never_used_has_no_estimate() -> None:
    """It is NaN rather than a guess."""
    one = np.array([1], np.int64)

    estimated = estimate_examination(one * 0, one, one * 9, one, n_ranks=2)

    assert estimated[0] == 1.0
    assert np.isnan(estimated[1])
