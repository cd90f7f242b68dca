"""Logs of users whose bias is known, where better items stand higher."""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.logged_views import Views

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

YANDEX = Path(__file__).resolve().parents[2] / "shared" / "data" / "yandex-sessions"
SESSIONS = YANDEX / "sessions.jsonl.gz"


class Planted(NamedTuple):
    """Users, and what their clicks can tell of them."""

    alpha: Floats
    beta: Floats

    @property
    def ratios(self) -> Floats:
        """Alpha in units of the first rank."""
        return np.asarray(self.alpha / self.alpha[0])

    @property
    def offsets(self) -> Floats:
        """Beta in units of the first rank."""
        return np.asarray(self.beta - self.beta[0] * self.ratios)


def with_examination(n_ranks: int, power: float = 0.8) -> Planted:
    """Users with position bias alone."""
    return Planted(np.arange(1.0, n_ranks + 1) ** -power, np.zeros(n_ranks))


def with_trust(n_ranks: int) -> Planted:
    """Users who trust what stands high, milder than those of the literature."""
    ranks = np.arange(1.0, n_ranks + 1)
    looked = ranks**-0.4
    return Planted(looked * (0.95 - 0.3 / ranks), looked * 0.3 / ranks)


def relevances(n_items: int, rng: np.random.Generator) -> Floats:
    """Evenly from .05 to .95, in any order."""
    return rng.permutation(np.linspace(0.05, 0.95, n_items))


def log_of(
    planted: Planted,
    rng: np.random.Generator,
    *,
    n_items: int = 40,
    views: float = 400.0,
    apart: float = 2.0,
) -> Views:
    """Items, each a query; a place off the usual one is `apart` times rarer."""
    n_ranks = len(planted.alpha)
    relevance = relevances(n_items, rng)
    items, rows = np.divmod(np.arange(n_items * n_ranks), n_ranks)
    usual = (1.0 - relevance[items]) * (n_ranks - 1)
    shown = rng.poisson(views * apart ** -np.abs(rows - usual))
    chance = planted.alpha[rows] * relevance[items] + planted.beta[rows]
    clicked = rng.binomial(shown, chance)
    return Views(items, np.zeros_like(items), items, rows + 1, shown, clicked)


def naive_ratios(views: Views, n_ranks: int) -> Floats:
    """Click rates by rank over that of the first."""
    shown = np.bincount(views.ranks - 1, views.shown, n_ranks)
    clicked = np.bincount(views.ranks - 1, views.clicked, n_ranks)
    rates = clicked / shown
    return np.asarray(rates / rates[0])


def sessions_views(n_ranks: int) -> Views:
    """Real result pages: users for queries, and classes of grade and type for items."""
    users, items, ranks, clicked = [], [], [], []
    classes: dict[tuple[str, str], int] = {}
    with gzip.open(SESSIONS, "rt") as file:
        for line in file:
            page = json.loads(line)
            kinds = list(zip(page["rel"], page["type"], strict=True))[:n_ranks]
            for row, kind in enumerate(kinds):
                users.append(page["u"])
                items.append(classes.setdefault(kind, len(classes)))
                ranks.append(row + 1)
                clicked.append(int(row in page["clicks"]))
    columns = [np.array(each, np.int64) for each in (users, items, ranks, clicked)]
    one = np.ones_like(columns[0])
    return Views(columns[0], 0 * one, columns[1], columns[2], one, columns[3])
