"""Preferences of many impressions, as integers that add up in any order.

Of each pair (n, m) of rankers, n < m, in this order (0, 1), (0, 2) .. (1, 2) ..:

- the sum of preferences by group, in units of 1 / `SCALE`;
- how often the preference was positive, and negative;
- how often it could have been either, by class of the bound that held before the
  clicks were read: class c holds bounds in (2^(c-1), 2^c];
- the sum of squares by the same classes, in units of 4^c / `SQUARE_SCALE`;
- logarithms of the wealth of bets on n and on m, in units of 1 / `LOG_SCALE`.

Squares are rounded up and wealth down, so that what is concluded from them errs on
the safe side. Two partitions' sums are those of both, to the last bit.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled

SCALE = float(1 << 20)
SQUARE_SCALE = float(1 << 32)
LOG_SCALE = float(1 << 32)

LOWEST_CLASS = -8
N_CLASSES = 24
LARGEST_BOUND = 2.0 ** (LOWEST_CLASS + N_CLASSES - 1)
"""An impression that could prefer by more is not counted."""

N_BETS = 8
LARGEST_BET = 0.5
"""Bets are `LARGEST_BET` / 4^b, at most half of what keeps the wealth positive."""

N_GROUPS = 100
"""Groups of sessions, for experiments: clusters of the robust interval."""

POSITIVE, NEGATIVE = range(2)


def n_pairs_of(n_rankers: int) -> int:
    """How many pairs there are."""
    return n_rankers * (n_rankers - 1) // 2


def pairs_of(n_rankers: int) -> tuple[Integers, Integers]:
    """First and second ranker of each pair."""
    first, second = np.triu_indices(n_rankers, 1)
    return first.astype(np.int64), second.astype(np.int64)


@dataclass
class PreferenceSums:
    """The sums of one experiment, epoch and method.

    `totals` [n_groups, n_pairs], `counts` [n_pairs, 2], `possible` and `squares`
    [n_pairs, n_classes], `wealth` [n_pairs, 2, n_bets], `impressions` [n_groups].
    """

    n_rankers: int
    totals: Integers
    counts: Integers
    possible: Integers
    squares: Integers
    wealth: Integers
    impressions: Integers

    @classmethod
    def empty(cls, n_rankers: int, n_groups: int = N_GROUPS) -> "PreferenceSums":
        """Nothing yet."""
        n_pairs = n_pairs_of(n_rankers)
        return cls(
            n_rankers,
            np.zeros((n_groups, n_pairs), np.int64),
            np.zeros((n_pairs, 2), np.int64),
            np.zeros((n_pairs, N_CLASSES), np.int64),
            np.zeros((n_pairs, N_CLASSES), np.int64),
            np.zeros((n_pairs, 2, N_BETS), np.int64),
            np.zeros(n_groups, np.int64),
        )

    def arrays(self) -> tuple[Integers, ...]:
        """Everything that adds up."""
        return (
            self.totals,
            self.counts,
            self.possible,
            self.squares,
            self.wealth,
            self.impressions,
        )

    def add(self, preferences: Floats, bounds: Floats, group: int) -> bool:
        """Take one impression; False if it could prefer by too much to be counted.

        Parameters
        ----------
        preferences, bounds : [n_rankers, n_rankers]
        group
            Of its session.
        """
        return bool(
            add_impression(
                preferences,
                bounds,
                self.totals[group],
                self.counts,
                self.possible,
                self.squares,
                self.wealth,
                self.impressions[group : group + 1],
            )
        )

    def merge(self, other: "PreferenceSums") -> None:
        """Add the sums of other impressions.

        Raises
        ------
        ValueError
            Where the numbers of rankers differ.
        """
        if other.n_rankers != self.n_rankers:
            raise ValueError(
                "sums must be of the same rankers; got "
                f"{other.n_rankers} beside {self.n_rankers}"
            )
        for mine, theirs in zip(self.arrays(), other.arrays(), strict=True):
            np.add(mine, theirs, out=mine)

    def mean(self) -> Floats:
        """Mean preference of each pair. [n_pairs]."""
        n = max(1, int(self.impressions.sum()))
        return np.asarray(self.totals.sum(axis=0) / SCALE / n)

    def possible_impressions(self) -> Integers:
        """Impressions that could have preferred one of the pair. [n_pairs]."""
        return np.asarray(self.possible.sum(axis=1))

    def squares_by_class(self) -> Floats:
        """Sum of squared preferences by class of bound. [n_pairs, n_classes]."""
        return np.asarray(self.squares / SQUARE_SCALE * class_bounds() ** 2)

    def matrix(self) -> Floats:
        """Mean preferences as a skew-symmetric matrix. [n_rankers, n_rankers]."""
        return skew(self.mean(), self.n_rankers)


def skew(values: Floats, n_rankers: int) -> Floats:
    """`values` [n_pairs] as a skew-symmetric matrix [n_rankers, n_rankers]."""
    matrix = np.zeros((n_rankers, n_rankers))
    first, second = pairs_of(n_rankers)
    matrix[first, second] = values
    matrix[second, first] = -values
    return matrix


def class_bounds() -> Floats:
    """The largest bound of each class. [n_classes]."""
    return np.ldexp(1.0, np.arange(LOWEST_CLASS, LOWEST_CLASS + N_CLASSES))


@compiled
def add_impression(  # noqa: PLR0913  the kernel writes into the arrays of the sums
    preferences: Floats,
    bounds: Floats,
    totals: Integers,
    counts: Integers,
    possible: Integers,
    squares: Integers,
    wealth: Integers,
    impressions: Integers,
) -> bool:
    """Add one impression to the sums of its group and to those of all.

    Parameters
    ----------
    preferences, bounds : [n_rankers, n_rankers]
    totals : [n_pairs]
        Of its group.
    counts : [n_pairs, 2]
    possible, squares : [n_pairs, n_classes]
    wealth : [n_pairs, 2, n_bets]
    impressions : [1]
        Of its group.
    """
    n_rankers = preferences.shape[0]
    if bounds.max() > LARGEST_BOUND:
        return False
    impressions[0] += 1
    pair = 0
    for n in range(n_rankers):
        for m in range(n + 1, n_rankers):
            if bounds[n, m] > 0.0:
                row = class_of(bounds[n, m])
                possible[pair, row] += 1
                value = preferences[n, m]
                if value != 0.0:
                    largest = 2.0 ** (row + LOWEST_CLASS)
                    share = min(1.0, abs(value) / largest)
                    counts[pair, POSITIVE if value > 0.0 else NEGATIVE] += 1
                    totals[pair] += np.int64(np.rint(value * SCALE))
                    squares[pair, row] += np.int64(
                        np.ceil(share * share * SQUARE_SCALE)
                    )
                    _bet(share if value > 0.0 else -share, largest, wealth[pair])
            pair += 1
    return True


@compiled
def class_of(bound: float) -> int:
    """The class of a bound; rounding of sums does not lift it over a power of two."""
    row = 0
    largest = 2.0**LOWEST_CLASS
    while largest * (1.0 + 1e-9) < bound:
        row += 1
        largest *= 2.0
    return row


@compiled
def _bet(share: float, largest: float, wealth: Integers) -> None:
    """Add what the bets on both sides win by an outcome of `share * largest`."""
    bet = LARGEST_BET
    for b in range(wealth.shape[1]):
        stake = min(bet * largest, 0.5) * share
        wealth[0, b] += np.int64(np.floor(np.log1p(stake) * LOG_SCALE))
        wealth[1, b] += np.int64(np.floor(np.log1p(-stake) * LOG_SCALE))
        bet *= 0.25
