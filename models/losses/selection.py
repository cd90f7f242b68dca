"""Which of several rankers is best, by clicks of queries that none was trained on.

Losses are of different scales, and some bound what they stand for loosely, or not at
all. So rankers are trained by several of them, or by several settings, and all are
valued alike: by estimated values of items of held-out queries. Each value is unbiased;
that of the best is rather too high, as it was chosen for being high: what it is worth
is told by clicks that chose nothing.

Rankers are valued on the same queries, so that differences are known far better than
values are. Errors are those of queries drawn from many.

References
----------
Oosterhuis & de Rijke (SIGIR 2020), section 4.4, and chapter 7 of Oosterhuis (PhD
thesis, 2020), for unbiased selection of losses and of hyperparameters. Cochran
("Sampling Techniques", 1977), section 6.3, for errors of ratios.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from models.arrays import Floats

Setting = TypeVar("Setting")


class Selection(NamedTuple):
    """Candidates side by side.

    Parameters
    ----------
    names : [n_candidates]
    values, errors : [n_candidates]
        Mean worth by the shares of queries, more is better, and its standard error: NaN
        with fewer than two queries.
    chosen
        The name of the best; of equal ones the first.
    behind, behind_errors : [n_candidates]
        The value of the best less that of each, and its standard error, paired by
        query; 0 of the best itself.
    """

    names: tuple[str, ...]
    values: Floats
    errors: Floats
    chosen: str
    behind: Floats
    behind_errors: Floats

    def level(self, n_errors: float = 2.0) -> tuple[str, ...]:
        """Candidates that are behind by no more than so many of their errors."""
        is_level = ~(self.behind > n_errors * self.behind_errors)
        return tuple(
            name for name, is_in in zip(self.names, is_level, strict=True) if is_in
        )


def select(candidates: Mapping[str, Floats], shares: Floats) -> Selection:
    """The best of some rankers.

    Parameters
    ----------
    candidates
        Name -> worth of each query's ranking, [n_queries]: see
        `models.losses.ranking_worth.query_worths`. Values must not be those that
        rankers were trained on, nor clipped.
    shares : [n_queries]
        How much a query counts, as its share of all impressions; any scale.

    Raises
    ------
    ValueError
        Where there are no candidates, shapes differ, a number is not finite, or shares
        are below 0 or all 0.

    Examples
    --------
    >>> found = select(
    ...     {"first": np.array([1.0, 0.0]), "second": np.array([1.0, 0.5])}, np.ones(2)
    ... )
    >>> found.chosen, found.behind.tolist(), found.level()
    ('second', [0.25, 0.0], ('first', 'second'))
    """
    names, weights, worths = tuple(candidates), _weights(shares), _table(candidates)
    if worths.shape[1] != len(weights):
        raise ValueError(
            f"candidates must be valued on {len(weights)} queries; got "
            f"{worths.shape[1]}"
        )
    values = _means(worths, weights)
    best = int(values.argmax())
    ahead = worths[best] - worths
    return Selection(
        names,
        values,
        _errors(worths, weights),
        names[best],
        values[best] - values,
        _errors(ahead, weights),
    )


def best_setting(
    settings: Mapping[str, Setting],
    worths_of: Callable[[Setting], Floats | None],
    shares: Floats,
) -> tuple[Setting, Selection]:
    """The best of some hyperparameters, by counterfactual evaluation.

    Parameters
    ----------
    settings
        Name -> what a ranker is trained with, by the order in which they are tried.
    worths_of
        Trains a ranker with a setting; gives the worth of each held-out query's
        ranking, [n_queries], or None where training came to nothing.
    shares : [n_queries]
        As `select`.

    Raises
    ------
    ValueError
        As `select`, of what came to something.
    """
    worths = {}
    for name, setting in settings.items():
        of_queries = worths_of(setting)
        if of_queries is not None:
            worths[name] = of_queries
    found = select(worths, shares)
    return settings[found.chosen], found


def _weights(shares: Floats) -> Floats:
    values = np.asarray(shares, np.float64)
    total = values.sum()
    if not (values >= 0.0).all() or not 0.0 < total < np.inf:
        raise ValueError(
            "shares of queries must be finite, at least 0 and not all 0; got a sum of "
            f"{total:g}: hold queries with impressions out"
        )
    return np.asarray(values / total)


def _table(candidates: Mapping[str, Floats]) -> Floats:
    if not candidates:
        raise ValueError("there must be candidates to select from; got none")
    lengths = {len(worths) for worths in candidates.values()}
    if len(lengths) > 1:
        raise ValueError(
            f"candidates must be valued on the same queries; got {sorted(lengths)}"
        )
    worths = np.array([*candidates.values()], np.float64)
    is_wrong = ~np.isfinite(worths).all(axis=1)
    if is_wrong.any():
        raise ValueError(
            "worths of candidates must be finite; got others of "
            f"{[*candidates][int(is_wrong.argmax())]!r}: leave it out"
        )
    return worths


def _means(worths: Floats, weights: Floats) -> Floats:
    """By weight, [n_candidates]; `worths` [n_candidates, n_queries].

    Row by row in one order: a product of matrices may give equal rows unequal means,
    and other ones on other machines.
    """
    return np.asarray((worths * weights).sum(axis=1))


def _errors(worths: Floats, weights: Floats) -> Floats:
    """Of means by weight, [n_candidates]; `worths` [n_candidates, n_queries]."""
    n = int(np.count_nonzero(weights))
    if n < 2:
        return np.full(len(worths), np.nan)
    means = _means(worths, weights)
    squares = (weights * (worths - means[:, None])) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=1) * n / (n - 1.0)))
