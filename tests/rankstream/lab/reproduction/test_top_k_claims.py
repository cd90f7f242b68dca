"""What is claimed of paired runs that are made up, and whether it holds."""

import numpy as np
import numpy.typing as npt
import pytest

from rankstream.lab.reproduction.figures import Claim
from rankstream.lab.reproduction.top_k.claims import (
    claims_over_clicks,
    claims_over_cutoffs,
    claims_over_losses,
)
from rankstream.lab.reproduction.top_k.plan import (
    ARP,
    ESTIMATORS,
    LABELS,
    LINEAR_ARP,
    NDCG,
    PRODUCTION,
    TRUNCATED,
    Cell,
    over_clicks,
    over_cutoffs,
)
from rankstream.lab.reproduction.top_k.report import Grid, laid_out

Floats = npt.NDArray[np.float64]

SHAPE = (5, 10)

HIGH, LOW = 0.5, 0.4
VALUES = {
    "policy-aware": HIGH, "no cutoff": HIGH, LABELS: HIGH, PRODUCTION: LOW,
    "oblivious": LOW, "rerank": LOW, "affine": LOW, "oblivious, randomised": LOW,
    "rerank, randomised": LOW, "affine, randomised": LOW,
}  # fmt: skip


def planted(
    cells: list[Cell], values: dict[str, float], rng: np.random.Generator
) -> dict[Cell, Floats]:
    """Paired runs about the values of labels."""
    shared = rng.normal(0.0, 0.05, SHAPE)
    return {
        cell: values[cell.label] + shared + rng.normal(0.0, 0.003, SHAPE)
        for cell in cells
    }


def apart(value: float, error: float) -> Floats:
    """Runs whose mean has this value, and this standard error."""
    signs = np.where(np.arange(50) % 2, 1.0, -1.0).reshape(SHAPE)
    return value + error * 7.0 * signs


def verdicts(claims: list[Claim]) -> dict[str, bool | None]:
    """Whether each claim holds."""
    return {text: holds for text, _, holds in claims}


def test_claims_hold_where_they_are_planted() -> None:
    """And those that are not so do not, of both metrics."""
    rng = np.random.default_rng(0)
    cells = over_cutoffs(ESTIMATORS, TRUNCATED, (2, 3), 1_000)
    lines = laid_out(cells, "cutoff", (2, 3))
    runs = planted(cells, VALUES, rng)
    claims = claims_over_cutoffs(runs, lines, (2, 3), (2, 3))
    assert len(claims) == 2 * (2 + 6)
    assert all(holds for _, _, holds in claims)

    worse = planted(cells, VALUES | {"policy-aware": LOW}, rng)
    claims = claims_over_cutoffs(worse, lines, (2, 3), (2, 3))
    failed = [text for text, _, holds in claims if not holds]
    assert len(failed) == 2 + 12
    turned = {cell: 30.0 - 10.0 * values for cell, values in runs.items()}
    claims = claims_over_cutoffs(turned, lines, (2, 3), (2, 3), ARP)
    assert all(holds for _, _, holds in claims)


@pytest.mark.parametrize(
    ("metric", "slack", "sign"), [(NDCG, 0.01, 1.0), (ARP, 0.1, -1.0)]
)
def test_small_differences_and_those_within_two_errors_count_for_nothing(
    metric: str, slack: float, sign: float
) -> None:
    """But an estimator is above another only by more than two errors."""
    cells = over_cutoffs(ESTIMATORS, TRUNCATED, (2,), 1_000)
    lines = laid_out(cells, "cutoff", (2,))
    plain = {cell: np.full(SHAPE, HIGH) for cell in cells}

    def holds(label: str, gap: float, error: float, text: str) -> bool:
        runs = plain | {lines[label][0]: HIGH + sign * apart(gap, error)}
        found = verdicts(claims_over_cutoffs(runs, lines, (2,), (2,), metric))
        return found[f"{metric.upper()}: policy-aware {text}"] is True

    below = "at 2 not below full information"
    assert holds("policy-aware", -0.95 * slack, 0.0, below)
    assert not holds("policy-aware", -1.05 * slack, 0.0, below)
    assert holds("policy-aware", -1.9 * slack, slack, below)
    assert not holds("policy-aware", -2.1 * slack, slack, below)
    assert holds("policy-aware", 3.0 * slack, 0.0, below)
    above = "above rerank at 2"
    assert not holds("rerank", 0.0, 0.0, above)
    assert holds("rerank", -0.1 * slack, 0.04 * slack, above)
    assert not holds("rerank", -0.1 * slack, 0.06 * slack, above)
    assert not holds("rerank", 3.0 * slack, 0.0, above)


def test_policy_aware_learning_is_as_good_at_one_cutoff_as_at_the_others() -> None:
    """Neither better nor worse; what is claimed nowhere counts for nothing."""
    cells = over_cutoffs(ESTIMATORS, TRUNCATED, (2, 3, 9), 1_000)
    lines = laid_out(cells, "cutoff", (2, 3, 9))
    for gap, holds in ((0.018, True), (-0.018, True), (0.022, False), (-0.022, False)):
        runs = {cell: np.full(SHAPE, HIGH) for cell in cells}
        runs[lines["policy-aware"][1]] += gap
        runs[lines["policy-aware"][2]] += 1.0
        found = verdicts(claims_over_cutoffs(runs, lines, (2, 3, 9), (2, 3)))
        assert found["NDCG: policy-aware at 2 as at all k"] is holds
        assert found["NDCG: policy-aware at 3 as at all k"] is holds
        assert not any(" at 9" in text for text in found)
    assert not claims_over_cutoffs(runs, lines, (2, 3, 9), ())


def test_at_one_document_oblivious_learning_is_as_good() -> None:
    """And affine learning with it: that is what is claimed there, of nobody else."""
    rng = np.random.default_rng(1)
    cells = over_cutoffs(ESTIMATORS, LINEAR_ARP, (1,), 1_000)
    lines = laid_out(cells, "cutoff", (1,))
    values = VALUES | {"oblivious, randomised": HIGH, "affine, randomised": HIGH}
    found = verdicts(
        claims_over_cutoffs(planted(cells, values, rng), lines, (1,), (1,))
    )

    assert all(found.values())
    assert "NDCG: oblivious, randomised at 1 as policy-aware" in found
    assert "NDCG: policy-aware above rerank, randomised at 1" in found
    runs = planted(cells, values | {"oblivious, randomised": LOW}, rng)
    found = verdicts(claims_over_cutoffs(runs, lines, (1,), (1,)))
    assert [text for text, holds in found.items() if not holds] == [
        "NDCG: oblivious, randomised at 1 as policy-aware"
    ]


def test_claims_are_of_cutoffs_that_hide_part_of_most_lists() -> None:
    """The lists decide; at most ten documents, as that is what is known."""
    longer = {1: 1.0, 3: 0.51, 5: 0.5, 7: 0.2, 20: 0.9}
    grid = Grid((1, 3, 5, 7, 20), (10,), longer)

    assert grid.claimed == (1, 3)
    assert grid.said_of_lists() == (
        "training lists that are longer than k: 100% at 1, 51% at 3, 50% at 5, 20% at "
        "7, 90% at 20; nothing is claimed at 5, 7, 20"
    )
    fewer = grid._replace(cutoffs=(1, 3))
    assert "nothing" not in fewer.said_of_lists()


def test_claims_over_clicks_are_of_the_ends_of_lines() -> None:
    """What still gains there has no plateau."""
    rng = np.random.default_rng(2)
    counts = (10, 100, 1_000)
    cells = over_clicks(ESTIMATORS, TRUNCATED, 5, counts)
    lines = laid_out(cells, "n_clicks", counts)
    runs = planted(cells, VALUES, rng)
    claims = claims_over_clicks(runs, lines, counts, is_cut=True)
    assert len(claims) == 2 + 2 * 6
    assert all(holds for _, _, holds in claims)
    assert len(claims_over_clicks(runs, lines, counts, is_cut=False)) == 2

    def failed(label: str, at: int, gap: float) -> list[str]:
        other = runs | {lines[label][at]: runs[lines[label][at]] + gap}
        found = verdicts(claims_over_clicks(other, lines, counts, is_cut=True))
        return [text for text, holds in found.items() if not holds]

    assert failed("rerank", 1, -0.05) == [
        "NDCG: rerank after 1,000 clicks as after 100"
    ]
    assert failed("rerank", 0, -0.05) == []
    assert failed("affine", 2, 0.1) == [
        "NDCG: affine after 1,000 clicks as after 100",
        "NDCG: policy-aware above affine after 1,000 clicks",
    ]
    assert failed("no cutoff", 2, -0.05) == [
        "NDCG: no cutoff after 1,000 clicks not below full information"
    ]
    assert failed("policy-aware", 1, -0.05) == []


def test_selection_finds_the_best_within_its_error_and_loses_nothing_in_the_end() -> (
    None
):
    """95 % of runs or so are within two errors; .01 of DCG counts for nothing."""
    every, most, some = np.ones(SHAPE), np.ones(SHAPE), np.ones(SHAPE)
    most[0, :4], some[:2, :6] = 0.0, 0.0
    lost = [np.full(SHAPE, 0.05), np.full(SHAPE, 0.009), np.full(SHAPE, 0.008)]
    gained = apart(0.009, 0.004)
    claims = claims_over_losses([some, most, every], lost, gained, (10, 100, 1_000))

    assert [holds for _, _, holds in claims] == [False, True, True, True, True]
    texts = [text for text, _, _ in claims]
    assert texts[0] == (
        "share of runs within 2 errors of the best, over 0.95, after 10 clicks"
    )
    assert texts[-2:] == [
        "the selected loss lacks no DCG@5 after 1,000 clicks",
        "the selected loss above one drawn at random, DCG@5 after 1,000 clicks",
    ]
    assert claims[0][1].value == pytest.approx(0.76 - 0.95)
    (_, (_, gap, holds), _) = claims_over_losses(
        [every], [np.full(SHAPE, 0.011)], gained, (10,)
    )
    assert not holds
    assert gap.value == pytest.approx(0.011)


@pytest.mark.parametrize(
    ("gain", "error"), [(0.0, 0.0), (0.009, 0.005), (-0.01, 0.0), (0.0, 0.01)]
)
def test_a_selection_that_is_no_better_than_chance_is_none(
    gain: float, error: float
) -> None:
    """Though each choice is within its error, and lacks little."""
    every, few = np.ones(SHAPE), np.full(SHAPE, 0.005)
    claims = claims_over_losses([every], [few], apart(gain, error), (10,))

    assert [holds for _, _, holds in claims] == [True, True, False]
    assert claims[-1][1].value == pytest.approx(gain)


def test_one_pair_of_runs_decides_nothing() -> None:
    """It has no error: whatever it says may be chance; two pairs have one."""
    cells = over_cutoffs(ESTIMATORS, TRUNCATED, (1, 2), 1_000)
    cells += over_clicks(ESTIMATORS, TRUNCATED, 5, (10, 100))
    runs = planted(cells, VALUES, np.random.default_rng(3))
    by_cutoff = laid_out(cells[:17], "cutoff", (1, 2))
    by_clicks = laid_out(cells[17:], "n_clicks", (10, 100))

    def said(n_runs: int) -> list[bool | None]:
        few = {cell: values[:1, :n_runs] for cell, values in runs.items()}
        one = np.ones((1, n_runs))
        claims = [
            *claims_over_cutoffs(few, by_cutoff, (1, 2), (1, 2)),
            *claims_over_clicks(few, by_clicks, (10, 100), is_cut=True),
            *claims_over_losses([one], [0.0 * one], one, (10,)),
        ]
        return [holds for _, _, holds in claims]

    assert {*said(1)} == {None}
    assert None not in said(2)
    assert len(said(1)) == 2 * (2 + 6) + 2 + 2 * 6 + 3
