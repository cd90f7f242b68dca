"""Lists of several rankers combined into one, where they are served.

The draws are those of `models.interleaving`: the same seed gives the same list.
Rankings are lists of item ids; an item that a ranker repeats counts once.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

NOBODY = -1
"""Assignment of a place that credits nobody."""

Lists = list[list[str]]


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
        One of `METHODS`.
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
    if method not in METHODS:
        raise ValueError(f"method must be one of {sorted(METHODS)}; got {method!r}")
    if len(rankings) < 2:
        raise ValueError(f"rankings must be two or more; got {sorted(rankings)}")
    clean = {name: list(dict.fromkeys(rankings[name])) for name in sorted(rankings)}
    rng = np.random.default_rng(seed)
    draw = METHODS[method]
    shown, teams = draw(list(clean.values()), length, rng, dict(options or {}))
    return Combined(shown, teams, clean)


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
    named = f"{experiment}\x1f{epoch}\x1f{impression_id}".encode()
    digest = hashlib.blake2b(named, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


Drawn = tuple[list[str], list[int] | None]


def _pairwise(
    lists: Lists, length: int, rng: np.random.Generator, _: dict[str, Any]
) -> Drawn:
    """Each place uniform over what some ranker puts there or above."""
    free: list[str] = []
    known: set[str] = set()
    shown: list[str] = []
    for place in range(length):
        for row in lists:
            if place < len(row) and row[place] not in known:
                known.add(row[place])
                free.append(row[place])
        if not free:
            break
        chosen = int(rng.random() * len(free))
        shown.append(free[chosen])
        free[chosen] = free[-1]
        free.pop()
    return shown, None


def _draft(
    lists: Lists, length: int, rng: np.random.Generator, _: dict[str, Any]
) -> Drawn:
    """Rankers take turns in random order; see `models.interleaving.team_draft`."""
    present = [row for row in lists if row]
    n_fair = min(map(len, present), default=0)
    n_neutral = 0
    while n_neutral < n_fair and len({row[n_neutral] for row in present}) == 1:
        n_neutral += 1
    order = list(range(len(lists)))
    shown: list[str] = []
    teams: list[int] = []
    placed: set[str] = set()
    while len(shown) < length:
        before = len(shown)
        for turn in range(len(order)):
            other = turn + int(rng.random() * (len(order) - turn))
            order[turn], order[other] = order[other], order[turn]
            best = next((item for item in lists[order[turn]] if item not in placed), "")
            if not best:
                continue
            is_owned = n_neutral <= len(shown) < n_fair
            teams.append(order[turn] if is_owned else NOBODY)
            shown.append(best)
            placed.add(best)
            if len(shown) in (length, n_neutral):
                break
        if len(shown) == before:
            break
    return shown, teams


def _sample_scored(
    lists: Lists, length: int, rng: np.random.Generator, options: dict[str, Any]
) -> Drawn:
    return _draft(lists, length, rng, options)[0], None


def _probabilistic(
    lists: Lists, length: int, rng: np.random.Generator, options: dict[str, Any]
) -> Drawn:
    """Each place from a random ranker's soft ranking of what is left."""
    tau = float(options.get("tau", 3.0))
    masses = np.arange(1, max(map(len, lists), default=0) + 1, dtype=np.float64) ** -tau
    shown: list[str] = []
    placed: set[str] = set()
    while len(shown) < length:
        left = [
            [(item, masses[i]) for i, item in enumerate(row) if item not in placed]
            for row in lists
        ]
        able = [each for each in left if each]
        if not able:
            break
        chosen = able[int(rng.random() * len(able))]
        total = 0.0
        for _, mass in chosen:
            total += mass
        target = rng.random() * total
        drawn = ""
        for item, mass in chosen:
            drawn = item
            target -= mass
            if target < 0.0:
                break
        shown.append(drawn)
        placed.add(drawn)
    return shown, None


def _balanced(
    lists: Lists, length: int, rng: np.random.Generator, _: dict[str, Any]
) -> Drawn:
    """Both lists merged; a coin decides who begins."""
    if len(lists) != 2:
        raise ValueError(
            f"balanced interleaving must compare two rankers; got {len(lists)}"
        )
    return merged_lists(lists, length, int(rng.random() < 0.5)), None


def merged_lists(lists: Lists, length: int, first: int) -> list[str]:
    """The merge of two lists that `first` begins."""
    shown: dict[str, None] = {}
    for place in range(max(map(len, lists))):
        for ranker in (first, 1 - first):
            if place < len(lists[ranker]) and len(shown) < length:
                shown.setdefault(lists[ranker][place])
    return list(shown)


def _split(
    lists: Lists, length: int, rng: np.random.Generator, _: dict[str, Any]
) -> Drawn:
    """One ranker's own list."""
    able = [ranker for ranker, row in enumerate(lists) if row]
    if not able:
        return [], []
    ranker = able[int(rng.random() * len(able))]
    shown = lists[ranker][:length]
    return shown, [ranker] * len(shown)


METHODS: dict[
    str,
    Callable[[Lists, int, np.random.Generator, dict[str, Any]], Drawn],
] = {
    "pairwise-preference": _pairwise,
    "team-draft": _draft,
    "sample-scored": _sample_scored,
    "probabilistic": _probabilistic,
    "balanced": _balanced,
    "debiased-balanced": _balanced,
    "ab": _split,
}
"""What can be drawn here. Optimized multileaving needs scipy: draw it where that is,
by `models.interleaving`, and send its list with `query_event`."""
