"""A planted examination curve is recovered from sums, and what is not known is said."""

import numpy as np
import pytest

from models.bias.examination import (
    AT_BOUND,
    FEW_VIEWS,
    NO_CLICKS,
    NO_MISSES,
    NOT_CONNECTED,
    NOT_CONVERGED,
    NOT_SHOWN,
    ExaminationCurve,
    estimate_examination,
)


def curve_of(
    *rows: tuple[int, int, int, int], n_ranks: int, confidence: float = 0.95
) -> ExaminationCurve:
    """Of rows of document, rank, shown, clicked."""
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return estimate_examination(*columns, n_ranks=n_ranks, confidence=confidence)


@pytest.mark.parametrize("power", [0.5, 0.8, 1.5])
def test_planted_examination_is_recovered_where_naive_rates_are_not(
    power: float,
) -> None:
    """Better documents stand higher, which fools click rates by rank but not this."""
    rng = np.random.default_rng(4)
    n_documents, n_ranks = 400, 10
    examination = np.arange(1.0, n_ranks + 1) ** -power
    relevance = rng.uniform(0.05, 0.95, n_documents)
    usual = 1 + ((1 - relevance) * (n_ranks - 1)).astype(np.int64)
    documents = np.repeat(np.arange(n_documents), n_ranks)
    ranks = np.tile(np.arange(1, n_ranks + 1), n_documents)
    distance = np.abs(ranks - usual[documents])
    shown = np.maximum(2, 4_000 // 2**distance).astype(np.int64)
    clicked = rng.binomial(shown, examination[ranks - 1] * relevance[documents])

    found = estimate_examination(
        documents, ranks, shown, clicked, n_ranks=n_ranks, confidence=0.9999
    )
    rates = np.bincount(ranks, clicked)[1:] / np.bincount(ranks, shown)[1:]

    assert np.abs(found.ratios / examination - 1).max() < 0.05
    assert (found.low <= examination).all()
    assert (examination <= found.high).all()
    assert (found.high[1:] - found.low[1:]).max() < 0.05
    assert np.abs(rates / rates[0] / examination - 1).max() > 0.2


def test_three_numbers_by_hand() -> None:
    """Two documents at two ranks whose rates are products have these as estimates."""
    found = curve_of(
        (0, 1, 1_000, 800), (0, 2, 1_000, 400), (1, 1, 500, 100), (1, 2, 500, 50),
        n_ranks=2,
    )  # fmt: skip
    # Odds by delta method: variance of log p is (1 - p) / (n p), and documents are
    # combined by the inverse of what both ranks give together.
    of_first = 0.2 / 800 + 0.6 / 400
    of_other = 0.8 / 100 + 0.9 / 50
    deviation = (1 / of_first + 1 / of_other) ** -0.5

    assert found.ratios == pytest.approx([1.0, 0.5], rel=1e-9)
    assert found.high[1] == pytest.approx(0.5 * np.exp(1.959964 * deviation), rel=1e-6)
    assert found.low[1] == pytest.approx(0.5 * np.exp(-1.959964 * deviation), rel=1e-6)
    assert found.reasons == ("", "")
    assert (found.low[0], found.high[0]) == (1.0, 1.0)


def test_a_later_rank_may_be_looked_at_more() -> None:
    """A ratio above 1 is no probability, and is not cut."""
    found = curve_of(
        (0, 1, 1_000, 200), (0, 2, 1_000, 400), (1, 1, 500, 50), (1, 2, 500, 100),
        n_ranks=2,
    )  # fmt: skip

    assert found.ratios == pytest.approx([1.0, 2.0], rel=1e-9)
    assert 1.5 < found.low[1] < 2.0 < found.high[1] < 2.5


def test_ranks_that_nothing_connects_have_no_ratio() -> None:
    """Not shown, not clicked, documents at one rank only, and two islands."""
    found = curve_of(
        (0, 1, 90, 50), (0, 2, 90, 30),
        (1, 3, 90, 40),
        (2, 4, 90, 40), (2, 5, 90, 30),
        (0, 6, 90, 0), (3, 1, 90, 0), (3, 6, 90, 0),
        n_ranks=7,
    )  # fmt: skip

    assert found.ratios[:2] == pytest.approx([1.0, 0.6])
    assert np.isnan(found.ratios[2:]).all()
    assert np.isnan([found.low[2:], found.high[2:]]).all()
    assert found.reasons == (
        "", "", NOT_CONNECTED, NOT_CONNECTED, NOT_CONNECTED, NO_CLICKS, NOT_SHOWN
    )  # fmt: skip


def test_a_document_clicked_at_one_rank_connects_one_way_only() -> None:
    """Its misses say no more than that another rank is small, however small.

    Where others say the same the other way round, both have an end.
    """
    one_way = [
        (0, 1, 90, 50), (0, 2, 90, 40),
        (1, 1, 90, 40), (1, 3, 90, 0),
        (2, 3, 90, 20), (2, 4, 90, 30),
    ]  # fmt: skip
    there = curve_of(*one_way, n_ranks=4)
    and_back = curve_of(*one_way, (3, 4, 90, 20), (3, 2, 90, 0), n_ranks=4)

    assert np.isfinite(there.ratios).tolist() == [True, True, False, False]
    assert there.reasons[2:] == (NOT_CONNECTED, NOT_CONNECTED)
    assert np.isfinite(and_back.ratios).all()
    assert (and_back.low[1:] < and_back.ratios[1:]).all()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 1, 9, 1)],
        [(0, 1, 90, 0), (0, 2, 90, 0)],
        [(0, 1, 90, 0), (0, 2, 90, 40), (0, 3, 90, 30)],
        [(0, 2, 90, 40), (0, 3, 90, 30)],
        [(0, 1, 0, 0), (0, 2, 0, 0)],
    ],
    ids=["none", "one", "no clicks", "none at the first", "no first", "no views"],
)
def test_without_a_first_rank_nothing_is_known(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """Every rank has a reason."""
    found = curve_of(*rows, n_ranks=3)

    assert np.isnan([found.ratios, found.low, found.high]).all()
    assert all(found.reasons)


def test_a_perfect_fit_at_the_bound_has_no_interval() -> None:
    """Where all that is shown is clicked, curvature says nothing."""
    found = curve_of((0, 1, 90, 90), (0, 2, 90, 90), n_ranks=2)
    some = curve_of(
        (0, 1, 90, 90), (0, 2, 90, 90), (1, 1, 90, 45), (1, 3, 90, 30), n_ranks=3
    )

    assert found.ratios.tolist() == [1.0, 1.0]
    assert np.isnan(found.low[1])
    assert found.reasons in {("", NO_MISSES), ("", AT_BOUND)}
    assert some.ratios == pytest.approx([1.0, 1.0, 2 / 3])
    assert some.reasons[1:] in {(NO_MISSES, ""), (AT_BOUND, "")}


def test_ranks_that_bounds_hold_have_no_interval() -> None:
    """Always clicked at two ranks: no probability can make it more at either."""
    found = curve_of(
        (0, 1, 400, 400), (0, 2, 400, 400), (1, 1, 90, 40), (1, 2, 90, 50), n_ranks=2
    )

    assert found.ratios.tolist() == [1.0, 1.0]
    assert np.isnan([found.low[1], found.high[1]]).all()
    assert found.reasons == ("", AT_BOUND)


def test_documents_that_were_seldom_seen_give_no_interval() -> None:
    """Theirs would be one around a number that is too large; a few do no harm."""
    seldom = [(i, rank, 3, 3 - rank) for i in range(200) for rank in (1, 2)]
    often = [(999, 1, 9_000, 4_000), (999, 2, 9_000, 2_000)]
    found = curve_of(*seldom, n_ranks=2)
    together = curve_of(*seldom, *often, n_ranks=2)

    assert np.isfinite(found.ratios).all()
    assert np.isnan(found.low[1])
    assert found.reasons == ("", FEW_VIEWS)
    assert together.reasons == ("", "")


def test_an_interval_narrows_with_the_root_of_the_counts() -> None:
    """Four times as many are half as wide, in logarithms; and confidence widens."""

    def width(times: int, confidence: float = 0.95) -> float:
        rows = [(0, 1, 100, 60), (0, 2, 90, 30), (1, 1, 80, 20), (1, 2, 70, 10)]
        scaled = [(d, k, n * times, c * times) for d, k, n, c in rows]
        found = curve_of(*scaled, n_ranks=2, confidence=confidence)
        return float(np.log(found.high[1] / found.low[1]))

    assert width(4) == pytest.approx(width(1) / 2, rel=1e-6)
    assert width(1, 0.8) / width(1) == pytest.approx(1.281552 / 1.959964, rel=1e-6)


@pytest.mark.parametrize(
    ("row", "confidence", "told"),
    [
        ((0, 1, 3, 4), 0.95, "clicked must lie in 0..shown"),
        ((0, 1, 3, -1), 0.95, "clicked must lie in 0..shown"),
        ((0, 0, 3, 1), 0.95, "ranks must lie in 1..2; got 0..0"),
        ((0, 3, 3, 1), 0.95, "ranks must lie in 1..2; got 3..3"),
        ((0, 1, 3, 1), 1.0, "confidence must lie in"),
    ],
)
def test_what_no_count_can_be_is_refused(
    row: tuple[int, int, int, int], confidence: float, told: str
) -> None:
    """With what was given."""
    with pytest.raises(ValueError, match=told):
        curve_of(row, n_ranks=2, confidence=confidence)


def test_counts_of_all_sizes_end_in_a_number_or_a_reason() -> None:
    """From one view to a billion, from no click to one each time: no warning either."""
    rng = np.random.default_rng(1)
    n_known = 0
    for _ in range(1_500):
        n_ranks, n_documents = rng.integers(1, 7, 2)
        n_pairs = rng.integers(1, n_ranks * n_documents + 1)
        places = rng.permutation(n_ranks * n_documents)[:n_pairs]
        documents, rows = np.divmod(places, n_ranks)
        largest = 9 * rng.random()
        shown = (10 ** rng.uniform(0, largest, n_pairs)).astype(np.int64)
        chances = np.array([0.0, 1.0, 0.5, 1e-6, 1.0 - 1e-6, rng.random()])
        clicked = rng.binomial(shown, rng.choice(chances, n_pairs))
        found = estimate_examination(
            documents, rows + 1, shown, clicked, n_ranks=int(n_ranks)
        )
        has_interval = np.isfinite(found.low) & np.isfinite(found.high)
        is_around = (found.low <= found.ratios) & (found.ratios <= found.high)

        assert has_interval.tolist() == [not reason for reason in found.reasons]
        assert is_around[has_interval].all()
        assert NOT_CONVERGED not in found.reasons
        n_known += has_interval[1:].sum()
    assert n_known > 100
