"""Clicks of users under policies that follow one another, as sums by document.

Nothing is kept of a single list: how often queries came, and documents were shown and
clicked at each rank, is all that estimators of relevance ask for, so that millions of
lists take no memory. Probabilities of ranks are exact.

Users are those of the trust-bias model; estimators are told its curves, as the
literature does.

References
----------
Oosterhuis & de Rijke (WSDM 2021), "Unifying Online and Counterfactual Learning to
Rank", section 7.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.click_models.compiled_users import Users, click_on, users_of
from models.click_models.trust_bias import TrustBiasModel
from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import least_average
from models.estimators.policy_corrected import policy_weights
from models.kernels.compilation import compiled
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.plackett_luce.placement import placement_batch
from models.training.exploration import Placements
from rankstream.lab.closed_loops.world import (
    World,
    WorldPlacements,
    any_query,
    checked_cutoff,
    checked_world,
)

AWARE, OBLIVIOUS = "intervention-aware", "intervention-oblivious"
POLICY_AWARE, AFFINE = "policy-aware", "affine"

ESTIMATORS = (AWARE, OBLIVIOUS, POLICY_AWARE, AFFINE)
"""Names as in `models.estimators.registry`."""


class _Policy(NamedTuple):
    """What one policy showed.

    Expected alpha and beta of a list, and clicks, [n_documents]; lists [n_queries].
    """

    alpha: Floats
    beta: Floats
    clicked: Floats
    lists: Integers


class PolicyLog:
    """What users were shown and clicked, policy by policy.

    Parameters
    ----------
    world
        Queries that users ask, each as likely as any other.
    users
        Who clicks; beyond the ranks of their curves nothing is shown.
    placements
        Computes probabilities of ranks.
    """

    def __init__(
        self,
        world: World,
        users: TrustBiasModel,
        *,
        placements: Placements = placement_batch,
    ) -> None:
        self.curve = BiasCurve(np.array(users.alpha), np.array(users.beta))
        self._users = users_of(users)
        self.world = checked_world(world, n_grades=len(users.relevance))
        self._cutoff = checked_cutoff(self.curve.n_ranks)
        sizes = np.diff(self.world.offsets)
        self._queries = np.repeat(np.arange(len(sizes)), sizes)
        self._placed = WorldPlacements(self.world.offsets, self._cutoff, placements)
        counts = (len(self._queries), self._cutoff)
        self._shown = np.zeros(counts, np.int64)
        self._clicked = np.zeros(counts, np.int64)
        self._policies: list[_Policy] = []
        self._scores = np.zeros(len(self._queries))

    @property
    def lists(self) -> Integers:
        """How often each query came, [n_queries]."""
        zeros = np.zeros(len(self.world.offsets) - 1, np.int64)
        return sum((policy.lists for policy in self._policies), zeros)

    @property
    def n_policies(self) -> int:
        """How many policies were deployed so far."""
        return len(self._policies)

    def deploy(self, scores: Floats) -> None:
        """Show lists by these scores [n_documents] from now on."""
        self._scores = np.array(scores, np.float64)
        placed = self._placed.of(self._scores)
        self._policies.append(
            _Policy(
                placed @ self.curve.alpha,
                placed @ self.curve.beta,
                np.zeros(len(scores)),
                np.zeros(len(self.world.offsets) - 1, np.int64),
            )
        )

    def gather(self, n_lists: int, *, rng: np.random.Generator) -> None:
        """Show so many lists by the policy that is deployed.

        Raises
        ------
        ValueError
            Where none is.
        """
        if not self._policies:
            raise ValueError("a policy must be deployed before lists are shown")
        policy = self._policies[-1]
        before = self._clicked.sum(axis=1)
        show_lists(
            self.world,
            self._users,
            self._scores,
            n_lists,
            policy.lists,
            self._shown,
            self._clicked,
            rng,
        )
        policy.clicked[:] += self._clicked.sum(axis=1) - before

    def training_values(self, estimator: str, n_lists: int) -> Floats:
        """Values of documents with small propensities raised; see `values`.

        Parameters
        ----------
        n_lists
            Lists of the training queries, at least 1.
        """
        return self.values(estimator, least=least_average(n_lists))

    def values(self, estimator: str, *, least: float = 0.0) -> Floats:
        """Estimated relevance of documents, [n_documents]; NaN where there is none.

        The same as the estimators of `models.estimators.registry` give for a log of
        single lists.

        Parameters
        ----------
        estimator
            One of `ESTIMATORS`.
        least
            To which propensities are raised, in training only.
        """
        if estimator not in ESTIMATORS:
            raise ValueError(
                f"estimator must be one of {', '.join(ESTIMATORS)}; got {estimator!r}"
            )
        lists = self.lists[self._queries].astype(np.float64)
        if estimator == AFFINE:
            return self._affine(lists, least)
        if estimator == AWARE:
            return self._aware(lists, least)
        return self._by_policy(estimator, least)

    def _affine(self, lists: Floats, least: float) -> Floats:
        alpha = np.maximum(self.curve.alpha, least)
        told = (self._clicked - self._shown * self.curve.beta) / alpha
        return _over(told.sum(axis=1), lists)

    def _aware(self, lists: Floats, least: float) -> Floats:
        alpha, beta = np.zeros(len(lists)), np.zeros(len(lists))
        for policy in self._policies:
            of_policy = policy.lists[self._queries]
            alpha += policy.alpha * of_policy
            beta += policy.beta * of_policy
        raised = np.maximum(alpha, least * lists)
        return _over(self._clicked.sum(axis=1) - beta, raised)

    def _by_policy(self, estimator: str, least: float) -> Floats:
        shape = (len(self._policies), len(self._queries))
        lists, alpha, beta, clicked = (np.empty(shape) for _ in range(4))
        for row, policy in enumerate(self._policies):
            lists[row] = policy.lists[self._queries]
            alpha[row], beta[row] = policy.alpha * lists[row], policy.beta * lists[row]
            clicked[row] = policy.clicked
        if estimator == POLICY_AWARE:
            # What is relevant is clicked by alpha + beta: no trust bias is known.
            alpha, beta = alpha + beta, np.zeros(shape)
        weights = policy_weights(lists, alpha, least)
        values = ((clicked - beta) * weights.clicks).sum(axis=0)
        return np.where(weights.shares.any(axis=0), values, np.nan)


def _over(numbers: Floats, by: Floats) -> Floats:
    """Quotients; NaN where there is nothing to divide by."""
    result = np.full(len(numbers), np.nan)
    np.divide(numbers, by, out=result, where=by > 0.0)
    return result


@compiled
def show_lists(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    users: Users,
    scores: Floats,
    n_lists: int,
    lists: Integers,
    shown: Integers,
    clicked: Integers,
    rng: np.random.Generator,
) -> None:
    """Draw lists of a fixed policy, and add what users did to sums.

    Parameters
    ----------
    scores : [n_documents]
    lists : [n_queries]
        Added to, as the others: how often each query came.
    shown, clicked : [n_documents, cutoff]
        Lists on which the document was at that rank, and was clicked there.
    """
    offsets = world.offsets
    largest = np.max(offsets[1:] - offsets[:-1])
    masses = np.empty(largest)
    all_blocks = np.empty((largest + BLOCK - 1) // BLOCK)
    cutoff = shown.shape[1]
    all_rows, all_clicks = np.empty(cutoff, np.int64), np.empty(cutoff, np.bool_)
    for _ in range(n_lists):
        query = any_query(offsets, rng)
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        k = min(n, cutoff)
        rows, clicks = all_rows[:k], all_clicks[:k]
        blocks = all_blocks[: (n + BLOCK - 1) // BLOCK]
        sample_list(scores[first:last], masses, blocks, rows, rng)
        click_on(world.labels[first:last], rows, users, clicks, rng)
        lists[query] += 1
        for place in range(k):
            shown[first + rows[place], place] += 1
            if clicks[place]:
                clicked[first + rows[place], place] += 1
