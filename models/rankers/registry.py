"""Rankers by the name that settings and snapshots use."""

from collections.abc import Callable, Sequence
from functools import partial

from models.rankers.linear import LinearRanker
from models.rankers.neural import NeuralRanker
from models.rankers.ranker import Ranker

KINDS: dict[str, Callable[[int, tuple[int, ...]], Ranker]] = {
    "linear": LinearRanker,
    "neural": NeuralRanker,
    "neural-tanh": partial(NeuralRanker, activation="tanh"),
    "neural-relu": partial(NeuralRanker, activation="relu"),
}
"""A neural ranker without further name has sigmoid units."""


def ranker_of(kind: str, n_features: int, hidden: Sequence[int] = ()) -> Ranker:
    """The ranker of this kind and shape.

    Raises
    ------
    ValueError
        Where the kind is unknown or its shape makes no sense.

    Examples
    --------
    >>> ranker_of("neural", 3, [2]).n_parameters
    10
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {sorted(KINDS)}; got {kind!r}")
    return KINDS[kind](n_features, tuple(hidden))
