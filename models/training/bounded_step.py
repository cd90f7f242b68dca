"""Weights that went from the parent's as far as the largest loss may be.

On the way from the parent to what training gave,

    weights(s) = parent + s (trained - parent),   rounded to float32,

s is halved in on: the bound holds at s = 0, where nothing changes, and s stays where it
held. The largest loss need not rise with s everywhere, so that the s which is found is
one at which the bound holds, and not always the largest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.training.largest_loss import Fall, Falls

N_HALVINGS = 16
"""So that s is known to 1.5e-5, and each one more costs another look at all queries."""


class BoundedStep(NamedTuple):
    """How far weights went.

    Parameters
    ----------
    weights : [n_parameters]
        To be served; each is a float32 number.
    step
        s in [0, 1]: 1 where what was trained holds the bound already, and `weights` are
        those, bit for bit.
    fall
        Of these weights.
    """

    weights: Floats
    step: float
    fall: Fall


def bounded_step(
    parent: Floats,
    trained: Floats,
    falls: Falls,
    largest_loss: float = np.inf,
    *,
    on_look: Callable[[], object] = lambda: None,
    n_halvings: int = N_HALVINGS,
) -> BoundedStep:
    """The trained weights, or weights between where they could lose too much.

    Parameters
    ----------
    parent, trained : [n_parameters]
        As served: float32 numbers, exploration and all.
    falls
        Of policies behind that parent.
    largest_loss
        The bound, above 0; see `models.training.largest_loss.Fall`.
    on_look
        Is called before all queries are looked at once more; what it raises ends it.
    n_halvings
        With 0 nothing between is looked at.

    Raises
    ------
    ValueError
        Where the bound is not above 0, or a score is not finite.
    """
    if not largest_loss > 0.0:
        raise ValueError(f"largest_loss must be above 0; got {largest_loss}")
    on_look()
    fall = falls.of(trained)
    if fall.largest_loss <= largest_loss:
        return BoundedStep(trained, 1.0, fall)
    low, high = 0.0, 1.0
    best = BoundedStep(parent, low, Fall(0.0, 1.0))
    for _ in range(n_halvings):
        on_look()
        step = (low + high) / 2.0
        weights = between(parent, trained, step)
        fall = falls.of(weights)
        if fall.largest_loss <= largest_loss:
            low, best = step, BoundedStep(weights, step, fall)
        else:
            high = step
    return best


def between(parent: Floats, trained: Floats, step: float) -> Floats:
    """Weights on the way, as float32 numbers, [n_parameters].

    Parameters
    ----------
    parent, trained : [n_parameters]
        Where the way begins and ends.
    step
        In [0, 1].
    """
    found = parent + step * (trained - parent)
    return np.asarray(found.astype(np.float32).astype(np.float64))
