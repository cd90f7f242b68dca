"""Lists of several rankers combined into one, where they are served.

The draws are those of `models.interleaving`: the same seed gives the same list.
Rankings are lists of item ids; an item that a ranker repeats counts once.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankstream.ranking.closed_forms import Floats
from rankstream.ranking.methods import DRAWN, METHODS, check_method


class Combined(NamedTuple):
    """A list, the ranker of each place where the method has one, and the rankings.

    Rankers are numbered in the order of their sorted names; `rankings` are what has
    to be logged, without repeats.
    """

    shown: list[str]
    assignments: list[int] | None
    rankings: dict[str, list[str]]


def combine(
    method: str,
    rankings: Mapping[str, Sequence[str]],
    length: int,
    *,
    seed: int,
    options: Mapping[str, Any] | None = None,
) -> Combined:
    """Draw a list.

    Parameters
    ----------
    method
        One of `rankstream.ranking.methods.DRAWN`.
    rankings
        Each ranker's own list, best first; one may be empty.
    length
        Of the list; fewer where there are fewer items.
    seed
        Of the draw, to be logged.
    options
        Of the method: `tau` of probabilistic multileaving.

    Raises
    ------
    ValueError
        Where the method is unknown, or there are fewer than two rankers.
    """
    if method not in DRAWN:
        raise ValueError(f"method must be one of {sorted(DRAWN)}; got {method!r}")
    if len(rankings) < 2:
        raise ValueError(f"rankings must be two or more; got {sorted(rankings)}")
    clean = {name: list(dict.fromkeys(rankings[name])) for name in sorted(rankings)}
    rng = np.random.default_rng(seed)
    shown, teams = DRAWN[method](list(clean.values()), length, rng, dict(options or {}))
    return Combined(shown, teams, clean)


def list_exposures(
    method: str,
    rankings: Mapping[str, Sequence[str]],
    candidates: Sequence[str],
    length: int,
) -> Floats | None:
    """P(candidate at rank) of the lists that `combine` draws, in closed form.

    With it the event says `policy = "logged"`, and the statistics keep exact
    propensities while rankers are compared. The same numbers as `models.interleaving`.

    Parameters
    ----------
    candidates
        All items of the rankings, and maybe more.
    length
        Of the lists that are asked for; fewer are shown where there are fewer items.

    Returns
    -------
    [n_candidates, length]
        None where no closed form is known: probabilistic multileaving, and team
        drafts of more than two rankers; and for A/B lists of unequal length, as the
        ranks of a shorter one do not hold what the longer one would have shown.

    Raises
    ------
    ValueError
        Where a ranked item is no candidate, or the method is unknown.
    """
    check_method(method)
    row_of = {item: row for row, item in enumerate(candidates)}
    lists = [list(dict.fromkeys(rankings[name])) for name in sorted(rankings)]
    unknown = {item for row in lists for item in row} - set(row_of)
    if unknown:
        raise ValueError(f"candidates must name every ranked item; not {min(unknown)}")
    found = np.zeros((len(candidates), length))
    fill = METHODS[method].exposures
    return found if fill is not None and fill(lists, row_of, found) else None


def draw_seed(experiment: str, epoch: int, impression_id: str) -> int:
    """The seed of the list that this impression of an experiment shows.

    It follows from the impression, so that no draw is used for two: what is concluded
    from the draws alone takes each for an independent one.

    Returns
    -------
    int
        Of 63 bits: the first eight bytes of BLAKE2b (digest of eight bytes, big-endian,
        without the highest bit) of name, epoch and impression id, joined by U+001F.
    """
    named = seeded_name(experiment, epoch, impression_id).encode()
    digest = hashlib.blake2b(named, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seeded_name(experiment: str, epoch: int, impression_id: str) -> str:
    """What a seed is the digest of."""
    return f"{experiment}\x1f{epoch}\x1f{impression_id}"
