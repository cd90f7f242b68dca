"""Rankers by the name that settings and snapshots use."""

from collections.abc import Sequence

from models.rankers.linear import LinearRanker
from models.rankers.neural import NeuralRanker
from models.rankers.ranker import Ranker

KINDS: dict[str, type[LinearRanker] | type[NeuralRanker]] = {
    "linear": LinearRanker,
    "neural": NeuralRanker,
}


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
