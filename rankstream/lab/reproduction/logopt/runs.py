"""One pair of rankers: its lists, and the errors of all estimates by queries issued.

Errors are those of the normal limit, from exact means and variances of one list. Only
what policies are optimised by, and theta where it is estimated, comes from clicks that
are drawn. So a policy of one run is chosen from clicks, and errors are those of the
policies as they were chosen.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.logging_policy.policy_features import policy_features
from models.logging_policy.policy_network import (
    ComparedQueries,
    NetworkPlan,
    policy_scores,
    trained_policy,
)
from models.logging_policy.query_scores import ScoresPlan, optimised_scores
from models.rankers.ranker import Ranker
from models.rankers.registry import ranker_of
from rankstream.lab.reproduction.engine import Job, Result, Setup
from rankstream.lab.reproduction.logopt import estimates, pairs
from rankstream.lab.reproduction.logopt.estimates import (
    Moments,
    errors_of,
    fill_propensities,
    of_lists,
    of_policy,
)
from rankstream.lab.reproduction.logopt.interleaved import N_DRAWN, preference_of
from rankstream.lab.reproduction.logopt.logged_clicks import Counts, add_clicks
from rankstream.lab.reproduction.logopt.pairs import Pair, Scene, pair_of, scene_of
from rankstream.lab.reproduction.logopt.plan import (
    AWARE,
    ESTIMATED,
    INTERLEAVED,
    LOGOPT,
    OPTIMUM,
    RIVAL,
    TESTED,
    UNIFORM,
    WITHOUT_RELEVANCE,
    Cell,
)

SQUARED, ABSOLUTE, BINARY = "squared error", "absolute error", "binary error"

FIGURES = (SQUARED, ABSOLUTE, BINARY)
"""Per sample, and of the estimate, after each number of queries."""

HIDDEN = (32, 32)

FIRST_PLAN, LATER_PLAN = (
    NetworkPlan(epochs=12, n_lists=20),
    NetworkPlan(epochs=4, n_lists=20),
)
"""Of the policy before any clicks, and of what clicks change in it."""

SCORES_PLAN = ScoresPlan(steps=20, n_lists=30)

EQUAL_RELEVANCE = 0.3
"""P(click | looked at) of all items, before any clicks."""

SETTINGS = (
    HIDDEN, FIRST_PLAN, LATER_PLAN, SCORES_PLAN, EQUAL_RELEVANCE
)  # fmt: skip
"""What of this tells results apart."""


def settings_digest() -> str:
    """Of the settings of rankers and policies, which are the same for all cells."""
    settings = repr((*SETTINGS, *pairs.SETTINGS, estimates.N_LISTS, N_DRAWN))
    return f"{zlib.crc32(settings.encode()):08x}"


def named(figure: str, method: str) -> str:
    """A figure of a method in the results of a run."""
    return f"{figure}: {method}"


class Stage(NamedTuple):
    """Lists of one policy: its scores [n_items], and how many queries had them."""

    scores: Floats
    n_queries: int


class Weighed(NamedTuple):
    """A stage as clicks are weighed.

    Parameters
    ----------
    share
        Of the queries so far.
    scores : [n_items]
    gains, looked : [n_items]
        P(looked at) by one ranker less that by the other, and by the stage's policy.
    """

    share: float
    scores: Floats
    gains: Floats
    looked: Floats


class Known(NamedTuple):
    """What is known after some queries.

    Parameters
    ----------
    stages
        So far.
    examination : [n_ranks]
        P(looked at | rank) as it is given or estimated now.
    """

    stages: Sequence[Stage]
    examination: Floats


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One pair: all `FIGURES` of all methods, after each number of queries."""
    return _Comparison(setup, job).figures()


class _Comparison:
    """Two rankers on the queries of a fold."""

    def __init__(self, setup: Setup, job: Job[Cell]) -> None:
        self._scene: Scene = scene_of(setup, job.fold)
        self._pair: Pair = pair_of(setup, job)
        self._counts = job.cell.counts()
        close = int(job.cell.is_close)
        self._seed = [setup.seed, job.fold, job.run, close]
        self._offsets, self._relevance = self._scene.offsets, self._scene.relevance
        self._looked = self._scene.looked(self._pair.rankers)
        self._differences = self._looked[0] - self._looked[1]

    def _rng(self, what: str) -> np.random.Generator:
        """Draws of one thing."""
        return np.random.default_rng([*self._seed, *what.encode()])

    def figures(self) -> Result:
        """All of them, and how far the rankers are apart."""
        found: Result = {"difference": self._pair.difference}
        for method, moments in self._fixed():
            self._add(found, method, [[(1.0, moments)]] * len(self._counts))
        given, estimated = (
            [self._weighed(known) for known in self._lived(is_given=is_given)]
            for is_given in (True, False)
        )
        # Of given theta clicks of a stage count by its own policy, whenever.
        own = [moments for _, moments in self._by_stage(given[-1])]
        shared = [[each.share for each in stages] for stages in given]
        self._add(found, LOGOPT, [[*zip(each, own, strict=False)] for each in shared])
        self._add(found, AWARE, [self._pooled(each) for each in given])
        self._add(found, ESTIMATED, [self._by_stage(each) for each in estimated])
        return found | self._preferences()

    def _add(
        self,
        found: Result,
        method: str,
        moments: Sequence[Sequence[tuple[float, Moments]]],
    ) -> None:
        """Errors by shares of queries and their moments, after each number of them."""
        truth = self._pair.difference
        for n_queries, parts in zip(self._counts, moments, strict=True):
            mean = sum(share * part.mean for share, part in parts)
            variance = sum(share * part.variance for share, part in parts)
            squared = sum(share * part.squared_error(truth) for share, part in parts)
            errors = errors_of(mean, variance / n_queries, truth)
            for figure, value in zip(
                FIGURES, (squared, errors.absolute, errors.binary), strict=True
            ):
                found.setdefault(named(figure, method), []).append(value)

    def _fixed(self) -> Iterator[tuple[str, Moments]]:
        """Of policies that no click changes."""
        offsets, zeta = self._offsets, self._relevance
        clicks = np.array([[2.0], [-2.0]]) * np.ones_like(self._looked)
        yield TESTED, of_lists(self._looked, zeta, clicks, offsets)
        shown = self._looked.mean(axis=0)
        weights = self._differences / np.where(shown > 0.0, shown, 1.0)
        yield RIVAL, of_lists(self._looked, zeta, weights, offsets)
        yield UNIFORM, self._moments(UNIFORM, np.zeros(len(zeta)))
        for method, known in (
            (OPTIMUM, zeta),
            (WITHOUT_RELEVANCE, np.full(len(zeta), EQUAL_RELEVANCE)),
        ):
            queries = self._queries(known, self._scene.examination)
            rng, scores = self._rng(f"{method}/steps"), np.zeros(len(zeta))
            for number in queries.differing.tolist():
                span = slice(offsets[number], offsets[number + 1])
                one = queries.query(number)
                scores[span] = optimised_scores(one, SCORES_PLAN, rng=rng)
            yield method, self._moments(method, scores)

    def _moments(
        self, what: str, scores: Floats, weights: Floats | None = None
    ) -> Moments:
        """Of a policy's lists; clicks count by its own propensities if not given."""
        theta = self._scene.examination
        if weights is None:
            weights = self._differences / self._propensities(scores, theta)
        return of_policy(
            scores, self._relevance, weights, self._offsets, theta, rng=self._rng(what)
        )

    def _propensities(self, scores: Floats, examination: Floats) -> Floats:
        looked = np.empty(len(scores))
        fill_propensities(scores, self._offsets, examination, looked)
        return looked

    def _queries(self, relevance: Floats, examination: Floats) -> ComparedQueries:
        """As they are known."""
        looked = self._scene.looked(self._pair.rankers, examination)
        differences = looked[0] - looked[1]
        return ComparedQueries(self._offsets, relevance, differences, examination)

    def _lived(self, *, is_given: bool) -> Iterator[Known]:
        """Stages of a network that is trained again by the clicks so far.

        Where theta is not given, it begins as the discounts of DCG, and is estimated
        whenever policies are optimised.
        """
        what = f"{LOGOPT}/{is_given}"
        rng, users = self._rng(what), self._rng(f"{what}/users")
        theta = self._scene.examination
        if not is_given:
            theta = 1.0 / np.log2(1.0 + np.arange(1.0, len(theta) + 1.0))
        zeta = np.full(len(self._relevance), EQUAL_RELEVANCE)
        shape = len(zeta), len(theta)
        counts, stages = Counts(np.zeros(shape), np.zeros(shape)), list[Stage]()
        network: tuple[Ranker, Floats] | None = None
        for before, n_queries in zip([0, *self._counts], self._counts, strict=False):
            queries = self._queries(zeta, theta)
            features = self._features(queries)
            ranker, start, plan = (*network, LATER_PLAN) if network else (
                *self._first(features.shape[1], rng), FIRST_PLAN
            )  # fmt: skip
            weights = trained_policy(ranker, start, features, queries, plan, rng=rng)
            network = ranker, weights
            scores = policy_scores(ranker, weights, features, queries, plan.floor)
            stages.append(Stage(scores, n_queries - before))
            if not is_given or n_queries < self._counts[-1]:
                add_clicks(
                    scores, self._relevance, self._offsets, self._scene.examination,
                    n_queries - before, *counts, users,
                )  # fmt: skip
                theta = theta if is_given else counts.examination(theta)
                zeta = counts.relevance(theta)
            yield Known(tuple(stages), theta)

    @staticmethod
    def _first(n_columns: int, rng: np.random.Generator) -> tuple[Ranker, Floats]:
        ranker = ranker_of("neural", n_columns, HIDDEN)
        return ranker, ranker.initial_parameters(rng=rng)

    def _features(self, queries: ComparedQueries) -> Floats:
        ranks = self._scene.rankers[self._pair.rankers]
        parts = []
        for begin, end in zip(self._offsets[:-1], self._offsets[1:], strict=True):
            logged, differences = self._scene.features, queries.differences
            parts.append(
                policy_features(
                    logged[begin:end], differences[begin:end], ranks[:, begin:end]
                )
            )
        return np.concatenate(parts)

    def _by_stage(self, stages: Sequence[Weighed]) -> list[tuple[float, Moments]]:
        """Clicks over propensities of the policy that they were logged by."""
        return [
            (each.share, self._moments(LOGOPT, each.scores, each.gains / each.looked))
            for each in stages
        ]

    def _pooled(self, stages: Sequence[Weighed]) -> list[tuple[float, Moments]]:
        """Clicks over propensities of all policies together."""
        looked = np.sum([each.share * each.looked for each in stages], axis=0)
        return [
            (each.share, self._moments(AWARE, each.scores, each.gains / looked))
            for each in stages
        ]

    def _weighed(self, known: Known) -> list[Weighed]:
        """What clicks of each stage count by, as theta is known now."""
        total = sum(stage.n_queries for stage in known.stages)
        gains = self._queries(self._relevance, known.examination).differences
        return [
            Weighed(
                stage.n_queries / total,
                stage.scores,
                gains,
                self._propensities(stage.scores, known.examination),
            )
            for stage in known.stages
        ]

    def _preferences(self) -> Result:
        """Whether interleaving is wrong in the end; half where lists do not tell."""
        found: Result = {}
        ranks = self._scene.rankers[self._pair.rankers]
        spans = list(zip(self._offsets[:-1], self._offsets[1:], strict=True))
        rankings = [
            np.argsort(ranks[:, begin:end], axis=1).astype(np.int64)
            for begin, end in spans
        ]
        relevance = [self._relevance[begin:end] for begin, end in spans]
        for method in INTERLEAVED:
            preference = preference_of(
                method, rankings, relevance, self._scene.examination,
                rng=self._rng(method),
            )  # fmt: skip
            is_wrong = preference.mean * self._pair.difference < 0.0
            error = float(is_wrong) if preference.is_told else 0.5
            found[named(BINARY, method)] = [error] * len(self._counts)
            found[named("preference", method)] = [*preference]
        return found
