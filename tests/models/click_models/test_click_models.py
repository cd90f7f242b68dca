"""Clicks happen as often as tables and formulas say."""

import itertools

import numpy as np
import pytest

from models.click_models.cascade import CASCADES, TABLES, CascadeModel
from models.click_models.click_model import ClickModel
from models.click_models.position_based import PositionBasedModel, position_based_of
from models.click_models.registry import NAMES, click_model_of
from models.click_models.trust_bias import TrustBiasModel, trust_bias_of

N_LISTS = 40_000


def worst_z(model: ClickModel, labels: np.ndarray) -> float:
    """Largest deviation of sampled from expected rates, in standard errors."""
    expected = model.click_probabilities(labels)
    many = np.broadcast_to(labels, (N_LISTS, len(labels)))
    clicks = model.sample_clicks(many, rng=np.random.default_rng(7))
    deviation = np.sqrt(np.maximum(expected * (1.0 - expected), 1e-12) / N_LISTS)
    return float((np.abs(clicks.mean(axis=0) - expected) / deviation).max())


@pytest.mark.parametrize("stop_requires_click", [True, False])
@pytest.mark.parametrize("kind", CASCADES)
@pytest.mark.parametrize("n_grades", sorted(TABLES))
def test_cascades_click_by_their_tables(
    n_grades: int, kind: str, *, stop_requires_click: bool
) -> None:
    """First-rank rates are the table's; all rates are those of the closed form."""
    model = click_model_of(kind, n_grades, stop_requires_click=stop_requires_click)
    labels = np.random.default_rng(1).integers(n_grades, size=8)
    first = [model.click_probabilities(np.array([g]))[0] for g in range(n_grades)]

    assert first == list(TABLES[n_grades][kind][0])
    assert worst_z(model, labels) < 4.5


def test_cascade_rates_equal_enumeration() -> None:
    """Two documents: the second is seen unless the first stopped the user."""
    click, stop = (0.3, 0.6), (0.2, 0.5)
    for first, second in itertools.product(range(2), repeat=2):
        labels = np.array([first, second])
        after_click = CascadeModel(click, stop).click_probabilities(labels)
        always = CascadeModel(click, stop, stop_requires_click=False)

        assert after_click == pytest.approx(
            [click[first], (1 - click[first] * stop[first]) * click[second]]
        )
        assert always.click_probabilities(labels) == pytest.approx(
            [click[first], (1 - stop[first]) * click[second]]
        )


def test_a_stop_lets_the_click_of_the_same_document_through() -> None:
    """Certain clicks and certain stops leave the first click only."""
    labels = np.array([[1, 1, 1], [0, 1, 1]])
    rng = np.random.default_rng(0)
    after_click = CascadeModel((0.0, 1.0), (1.0, 1.0))
    always = CascadeModel((0.0, 1.0), (1.0, 1.0), stop_requires_click=False)

    assert after_click.sample_clicks(labels, rng=rng).tolist() == [
        [True, False, False],
        [False, True, False],
    ]
    assert always.sample_clicks(labels, rng=rng).tolist() == [
        [True, False, False],
        [False, False, False],
    ]


def test_position_based_users_look_by_rank_and_click_by_grade() -> None:
    """The product of two curves, and nothing beyond the first one's end."""
    model = PositionBasedModel((1.0, 0.5, 0.25), (0.1, 0.8))
    labels = np.array([1, 0, 1, 1])

    assert model.click_probabilities(labels) == pytest.approx([0.8, 0.05, 0.2, 0.0])
    assert worst_z(model, labels) < 4.5
    assert worst_z(position_based_of(5, severity=2.0), np.array([4, 0, 2, 3])) < 4.5


def test_trust_bias_follows_its_published_curves() -> None:
    """Alpha and beta as printed, rounded to four digits; zero beyond rank 5."""
    model = trust_bias_of(5)

    assert np.round(model.alpha, 4).tolist() == [0.35, 0.532, 0.5473, 0.537, 0.5202]
    assert np.round(model.beta, 4).tolist() == [0.65, 0.2581, 0.1533, 0.1061, 0.0795]
    assert model.click_probabilities(np.array([4, 4, 4, 4, 4, 4]))[5] == 0.0
    assert worst_z(model, np.array([0, 4, 2, 1, 3, 4])) < 4.5


@pytest.mark.parametrize("name", NAMES)
def test_labels_outside_the_model_are_named(name: str) -> None:
    """The label and its place, whether too large, negative or between grades."""
    model = click_model_of(name, 3)
    rng = np.random.default_rng(0)

    with pytest.raises(ValueError, match=r"grades 0 to 2 .* got 3 at 1"):
        model.sample_clicks(np.array([0, 3]), rng=rng)
    with pytest.raises(ValueError, match=r"got -1 at \(1, 0\)"):
        model.click_probabilities(np.array([[0, 1], [-1, 2]]))
    with pytest.raises(ValueError, match=r"got 0\.5 at 0"):
        model.click_probabilities(np.array([0.5]))


def test_tables_that_are_no_probabilities_raise() -> None:
    """Each model names what is wrong with it."""
    with pytest.raises(ValueError, match="stop must be probabilities"):
        CascadeModel((0.5,), (1.5,))
    with pytest.raises(ValueError, match="share their grades"):
        CascadeModel((0.5,), (0.5, 0.5))
    with pytest.raises(ValueError, match="alpha \\+ beta must be at most 1"):
        TrustBiasModel((0.5,), (0.6,), (1.0,))
    with pytest.raises(ValueError, match="relevance"):
        TrustBiasModel((0.5,), (0.1,), (1.5,))
    TrustBiasModel((1.0,), (1e-12,), (1.0,))  # as much as rounding may add
    with pytest.raises(ValueError, match="n_grades must be one of"):
        click_model_of("perfect", 4)
    with pytest.raises(ValueError, match="name must be one of"):
        click_model_of("careless", 3)


def test_a_seed_gives_the_same_clicks() -> None:
    """Draws come from the generator alone."""
    labels = np.tile(np.arange(3), (50, 3))
    for name in NAMES:
        model = click_model_of(name, 3)
        one = model.sample_clicks(labels, rng=np.random.default_rng(5))
        other = model.sample_clicks(labels, rng=np.random.default_rng(5))

        assert (one == other).all()
