"""Plackett-Luce lists, sampled one place after another, compiled.

What is left after a place was filled is summed again, never reduced by what was
taken: once scores are spread, such a difference holds no correct digit. Sums are
kept by blocks, so that summing again touches one block and the sums of the others.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.kernels.exponentials import fill_exponentials

BLOCK = 8
"""Documents whose mass is summed together."""

LEAST_MASS = 1e-200
"""Below this the rest is measured by its own largest score."""


@compiled
def sample_list(
    scores: Floats,
    masses: Floats,
    blocks: Floats,
    rows: Integers,
    rng: np.random.Generator,
) -> float:
    """Fill `rows` with a Plackett-Luce draw; returns the mass of what is left.

    Sums are made again, never reduced. The mass is over exp(largest score), or -1
    where the scores were too far apart for that.

    Parameters
    ----------
    scores : [n]
        Finite; only differences matter.
    masses, blocks : [at least n], [ceil(n / BLOCK)]
        Scratch.
    rows : [k]
        With k <= n.
    """
    n = scores.shape[0]
    top = scores.max()
    fill_exponentials(scores, top, masses)
    for block in range(blocks.shape[0]):
        blocks[block] = _block_mass(masses, block, n)
    is_rescaled = False
    for place in range(rows.shape[0]):
        rest = blocks.sum()
        if rest < LEAST_MASS:
            _rescale(scores, masses, blocks, rows[:place])
            rest = blocks.sum()
            is_rescaled = True
        row = _draw(masses, blocks, n, rng.random() * rest)
        rows[place] = row
        masses[row] = 0.0
        blocks[row // BLOCK] = _block_mass(masses, row // BLOCK, n)
    return -1.0 if is_rescaled else blocks.sum()


@compiled
def _block_mass(masses: Floats, block: int, n: int) -> float:
    total = 0.0
    for d in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
        total += masses[d]
    return total


@compiled
def _rescale(scores: Floats, masses: Floats, blocks: Floats, placed: Integers) -> None:
    """Measure what is left by its own largest score."""
    n = scores.shape[0]
    masses[:n] = 1.0
    masses[placed] = 0.0
    top = -np.inf
    for d in range(n):
        if masses[d] > 0.0:
            top = max(top, scores[d])
    for d in range(n):
        if masses[d] > 0.0:
            masses[d] = np.exp(scores[d] - top)
    for block in range(blocks.shape[0]):
        blocks[block] = _block_mass(masses, block, n)


@compiled
def _draw(masses: Floats, blocks: Floats, n: int, target: float) -> int:
    """The document at a place between 0 and the whole mass."""
    reached = 0.0
    chosen = 0
    for block in range(blocks.shape[0]):
        if blocks[block] > 0.0:
            chosen = block
            if reached + blocks[block] > target:
                break
            reached += blocks[block]
    row = -1
    for d in range(chosen * BLOCK, min(chosen * BLOCK + BLOCK, n)):
        if masses[d] > 0.0:
            row = d
            reached += masses[d]
            if reached > target:
                break
    return row
