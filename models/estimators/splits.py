"""Which clicks are for what: groups of users are split, and queries besides.

A group holds whole sessions, so no session is on two sides of a split.
"""

import hashlib
from typing import NamedTuple

LEAST_GROUPS = 2
"""Of each split: one group alone has no interval."""

SPLITS = ("training", "validation", "selection")

LEAST_TO_SPLIT = LEAST_GROUPS * len(SPLITS)
"""Groups; fewer are refused."""


class Shares(NamedTuple):
    """How much of the clicks each split is to have; together 1.

    Parameters
    ----------
    training
        Values and models are fitted on these.
    validation
        Bias curves are fitted on these, so that they share no click with a model.
    selection
        Only evaluated on: nothing is fitted on it.
    held_out
        Of the queries, besides: where training stops is decided on these. Clicks held
        out of the same queries do not show that a model has learned queries by heart.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), sections 5.5 and 8.6, for queries apart.
    """

    training: float = 0.65
    validation: float = 0.15
    selection: float = 0.20
    held_out: float = 0.20


class Splits(NamedTuple):
    """What was fitted on which groups; goes into all that is fitted.

    Parameters
    ----------
    n_groups
        `statistics.groups` of the statistics.
    training, validation, selection
        Numbers of groups, each in one of them.
    held_out
        Share of the queries that are held out, in [0, 1).
    """

    n_groups: int
    training: tuple[int, ...]
    validation: tuple[int, ...]
    selection: tuple[int, ...]
    held_out: float

    def is_held_out(self, query: str) -> bool:
        """Whether a query is held out; the same for all who ask."""
        digest = hashlib.blake2b(query.encode(), digest_size=8, person=b"held-out")
        return int.from_bytes(digest.digest(), "big") < self.held_out * 2.0**64


def split_groups(n_groups: int, shares: Shares | None = None) -> Splits:
    """Groups 0 .. n_groups - 1 by shares, at least two in each split.

    Groups are numbered by a hash, so their numbers say nothing of who is in them, and
    each split takes neighbours. Splits have the number of groups nearest to their
    share from above or below: what rounding leaves goes to those that lack most.

    Raises
    ------
    ValueError
        Where there are too few groups, or shares are not positive with a sum of 1.

    Examples
    --------
    >>> [len(part) for part in split_groups(20)[1:4]]
    [13, 3, 4]
    """
    shares = shares or Shares()
    _check(n_groups, shares)
    sizes = _sizes(n_groups, shares[:3])
    ends = [sum(sizes[: i + 1]) for i in range(3)]
    parts = [
        tuple(range(end - size, end)) for end, size in zip(ends, sizes, strict=True)
    ]
    return Splits(n_groups, parts[0], parts[1], parts[2], shares.held_out)


def _sizes(n_groups: int, shares: tuple[float, ...]) -> list[int]:
    sizes = [max(LEAST_GROUPS, int(share * n_groups + 1e-9)) for share in shares]
    while sum(sizes) < n_groups:
        lacks = [share * n_groups - n for share, n in zip(shares, sizes, strict=True)]
        sizes[lacks.index(max(lacks))] += 1
    while sum(sizes) > n_groups:
        # Some share was too small for two groups: who has most beyond gives.
        beyond = [
            n - share * n_groups if n > LEAST_GROUPS else -n_groups
            for share, n in zip(shares, sizes, strict=True)
        ]
        sizes[beyond.index(max(beyond))] -= 1
    return sizes


def _check(n_groups: int, shares: Shares) -> None:
    if n_groups < LEAST_TO_SPLIT:
        raise ValueError(
            f"groups must be at least {LEAST_TO_SPLIT} to be split into "
            f"{', '.join(SPLITS)}; got {n_groups}: raise `statistics.groups`, from a "
            "new namespace on"
        )
    if min(shares[:3]) <= 0.0 or abs(sum(shares[:3]) - 1.0) > 1e-9:
        raise ValueError(
            f"shares of {', '.join(SPLITS)} must be more than 0 with a sum of 1; got "
            f"{', '.join(f'{share:g}' for share in shares[:3])}"
        )
    if not 0.0 <= shares.held_out < 1.0:
        raise ValueError(
            f"the share of queries held out must lie in [0, 1); got {shares.held_out:g}"
        )
