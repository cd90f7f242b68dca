"""What a logging policy sees: logged features, and what rankers differ in.

References
----------
Oosterhuis & de Rijke (ICTIR 2020): the software of that paper adds these features; the
text does not say so.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from models.arrays import Floats, Integers

Extra = Callable[[Floats, Integers], Floats]

PER_HUNDRED = 0.01
"""Unit of numbers of items, so that units of a network are not saturated by them."""


def _scaled(values: Floats) -> Floats:
    """To 0..1 within the query, [n, n_columns]; all 0 where they are equal."""
    low, high = values.min(axis=0), values.max(axis=0)
    found: Floats = (values - low) / np.where(high > low, high - low, 1.0)
    return found


def _column(values: Floats) -> Floats:
    return _scaled(np.asarray(values, np.float64)[:, None])


EXTRAS: Mapping[str, Extra] = MappingProxyType(
    {
        "difference": lambda differences, _: _column(differences),
        "size": lambda differences, _: _column(np.abs(differences)),
        "square": lambda differences, _: _column(differences**2),
        "sign": lambda differences, _: np.stack(
            [differences == 0.0, differences > 0.0], axis=1
        ).astype(np.float64),
        "ranks": lambda _, ranks: _scaled(ranks.T.astype(np.float64)),
        "items": lambda differences, _: np.full(
            (len(differences), 1), -PER_HUNDRED * len(differences)
        ),
    }
)
"""Columns by name, of differences [n] and ranks [2, n] of a query's items."""


def policy_features(
    logged: Floats,
    differences: Floats,
    ranks: Integers,
    extras: Sequence[str] = tuple(EXTRAS),
) -> Floats:
    """Features of one query's items, [n, n_features + n_extra_columns].

    Parameters
    ----------
    logged : [n, n_features]
        Of the candidates, which may be none.
    differences : [n]
        P(looked at) under one ranker, less that under the other.
    ranks : [2, n]
        Under both, from 1.
    extras
        Of `EXTRAS`.

    Raises
    ------
    ValueError
        Where there is no such extra, or no column at all.

    Examples
    --------
    >>> nothing = np.empty((2, 0))
    >>> ranks = np.array([[1, 2], [2, 1]])
    >>> policy_features(nothing, np.array([0.5, -0.5]), ranks, ["ranks", "sign"])
    array([[0., 1., 0., 1.],
           [1., 0., 0., 0.]])
    """
    unknown = [name for name in extras if name not in EXTRAS]
    if unknown:
        raise ValueError(f"extras must be of {', '.join(EXTRAS)}; got {unknown[0]!r}")
    columns = [logged, *(EXTRAS[name](differences, ranks) for name in extras)]
    features = np.concatenate(columns, axis=1)
    if not features.shape[1]:
        raise ValueError("a policy must see something; got no features and no extras")
    return np.asarray(features, np.float64)
