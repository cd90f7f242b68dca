"""What features cannot tell of ranks is refused by rank, with the reason."""

import numpy as np
import pytest

from models.bias.examination import (
    AT_BOUND,
    NO_CLICKS,
    NO_MISSES,
    NOT_CONNECTED,
    NOT_CONVERGED,
    NOT_SHOWN,
)
from models.bias.logged_views import Views
from models.bias.regression import estimate_by_class, estimate_by_features
from models.bias.relevance_models import LinearRelevance, LogisticRelevance
from tests.planted_bias import log_of, with_examination


def views_of(*rows: tuple[int, int, int, int]) -> Views:
    """Of rows of item, rank, shown, clicked."""
    items, ranks, shown, clicked = np.array(rows, np.int64).reshape(-1, 4).T
    return Views(items, 0 * items, items, ranks, shown, clicked)


def test_items_of_a_class_are_one() -> None:
    """Two items at a rank each tell as much as one at both, by hand."""
    found = estimate_by_class(
        views_of((0, 1, 100, 60), (1, 2, 100, 30)), [7, 7], n_ranks=2
    )

    assert found.curve.alpha == pytest.approx([1.0, 0.5], abs=1e-6)
    assert found.relevance == pytest.approx([0.6, 0.6], abs=1e-6)


def test_ranks_with_classes_of_their_own_are_refused() -> None:
    """Nothing tells a bad rank from a bad class."""
    views = views_of(
        (0, 1, 100, 60), (0, 2, 100, 30), (1, 3, 100, 40), (2, 4, 100, 0),
    )  # fmt: skip
    for found in (
        estimate_by_class(views, [0, 1, 2], n_ranks=5),
        estimate_by_features(views, np.eye(3), n_ranks=5),
    ):
        assert found.curve.alpha[:2] == pytest.approx([1.0, 0.5], abs=1e-5)
        assert np.isnan(found.curve.alpha[2:]).all()
        assert found.curve.reasons == ("", "", NOT_CONNECTED, NO_CLICKS, NOT_SHOWN)


def test_two_ranks_that_are_looked_at_for_sure_have_no_interval() -> None:
    """Both examinations are as large as they can be, and nothing says how near."""
    views = views_of(
        (0, 1, 100, 25),
        (0, 2, 100, 60),
        (0, 3, 100, 60),
        (1, 2, 50, 50),
        (1, 3, 50, 50),
    )
    curve = estimate_by_class(views, [0, 1], n_ranks=3).curve

    assert curve.alpha == pytest.approx([1.0, 2.4, 2.4], abs=1e-4)
    assert AT_BOUND in curve.reasons


def test_a_rank_where_all_was_clicked_has_a_ratio_and_no_interval() -> None:
    """Its clicks do not vary."""
    views = views_of((0, 1, 50, 50), (1, 1, 90, 45), (1, 2, 90, 30), (0, 3, 50, 50))
    curve = estimate_by_class(views, [0, 1], n_ranks=3).curve

    assert curve.alpha == pytest.approx([1.0, 2 / 3, 1.0], abs=1e-4)
    assert curve.reasons == ("", "", NO_MISSES)
    assert np.isnan(curve.alpha_low[2])


def test_a_search_cut_short_tells_nothing() -> None:
    """Not even a ratio."""
    views = log_of(with_examination(4), np.random.default_rng(1))
    found = estimate_by_class(views, range(40), n_ranks=4, most_turns=6)

    assert np.isnan(found.curve.alpha).all()
    assert found.curve.reasons == (NOT_CONVERGED,) * 4


@pytest.mark.parametrize("rows", [[], [(0, 2, 9, 3)], [(0, 1, 9, 0), (0, 2, 9, 3)]])
def test_without_clicks_at_the_first_rank_nothing_is_known(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """Every rank has a reason."""
    found = estimate_by_class(views_of(*rows), [0], n_ranks=2)

    assert np.isnan(found.curve.alpha).all()
    assert all(found.curve.reasons)


def test_bad_input_is_refused() -> None:
    """Items without features, features that are no numbers, and the counts."""
    views = views_of((0, 1, 9, 3), (3, 2, 9, 3))
    with pytest.raises(ValueError, match=r"the 3 rows that describe them; got 0\.\.3"):
        estimate_by_class(views, [0, 0, 0], n_ranks=2)
    with pytest.raises(ValueError, match=r"of shape .*, 1 of them not finite"):
        estimate_by_features(views, [[1.0], [np.nan], [0.0], [2.0]], n_ranks=2)
    with pytest.raises(ValueError, match=r"got shape \(4,\)"):
        estimate_by_features(views, np.zeros(4), n_ranks=2)
    with pytest.raises(ValueError, match=r"ranks must lie in 1\.\.1"):
        estimate_by_class(views, [0] * 4, n_ranks=1)
    with pytest.raises(ValueError, match="confidence must lie in"):
        estimate_by_class(views, [0] * 4, n_ranks=2, confidence=2.0)


@pytest.mark.parametrize("kind", [LinearRelevance, LogisticRelevance])
def test_a_model_is_never_fitted_worse_than_it_was(
    kind: type[LinearRelevance] | type[LogisticRelevance],
) -> None:
    """Far from the best, where a step of Newton's method leads too far."""
    rng = np.random.default_rng(2)
    model = kind(np.linspace(-1.0, 1.0, 9)[:, None])
    shown = np.full(9, 100.0)
    for _ in range(50):
        liked = rng.uniform(0.0, 100.0, size=9)
        own = np.array([0.5, rng.uniform(-0.28, 0.28)])
        if kind is LogisticRelevance:
            own = rng.normal(scale=4.0, size=2)
        fitted = model.fitted(own, liked, shown)
        chances = [model.relevance(each) for each in (own, fitted)]
        before, after = (
            liked @ np.log(p) + (shown - liked) @ np.log1p(-p) for p in chances
        )
        assert after >= before
