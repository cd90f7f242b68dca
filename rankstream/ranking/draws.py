"""Draws of combined lists, one function a method, where lists are served.

Each takes the rankings, the length, a generator and the options of the method, and
gives the list, and the ranker of each place where the method has one. Methods that
draw alike share a function.
"""

from typing import Any

import numpy as np

NOBODY = -1
"""Assignment of a place that credits nobody."""

Lists = list[list[str]]

Drawn = tuple[list[str], list[int] | None]


def draw_pairwise(
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


def n_agreed(present: Lists, shortest: int) -> int:
    """Places, from the first on, at which all lists have the same item."""
    agreed = 0
    while agreed < shortest and len({row[agreed] for row in present}) == 1:
        agreed += 1
    return agreed


def draw_draft(
    lists: Lists, length: int, rng: np.random.Generator, _: dict[str, Any]
) -> Drawn:
    """Rankers take turns in random order; see `models.interleaving.team_draft`."""
    present = [row for row in lists if row]
    n_fair = min(map(len, present), default=0)
    n_neutral = n_agreed(present, n_fair)
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


def draw_sample_scored(
    lists: Lists, length: int, rng: np.random.Generator, options: dict[str, Any]
) -> Drawn:
    """The list of a draft; whose turn it was does not matter."""
    return draw_draft(lists, length, rng, options)[0], None


def draw_probabilistic(
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


def draw_balanced(
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


def draw_split(
    lists: Lists, length: int, rng: np.random.Generator, _: dict[str, Any]
) -> Drawn:
    """One ranker's own list."""
    able = [ranker for ranker, row in enumerate(lists) if row]
    if not able:
        return [], []
    ranker = able[int(rng.random() * len(able))]
    shown = lists[ranker][:length]
    return shown, [ranker] * len(shown)


def draw_scored(
    lists: Lists, length: int, rng: np.random.Generator, options: dict[str, Any]
) -> Drawn:
    """By the scores of items, `options["scores"]`, whoever ranked them where.

    Items that have none have 0: without any, all are as likely.
    """
    if len(lists) != 2:
        raise ValueError(f"a logging policy must be of two rankers; got {len(lists)}")
    of_item = options.get("scores") or {}
    items = ranked_items(lists)
    scores = np.array([of_item.get(item, 0.0) for item in items], np.float64)
    keys = scores - scores.max(initial=-np.inf) + rng.gumbel(size=len(items))
    chosen = np.argsort(-keys, kind="stable")[:length]
    return [items[row] for row in chosen.tolist()], None


def ranked_items(lists: Lists) -> list[str]:
    """All that any ranker returned, sorted: a draw depends on no other order."""
    return sorted({item for row in lists for item in row})
