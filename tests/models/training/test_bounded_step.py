"""A bound on what a version can lose holds, and changes nothing where it held."""

import numpy as np
import numpy.typing as npt
import pytest

from models.rankers.ranker import Ranker
from models.rankers.registry import LinearRanker, ranker_of
from models.training.bounded_step import N_HALVINGS, between, bounded_step
from models.training.largest_loss import Fall, Falls
from streams.native.placing import placements_of_scores
from tests.models.training.chunks import cut, queries

Floats = npt.NDArray[np.float64]

THETA = 1.0 / np.arange(1.0, 6.0)
KINDS = pytest.mark.parametrize("kind", ["linear", "neural", "neural-relu"])


def singles(values: Floats) -> Floats:
    """As snapshots have them."""
    return np.asarray(values.astype(np.float32).astype(np.float64))


def step_of(kind: str) -> tuple[Ranker, Floats, Floats, Falls]:
    """A ranker, its parent, what training gave, and falls over some queries."""
    ranker = LinearRanker(4) if kind == "linear" else ranker_of(kind, 4, [5, 3])
    rng = np.random.default_rng(len(kind))
    parent, trained = singles(rng.standard_normal((2, ranker.n_parameters)))
    chunks = cut(queries(15, np.ones(4), rng), 6)
    falls = Falls(parent, chunks, THETA, placements=placements_of_scores, ranker=ranker)
    return ranker, parent, 3.0 * trained, falls


@KINDS
def test_the_bound_holds_on_the_weights_that_are_served(kind: str) -> None:
    """As float32 numbers, read back from their bytes; just beyond it does not."""
    _, parent, trained, falls = step_of(kind)
    whole = falls.of(trained).largest_loss
    steps = []
    for share in (0.9, 0.5, 0.1, 1e-3):
        bound = share * whole
        found = bounded_step(parent, trained, falls, bound)
        read = np.frombuffer(found.weights.astype("<f4").tobytes(), "<f4")
        steps.append(found.step)

        assert (read.astype(float) == found.weights).all()
        assert falls.of(read.astype(float)) == found.fall
        assert 0.0 < found.fall.largest_loss <= bound
        further = between(parent, trained, found.step + 2.0**-N_HALVINGS)
        assert falls.of(further).largest_loss > bound
        assert (found.weights == between(parent, trained, found.step)).all()
    assert steps == sorted(steps, reverse=True)
    assert all(
        step * 2.0**N_HALVINGS == round(step * 2.0**N_HALVINGS) for step in steps
    )


@KINDS
def test_what_holds_already_stays_bit_for_bit(kind: str) -> None:
    """At the bound itself, above it, and with none: one look, and no step back."""
    _, parent, trained, falls = step_of(kind)
    fall, looks = falls.of(trained), list[None]()
    for bound in (fall.largest_loss, 10.0, np.inf):
        found = bounded_step(
            parent, trained, falls, bound, on_look=lambda: looks.append(None)
        )
        assert found.weights.tobytes() == trained.tobytes()
        assert (found.step, found.fall) == (1.0, fall)
    assert len(looks) == 3


def test_a_bound_that_nothing_holds_leaves_the_parent() -> None:
    """It loses nothing, exactly; looks are as many as are stated."""
    _, parent, trained, falls = step_of("linear")
    looks = list[None]()
    found = bounded_step(
        parent, trained, falls, 1e-300, on_look=lambda: looks.append(None)
    )

    assert found.weights.tobytes() == parent.tobytes()
    assert (found.step, found.fall) == (0.0, Fall(0.0, 1.0))
    assert len(looks) == 1 + N_HALVINGS
    assert falls.of(found.weights) == found.fall


def test_a_linear_ranker_loses_more_the_further_it_goes() -> None:
    """From lists at random; a tighter bound never gives a longer step."""
    rng = np.random.default_rng(3)
    chunks = [queries(20, np.ones(3), rng)]
    trained, parent = singles(rng.standard_normal(3)), np.zeros(3)
    falls = Falls(parent, chunks, THETA)
    losses = [
        falls.of(between(parent, trained, step)).largest_loss
        for step in np.linspace(0.0, 1.0, 9)
    ]
    assert losses == sorted(losses)


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, -np.inf])
def test_a_bound_that_is_none_is_refused(bound: float) -> None:
    """Before anything is computed."""
    _, parent, trained, falls = step_of("linear")
    with pytest.raises(ValueError, match=f"must be above 0; got {bound}"):
        bounded_step(parent, trained, falls, bound)
