"""One run: a logging ranker, clicks, what they train, and who is served."""

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.bounds.any_time import PLANNED
from models.evaluation.bounds.several_queries import PLANNED_SQUARES
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.data import SPLITS, VALIDATION, world_of
from rankstream.lab.reproduction.engine import Job, Result, Setup
from rankstream.lab.reproduction.genspec.bandits import bandit_scores
from rankstream.lab.reproduction.genspec.choice import (
    TESTS_BY_NAME,
    Evidence,
    Policies,
)
from rankstream.lab.reproduction.genspec.clicks import (
    QueryClicks,
    click_chances,
    drawn_clicks,
)
from rankstream.lab.reproduction.genspec.plan import (
    ALL_LISTS,
    BANDITS,
    GENERAL,
    HIGHEST,
    LOGGING,
    SPECIAL,
    Cell,
    ruled,
)
from rankstream.lab.reproduction.genspec.policies import (
    SETTINGS,
    Worth,
    expected_discounts,
    general_ranker,
    valued_queries,
)
from rankstream.lab.reproduction.top_k import runs as top_k
from rankstream.lab.reproduction.top_k.clicks import ranks_of

TRAIN, UNSEEN, SPECIALISED, HARMED = "train", "unseen", "specialised", "harmed"

FIGURES = (TRAIN, UNSEEN, SPECIALISED, HARMED)
"""NDCG on queries with clicks and on others; of the former, those with something
relevant, the shares that the policy of their own is served for, and for which what is
served has less reward than the list that was logged."""

TIED = 1e-9
"""Rewards this close are the same."""


def named(figure: str, policy: str) -> str:
    """A figure of a policy in the results of a run."""
    return f"{figure}: {policy}"


def settings_digest() -> str:
    """Of the settings of rankers and bounds, which are the same for all cells."""
    settings = repr((*SETTINGS, PLANNED, PLANNED_SQUARES, top_k.settings_digest()))
    return f"{zlib.crc32(settings.encode()):08x}"


class Fold(NamedTuple):
    """Splits, and the highest label in them."""

    train: World
    test: World
    validation: World
    largest_label: int


@lru_cache(maxsize=5)
def fold_of(setup: Setup, fold: int) -> Fold:
    """The splits of a fold."""
    train, test, validation = (
        world_of(setup.place, fold, split, setup.normalisation)
        for split in (*SPLITS, VALIDATION)
    )
    largest = max(int(each.labels.max()) for each in (train, test, validation))
    return Fold(train, test, validation, largest)


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One run: all `FIGURES` of all policies, after each number of lists."""
    scene = _Scene(setup, job)
    found: dict[str, list[float]] = {}
    for moment in scene.lived():
        for name, figure in scene.judged(moment):
            found.setdefault(name, []).append(figure)
    return dict(found)


class _Moment(NamedTuple):
    """Clicks so far: on training queries, and on held-out ones of so many lists.

    `bandits` are what each ranks training queries by, [n_items].
    """

    clicks: QueryClicks
    held_out: Floats
    n_held_out: int
    bandits: dict[str, Floats]


class _Scene:
    """Queries and users of a run, and the ranker that logs."""

    def __init__(self, setup: Setup, job: Job[Cell]) -> None:
        fold = fold_of(setup, job.fold)
        self._train, self._test, self._held_out = fold.train, fold.test, fold.validation
        # Cells of a fold and run share all seeds: they are paired.
        seeds = np.random.SeedSequence([setup.seed, job.fold, job.run]).spawn(4)
        streams = map(np.random.default_rng, seeds)
        self._users, self._others, order, self._of_bandits = streams
        self._order_seed = int(order.integers(2**31))
        self._logging = top_k.production_weights(setup, job.fold, job.run)
        self._counts = job.cell.counts()
        self._ranks = self._ranks_of(self._train)
        self._held_out_ranks = self._ranks_of(self._held_out)
        self._wanted, self._held_out_wanted = (
            click_chances(world.labels, fold.largest_label, job.cell.slope)
            for world in (self._train, self._held_out)
        )
        self._worth, self._unseen_worth = (
            Worth(HIGHEST * world.labels / fold.largest_label, world.offsets)
            for world in (self._train, self._test)
        )

    def _ranks_of(self, world: World) -> Integers:
        return ranks_of(world.features @ self._logging, world.offsets)

    def lived(self) -> Iterator[_Moment]:
        """All clicks after each number of lists of a query."""
        chances = self._held_out_wanted / self._held_out_ranks
        clicked, before = np.zeros(len(chances)), 0
        bandits = bandit_scores(
            self._wanted, self._train.offsets, self._counts, self._of_bandits
        )
        drawn = drawn_clicks(
            self._wanted / self._ranks,
            self._train.offsets,
            self._counts,
            rng=self._users,
        )
        for at, (count, clicks) in enumerate(zip(self._counts, drawn, strict=True)):
            clicked = clicked + self._others.binomial(count - before, chances)
            before = count
            scores = {name: each[at] for name, each in bandits.items()}
            yield _Moment(clicks, clicked, count, scores)

    def judged(self, moment: _Moment) -> Iterator[tuple[str, float]]:
        """Figures of policies that clicks train, and of those that they choose."""
        offsets, ranks, clicks = self._train.offsets, self._ranks, moment.clicks
        general = self._general(moment)
        policies = Policies(
            expected_discounts(-ranks.astype(np.float64), offsets),
            expected_discounts(self._train.features @ general, offsets),
            expected_discounts(clicks.training * ranks, offsets),
        )
        every = expected_discounts(
            (clicks.training + clicks.selection) * ranks, offsets
        )
        shown = {
            LOGGING: policies.logging,
            GENERAL: policies.general,
            SPECIAL: policies.special,
            ALL_LISTS: every,
            **{k: expected_discounts(x, offsets) for k, x in moment.bandits.items()},
        }
        unseen = self._unseen(general)
        evidence = Evidence(clicks, policies, ranks, offsets)
        for test, is_better in TESTS_BY_NAME.items():
            for rule, chosen in evidence.chosen(is_better).items():
                name = ruled(test, rule)
                shown[name] = chosen.shown(policies, offsets)
                unseen[name] = unseen[GENERAL if chosen.is_general else LOGGING]
                is_special = chosen.is_special[self._worth.is_counted]
                yield named(SPECIALISED, name), float(is_special.mean())
        for name, each in shown.items():
            yield named(TRAIN, name), self._worth.ndcg(each)
            yield named(UNSEEN, name), unseen[name]
            yield named(HARMED, name), self._harmed(each, policies.logging)

    def _general(self, moment: _Moment) -> Floats:
        lists = np.full(len(self._held_out.offsets) - 1, moment.n_held_out, np.int64)
        clicks = moment.clicks
        return general_ranker(
            valued_queries(
                self._train, clicks.training, clicks.training_lists, self._ranks
            ),
            valued_queries(
                self._held_out, moment.held_out, lists, self._held_out_ranks
            ),
            seed=self._order_seed,
        )

    def _unseen(self, general: Floats) -> dict[str, float]:
        """NDCG on test queries, where policies of queries know nothing."""
        offsets = self._test.offsets
        scores = {
            LOGGING: -self._ranks_of(self._test).astype(np.float64),
            GENERAL: self._test.features @ general,
            SPECIAL: np.zeros(int(offsets[-1])),
        }
        found = {
            name: self._unseen_worth.ndcg(expected_discounts(each, offsets))
            for name, each in scores.items()
        }
        return found | dict.fromkeys((ALL_LISTS, *BANDITS), found[SPECIAL])

    def _harmed(self, shown: Floats, logged: Floats) -> float:
        """Share of queries that have less reward than the list that was logged."""
        gained = (shown - logged) * self._wanted
        by_query = np.add.reduceat(gained, self._train.offsets[:-1])
        return float(np.mean(by_query[self._worth.is_counted] < -TIED))
