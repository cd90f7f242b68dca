"""The rival of the benchmark computes the same numbers by other means."""

import numpy as np
import pytest

from models.click_models.cascade import cascade_of
from models.learners.reversed_pairs import PLAIN, logged_pair_coefficients
from rankstream.lab.benchmarks.learners import generated_world, measure_pdgd
from rankstream.lab.benchmarks.learners_rival import (
    document_coefficients,
    live_in_numpy,
)


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
def test_the_tensor_formula_gives_the_weights_of_the_closed_form(spread: float) -> None:
    """Coefficients of 120 documents and lists of ten agree."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = spread * rng.normal(size=120)
        rows = rng.permutation(120)[:10]
        clicks = rng.random(10) < 0.4
        ours = np.zeros(10)

        logged_pair_coefficients(scores, rows, clicks, scores[rows], ours, PLAIN)

        assert ours == pytest.approx(
            document_coefficients(scores, rows, clicks), rel=1e-9, abs=1e-15
        )


def test_the_rival_learns() -> None:
    """Its loop raises what relevant documents score over others."""
    world = generated_world(20, rng=np.random.default_rng(1))
    learned = live_in_numpy(
        world,
        cascade_of("perfect", 5),
        np.zeros(world.features.shape[1]),
        300,
        cutoff=10,
        learning_rate=0.1,
        rng=np.random.default_rng(2),
    )
    scores = world.features @ learned

    assert np.corrcoef(scores, world.labels)[0, 1] > 0.2


def test_a_quick_measurement_has_the_shape_of_a_figure() -> None:
    """One object with every field that the command prints."""
    (figure,) = measure_pdgd(quick=True)

    assert set(figure) == {"name", "value", "unit", "rival", "ratio", "goal", "floor"}
    assert figure["ratio"] == pytest.approx(figure["value"] / figure["rival"])
