"""Which estimator a log is answered by where nobody asked for one, and why.

The one place that chooses. Whoever corrects clicks asks here: `rankstream statistics
show` and `export`, `rankstream evaluate`, the values that the monitor shows, and
trainings. A log has parts:

    policies known, and fixed before the clicks    intervention-aware
    policies known, some chosen from clicks        intervention-oblivious
    nobody knows how lists came about              affine-shown

Where some lists are known and others not, each enters the sums of the first two by its
own: what was expected of the known ones, and what the others showed. Given what a list
showed its clicks have the mean of that, so sums of both are as unbiased as each.

Lists of a group of a scope are told apart as long as the scope keeps them list by list.
Where it has added them up, known ones beside unknown ones are taken as they were shown,
with words on how many; where that is so of all, the whole log is affine-shown.
"""

from enum import Enum
from typing import NamedTuple

from models.estimators.registry import PLACEMENTS, estimator_of

OF_KNOWN, OF_CHOSEN, OF_UNKNOWN = (
    "intervention-aware",
    "intervention-oblivious",
    "affine-shown",
)

NO_CURVE = (
    "clicks must tell where users look from what they like, to correct for it; here "
    "items were hardly clicked, or always stood at the same ranks"
)
"""Why there is no answer at all: each estimator needs a curve."""

CURVE_REMEDY = (
    "give --examination, which is how likely users look at ranks 1, 2, ...: what a log "
    "whose lists differ told, or a guess such as 1,0.5,0.33,0.25"
)
"""The one thing to do about it."""


class Unknown(Enum):
    """What becomes of lists whose policy is not known.

    Parameters
    ----------
    LEFT_OUT
        They go, with all others of their group of a scope.
    AS_SHOWN
        What they showed is taken as sure, and no item but those of a list as one that
        it could have shown; so of all others of their group of a scope.
    JOINED
        The same of themselves; of the others only where they are not told apart.
    KEPT
        They count, with expectations that are NaN: for estimators that ask for none.
    """

    LEFT_OUT = "left out"
    AS_SHOWN = "as shown"
    JOINED = "joined"
    KEPT = "kept"


class Known(NamedTuple):
    """What is known of how lists came about.

    Parameters
    ----------
    n_known, n_unknown
        Lists of policies that say how likely lists were, and of all others.
    is_fixed
        Whether no policy was chosen from these clicks; see
        `models.estimators.adaptivity.Basis.has_intervals`.
    n_beside
        Of `n_unknown`: lists that say so, but whose clicks are counted together with
        those of lists that do not.
    """

    n_known: int
    n_unknown: int
    is_fixed: bool
    n_beside: int = 0


class Choice(NamedTuple):
    """An estimator and why it was taken.

    Parameters
    ----------
    estimator
        A name of `models.estimators.registry`.
    unknown
        What becomes of lists of unknown policies.
    reason
        In words.
    better
        What would make values better, in words; empty where nothing would.
    """

    estimator: str
    unknown: Unknown
    reason: str
    better: str = ""

    def said(self, n_unknown: int = 0, n_beside: int = 0) -> str:
        """What was taken, why, and what would be better, in a sentence.

        Parameters
        ----------
        n_unknown
            Lists that were taken as they were shown.
        n_beside
            Of these: lists of known policies.
        """
        also = ""
        better = self.better
        if n_unknown and self.is_joined:
            also = (
                f"; {n_unknown:,} lists beside unknown policies by {OF_UNKNOWN}, at "
                "the ranks where items stood"
            )
            if n_beside:
                also += (
                    f": {n_beside:,} of them name their policy, but their clicks are "
                    "counted together with those of lists that do not"
                )
            better = better or (APART if n_beside else LOG_POLICIES)
        elif n_beside and self.unknown is Unknown.AS_SHOWN:
            share = f"{n_beside / n_unknown:.1%}"
            also = f"; {n_beside:,} of {n_unknown:,} lists ({share}) name their policy"
        more = f"; better: {better}" if better else ""
        return f"by {self.estimator}: {self.reason}{also}{more}"

    @property
    def is_joined(self) -> bool:
        """Whether lists of unknown policies are added to those of known ones."""
        return self.unknown is Unknown.JOINED


LOG_POLICIES = (
    "log with each list how it was drawn, as `policy` and what that needs "
    "(docs/events.md)"
)

APART = (
    "log with each list how it was drawn (docs/events.md), or give lists without a "
    "policy an `intervention` of their own, which is counted apart"
)

_FIXED = Choice(
    OF_KNOWN,
    Unknown.JOINED,
    "policies are known, and were fixed before the clicks",
)

_CHOSEN = Choice(
    OF_CHOSEN,
    Unknown.JOINED,
    "policies are known, and some were chosen from clicks, so each is corrected by "
    "itself",
    "choose policies from clicks of some groups alone, as trainings do: those of the "
    "others then have intervals",
)

_NOBODY_KNOWS = Choice(
    OF_UNKNOWN,
    Unknown.AS_SHOWN,
    "nobody knows how these lists came about, so clicks are corrected at the ranks "
    "where items stood",
    LOG_POLICIES,
)


_BESIDE = _NOBODY_KNOWS._replace(
    reason="lists that name their policy are counted together with lists that do not, "
    "so clicks of all are corrected at the ranks where items stood",
    better=APART,
)


def choice_of(known: Known, asked: str | None = None) -> Choice:
    """The estimator of a log, or the one that was asked for.

    Parameters
    ----------
    asked
        A name of `models.estimators.registry`: it is taken, whatever is known, and
        lists that it cannot take are left out.

    Raises
    ------
    ValueError
        Where no estimator has the name.

    Examples
    --------
    >>> choice_of(Known(10, 0, is_fixed=False)).estimator
    'intervention-oblivious'
    >>> choice_of(Known(0, 10, is_fixed=True)).said()[:16]
    'by affine-shown:'
    """
    if asked:
        own = choice_of(known).estimator
        better = "" if own == asked else f"{own}, which this log would be answered by"
        return asked_for(asked)._replace(better=better)
    if known.n_unknown and not known.n_known:
        return _BESIDE if known.n_beside else _NOBODY_KNOWS
    return _FIXED if known.is_fixed else _CHOSEN


def asked_for(name: str, by: str = "--estimator") -> Choice:
    """An estimator that is taken whatever is known of a log; `by` says who asked.

    Raises
    ------
    ValueError
        Where none has the name.

    Examples
    --------
    >>> asked_for("policy-aware").unknown.value, asked_for("affine").unknown.value
    ('left out', 'kept')
    """
    asks_placements = PLACEMENTS in estimator_of(name).needs
    unknown = Unknown.LEFT_OUT if asks_placements else Unknown.KEPT
    return Choice(name, unknown, f"as {by} asks")


def choice_of_sums(*, has_known: bool, has_beside: bool = False) -> Choice:
    """The estimator of a training, which has sums of items and nothing by policy.

    Parameters
    ----------
    has_known
        Whether any group of a scope that it learns from is of known policies alone.
        Then all others are left out; else all are taken as they were shown.
    has_beside
        Whether lists of known policies are among the others.

    Examples
    --------
    >>> choice_of_sums(has_known=True).unknown is Unknown.LEFT_OUT
    True
    """
    if not has_known:
        return _BESIDE if has_beside else _NOBODY_KNOWS
    return Choice(OF_KNOWN, Unknown.LEFT_OUT, "policies are known")
