"""What every way of comparing rankers on one list has in common."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from models.interleaving.rankings import lengths_of
from models.kernels.compilation import compiled

Clicks = npt.NDArray[np.bool_]

NOBODY = -1
"""Assignment of a place that credits nobody."""

NO_ONE: Integers = np.empty(0, np.int64)
"""Assignments of a method that has none."""


class Combined(NamedTuple):
    """A list for a user: documents in displayed order, and whose they are.

    `shown` [k]; `assignments` [k] holds the ranker that each place is credited to, or
    `NOBODY`; it is empty for methods that need the rankings only.
    """

    shown: Integers
    assignments: Integers


class Shown(NamedTuple):
    """What is known of a list before its clicks are read: all that was logged.

    `rankings` [n_rankers, depth], `shown` [k], `assignments` [k] or empty.
    """

    rankings: Integers
    shown: Integers
    assignments: Integers


class Traits(NamedTuple):
    """What is true of a method, whatever the rankings. Nothing has a default.

    Parameters
    ----------
    is_for_two
        Whether it compares two rankers only.
    is_fair
        Whether clicks that ignore relevance prefer nobody, on lists of its own.
    exact_up_to
        Number of rankers up to which `exposures` has a closed form: 0 for none,
        `math.inf` for any.
    shows_one_ranker
        Whether each list is one ranker's own.
    counts_where_silent
        Whether impressions count for which some ranker returned nothing.
    even_shares
        What chance alone shares out evenly among rankers: the name of the check, and
        of the count in `models.evaluation.list_counts.BY_RANKER`.
    """

    is_for_two: bool
    is_fair: bool
    exact_up_to: float
    shows_one_ranker: bool
    counts_where_silent: bool
    even_shares: tuple[tuple[str, str], ...]


class Drawing(Protocol):
    """A way of combining rankings into lists, whatever clicks on them are worth."""

    @property
    def traits(self) -> Traits:
        """What is true of it, with the options that it was made with."""

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list of `length` documents, or of all there are.

        `rankings` [n_rankers, depth].
        """

    def can_draw(self, shown: Shown) -> bool:
        """Whether it draws this list of different documents from these rankings.

        As these teams, if any are named. A list may have been cut short. Ask
        `models.interleaving.possible_lists.is_possible`.
        """

    def typical_square(self, n_rankers: int) -> float:
        """Mean squared preference to plan for; only the width of intervals needs it."""

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """P(document at rank) of the lists that `combine` draws.

        [n_documents, length], of `rankings` [n_rankers, depth]; `rng` is used where no
        closed form is known.
        """


class Method(Drawing, Protocol):
    """A way of combining rankings, and of crediting clicks on the list.

    Preferences are skew-symmetric matrices [n_rankers, n_rankers]: element (n, m) is
    positive where the clicks speak for n over m.
    """

    @property
    def needs_assignments(self) -> bool:
        """Whether only lists that this method combined can be credited."""

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Preferences of one impression, from its `clicks` [k] on the shown places."""

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """The largest absolute preferences over all lists and all clicks.

        [n_rankers, n_rankers]; a function of `rankings` [n_rankers, depth] alone, so
        that it is known before the list is drawn: what intervals that hold at any time
        need. Had it been made from the drawn list, they would cover means given that
        list, which are not zero where nobody is better.
        """


def differences(credit: Floats) -> Floats:
    """Preferences [n, n] as differences of one `credit` [n] a ranker."""
    return credit[:, None] - credit[None, :]


def signs(credit: Floats) -> Floats:
    """Preferences [n, n] as the sign of who has more `credit` [n]."""
    return np.sign(differences(credit))


def among_present(rankings: Integers, preferences: Floats) -> Floats:
    """The same preferences, none for or against a ranker that returned nothing.

    `rankings` [n_rankers, depth]; `preferences` [n_rankers, n_rankers] are changed in
    place.
    """
    lengths = lengths_of(rankings)
    if lengths.all():
        return preferences
    preferences[lengths == 0, :] = 0.0
    preferences[:, lengths == 0] = 0.0
    return preferences


def largest_gaps(credit: Floats, length: int) -> Floats:
    """Bounds where each clicked document adds a credit of its own to each ranker.

    Parameters
    ----------
    credit : [n_rankers, n_documents]
        What a click on each document gives.
    length
        At most so many are shown.

    Returns
    -------
    [n_rankers, n_rankers]
        The larger of all gains and all losses of one ranker over another.
    """
    gaps = credit[:, None, :] - credit[None, :, :]
    ordered = np.sort(np.maximum(gaps, 0.0), axis=2)[:, :, ::-1]
    gains = ordered[:, :, :length].sum(axis=2)
    return np.asarray(np.maximum(gains, gains.T))


def one_each(rankings: Integers) -> Floats:
    """Bounds of a sign: one for every two rankers that returned something.

    [n_rankers, n_rankers], of `rankings` [n_rankers, depth].
    """
    present = lengths_of(rankings) > 0
    bounds = np.outer(present, present).astype(np.float64)
    np.fill_diagonal(bounds, 0.0)
    return bounds


@compiled
def where_different(rankings: Integers) -> Floats:
    """Bounds of a sign that equal rankings cannot have: one where they differ.

    [n_rankers, n_rankers], of `rankings` [n_rankers, depth].
    """
    n_rankers, depth = rankings.shape
    bounds = np.zeros((n_rankers, n_rankers))
    if depth == 0:
        return bounds
    for n in range(n_rankers):
        for m in range(n):
            if rankings[n, 0] < 0 or rankings[m, 0] < 0:
                continue
            for place in range(depth):
                if rankings[n, place] != rankings[m, place]:
                    bounds[n, m] = bounds[m, n] = 1.0
                    break
    return bounds


def sampled_exposures(
    method: Method,
    rankings: Integers,
    length: int,
    n_samples: int,
    rng: np.random.Generator,
) -> Floats:
    """P(document at rank), counted over lists drawn from `rng`.

    [n_documents, length], of `rankings` [n_rankers, depth].
    """
    n_documents = int(rankings.max(initial=-1)) + 1
    counts = np.zeros((n_documents, length))
    for _ in range(n_samples):
        shown = method.combine(rankings, length, rng=rng).shown
        counts[shown, np.arange(len(shown))] += 1.0
    return counts / n_samples
