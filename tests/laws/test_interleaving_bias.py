"""No interleaving is an estimate of click-through: examples with the wrong sign.

pi_1 shows A, B, C and pi_2 B, C, A; B is never clicked. The examples of Oosterhuis
(2020), appendix of chapter 8, with the values that hold.
"""

import numpy as np
import pytest

from models.interleaving.method import Method, Shown
from models.interleaving.optimized import Optimized
from models.interleaving.registry import method_of
from tests import interleaving_cases as cases

RANKINGS = np.array([[0, 1, 2], [1, 2, 0]])


def clicks(theta: tuple[float, ...], a: float, c: float) -> np.ndarray:
    """P(click at rank on document). [3, 3]."""
    return np.outer(theta, [a, 0.0, c])


def true_difference(click: np.ndarray) -> float:
    """Expected clicks of pi_1's list less those of pi_2's."""
    ranks = np.arange(3)
    return float(click[ranks, RANKINGS[0]].sum() - click[ranks, RANKINGS[1]].sum())


def expected(method: Method, lists: cases.Lists, click: np.ndarray) -> float:
    """E[preference of pi_1 over pi_2]."""
    chances = cases.independent_chances(lists, click)
    found = cases.outcomes(method, lists)
    return float(cases.expectation(lists, found, chances)[0, 1])


TEAM_DRAFT = clicks((1.0, 0.9, 0.8), 0.1, 1.0)
PROBABILISTIC = clicks((1.0, 0.9, 0.3), 0.5, 1.0)
OPTIMIZED = clicks((1.0, 0.9, 0.9), 0.45, 1.0)


def test_team_draft_prefers_the_list_with_fewer_clicks() -> None:
    """True difference -.08, expected sign +.057."""
    lists = cases.draft_lists(RANKINGS, 3)
    of_three = [Shown(s.rankings, s.shown, _played_on(s)) for _, s in lists]
    played = [(p, s) for (p, _), s in zip(lists, of_three, strict=True)]

    assert true_difference(TEAM_DRAFT) == pytest.approx(-0.08, abs=1e-9)
    assert expected(method_of("team-draft"), played, TEAM_DRAFT) == pytest.approx(
        0.057, abs=1e-9
    )


def _played_on(shown: Shown) -> np.ndarray:
    assert (shown.assignments >= 0).all()
    return shown.assignments


@pytest.mark.parametrize(
    ("outcome", "value"), [("sign", 0.0966362921), ("clicks", 0.1446481269)]
)
def test_probabilistic_prefers_the_list_with_fewer_clicks(
    outcome: str, value: float
) -> None:
    """True difference -.25."""
    method = method_of("probabilistic", {"tau": 4.0, "outcome": outcome})
    lists = cases.soft_lists(RANKINGS, 3, 4.0)

    assert true_difference(PROBABILISTIC) == pytest.approx(-0.25, abs=1e-9)
    assert expected(method, lists, PROBABILISTIC) == pytest.approx(value, abs=1e-9)


def test_pairwise_preference_is_no_estimate_of_click_rates_either() -> None:
    """The same users: +.175 where the truth is -.25."""
    lists = cases.pairwise_lists(RANKINGS, 3)
    method = method_of("pairwise-preference")

    assert expected(method, lists, PROBABILISTIC) == pytest.approx(0.175, abs=1e-9)


def test_optimized_prefers_the_list_with_fewer_clicks() -> None:
    """Linear credit, zeta_A = .45: true difference +.045, expected credit -.06.

    With the printed zeta_A = .5 the credit is +.0333 and has the right sign.
    """
    method = Optimized(credit="linear")
    rows, chances, _ = method.distribution(RANKINGS, 3, rng=np.random.default_rng(0))
    lists = [
        (p, Shown(RANKINGS, row, cases.EMPTY))
        for row, p in zip(rows, chances, strict=True)
        if p > 1e-9
    ]

    assert [p for p, _ in lists] == pytest.approx([1 / 3] * 3, abs=1e-9)
    assert true_difference(OPTIMIZED) == pytest.approx(0.045, abs=1e-9)
    assert expected(method, lists, OPTIMIZED) == pytest.approx(-0.06, abs=1e-9)
    printed = clicks((1.0, 0.9, 0.9), 0.5, 1.0)
    assert expected(method, lists, printed) == pytest.approx(1 / 30, abs=1e-9)


@pytest.mark.parametrize("click", [TEAM_DRAFT, PROBABILISTIC, OPTIMIZED])
def test_a_split_and_counterfactual_estimates_get_them_right(
    click: np.ndarray,
) -> None:
    """On the same users: the true difference, whatever lists were shown."""
    truth = true_difference(click)
    theta = tuple((click[:, 2] / click[0, 2]).tolist())
    split = [(0.5, Shown(RANKINGS, RANKINGS[i], np.full(3, i))) for i in range(2)]
    logged = {
        "pairwise-preference": cases.pairwise_lists(RANKINGS, 3),
        "team-draft": cases.draft_lists(RANKINGS, 3),
        "balanced": [
            (0.5, Shown(RANKINGS, np.array(row), cases.EMPTY))
            for row in ([0, 1, 2], [1, 0, 2])
        ],
        "ab": split,
    }

    assert expected(method_of("ab"), split, click) == pytest.approx(truth, abs=1e-12)
    for name, lists in logged.items():
        method = method_of(f"counterfactual:{name}", {"examination": theta})
        assert expected(method, lists, click) == pytest.approx(truth, abs=1e-12)
