"""Curvatures are second derivatives of losses, as ranks are held."""

import numpy as np
import pytest

from models.losses.compiled_loss import is_convex
from models.losses.registry import LOSSES, compiled_loss
from rankstream.configuration.trees_faults import CONVEX_LOSSES
from tests.laws.losses_by_definition import DEFINITIONS
from tests.laws.test_losses import cases


def test_losses_are_convex_where_they_have_a_curvature() -> None:
    """Others say so: boosting takes none that may be curved downwards."""
    assert [name for name in LOSSES if is_convex(compiled_loss(name, 3, 5))] == [
        *CONVEX_LOSSES
    ]
    for name in LOSSES:
        scores, weights, where, cutoff = cases(name, 3, 6.0)
        found = LOSSES[name].loss(scores, weights, where, cutoff).curvature

        assert len(found) == (len(scores) if name in CONVEX_LOSSES else 0)


@pytest.mark.parametrize("spread", [0.5, 6.0, 30.0])
@pytest.mark.parametrize("name", CONVEX_LOSSES)
def test_curvatures_are_finite_differences_of_slopes(name: str, spread: float) -> None:
    """At ranks that small steps do not change; at least 0, of values of any sign."""
    most = 0.0
    for seed in range(15):
        scores, weights, where, cutoff = cases(name, seed, spread)
        found = LOSSES[name].loss(scores, weights, where, cutoff).curvature
        most = max(most, float(found.max()))

        assert (found >= 0.0).all()
        assert (found[~where] == 0.0).all()
        for row, by in enumerate(1e-5 * np.eye(len(scores))):
            up, down = (
                LOSSES[name].loss(scores + step, weights, where, cutoff).gradient[row]
                for step in (by, -by)
            )
            assert found[row] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=2e-7)
    assert most > 1e-4


@pytest.mark.parametrize("name", CONVEX_LOSSES)
def test_curvatures_are_second_differences_of_the_definition(name: str) -> None:
    """Of the loss as it is written down, which shares no line with the kernels."""
    by_definition = DEFINITIONS[name]
    for seed in range(15):
        scores, weights, where, cutoff = cases(name, seed, 6.0)
        found = LOSSES[name].loss(scores, weights, where, cutoff).curvature
        for row, by in enumerate(1e-3 * np.eye(len(scores))):
            up, here, down = (
                by_definition(scores + step, weights, where, cutoff)
                for step in (by, 0.0 * by, -by)
            )
            assert found[row] == pytest.approx(
                (up - 2.0 * here + down) / 1e-6, rel=1e-4, abs=1e-6
            )


@pytest.mark.parametrize("gap", [700.0, 5000.0])
def test_what_is_certain_is_not_curved(gap: float) -> None:
    """Beyond what exponentials hold, either way; and nothing is without a pair."""
    known = np.ones(2, bool)
    for name in CONVEX_LOSSES:
        loss = LOSSES[name].loss
        for values in ([1.0, 3.0], [3.0, 1.0]):
            found = loss(np.array([gap, 0.0]), np.array(values), known, 1).curvature
            assert found == pytest.approx([0.0, 0.0], abs=1e-100)
        assert loss(np.zeros(1), np.ones(1), known[:1], 1).curvature.tolist() == [0.0]
