"""DBGD and MGD with simulated users in one compiled loop."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers, Singles
from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import Users, click_on
from models.kernels.compilation import compiled
from models.learners.duel_learner import (
    COMPARISONS,
    ORACLE,
    PROBABILISTIC,
    TEAM_DRAFT,
    DuelConfig,
)
from models.learners.multileaved_lists import (
    draft_teams,
    draw_by_scores,
    draw_probabilistic,
    fill_order,
    fill_ranks,
    fill_ranks_with_own_ties,
    fill_shares,
    fill_shown_ranks,
)
from models.learners.multileaved_verdicts import (
    fill_assignment,
    mark_better_rankers,
    mark_team_winners,
    mark_winners,
    mark_winners_by_sample,
)
from models.optimisers.kernel import Optimiser, step
from models.rankers.layers import Shape, n_activations
from models.rankers.single_precision import bound_scores, score_documents
from rankstream.lab.closed_loops.ranker_loop import RankerLoop
from rankstream.lab.closed_loops.world import World, any_query, columns_of

NO_VALUES = np.zeros(0, np.float32)


class Duels(NamedTuple):
    """A `DuelConfig` as the kernel reads it."""

    n_candidates: int
    comparison: int
    unit: float
    tau: float
    n_samples: int
    own_ties: bool


class DuelLoop(RankerLoop):
    """DBGD or MGD that lives with its users; see `RankerLoop`."""

    def __init__(
        self,
        config: DuelConfig,
        world: World,
        users: ClickModel,
        *,
        cutoff: int = 10,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(config, world, users, cutoff=cutoff, rng=rng)
        is_linear = not config.hidden
        self._values = columns_of(self._world) if is_linear else NO_VALUES
        self._duels = Duels(
            config.n_candidates,
            COMPARISONS[config.comparison],
            config.unit,
            config.tau,
            config.n_samples,
            config.own_ties,
        )

    def _live(self, shown: Integers) -> int:
        return live(
            self._world,
            self._values,
            self._users,
            self.parameters,
            self._shape,
            self._optimiser,
            self._duels,
            shown,
            self._rng,
        )


@compiled
def fill_directions(directions: Singles, unit: float, rng: np.random.Generator) -> None:
    """Fill `directions` [n_candidates, n_parameters] with vectors of one length."""
    for c in range(directions.shape[0]):
        row = directions[c]
        squares = 0.0
        for i in range(row.shape[0]):
            drawn = rng.standard_normal()
            row[i] = drawn
            squares += drawn * drawn
        factor = np.float32(unit / np.sqrt(squares))
        for i in range(row.shape[0]):
            row[i] *= factor


@compiled
def score_candidates(
    weights: Singles,
    directions: Singles,
    columns: Singles,
    scores: Singles,
) -> None:
    """Fill the scores of all documents by linear rankers.

    Parameters
    ----------
    weights : [n_features]
    directions : [n_candidates, n_features]
    columns : [n_features, n]
        Features of the documents.
    scores : [n, 1 + n_candidates]
        The ranker's own come first.
    """
    n = columns.shape[1]
    base, own = np.empty(n, np.float32), np.empty(n, np.float32)
    fill_scores(weights, columns, base)
    scores[:, 0] = base
    for c in range(directions.shape[0]):
        fill_scores(directions[c], columns, own)
        for d in range(n):
            scores[d, c + 1] = base[d] + own[d]


@compiled
def fill_scores(weights: Singles, columns: Singles, out: Singles) -> None:
    """Fill the scores of all documents by one linear ranker.

    Parameters
    ----------
    weights : [n_features]
    columns : [n_features, n]
    out : [n]
    """
    n_features, n = columns.shape
    out[:] = np.float32(0.0)
    whole = n_features - n_features % 4
    for i in range(0, whole, 4):
        a, b, c, e = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        first, second = columns[i], columns[i + 1]
        third, fourth = columns[i + 2], columns[i + 3]
        for d in range(n):
            out[d] += (a * first[d] + b * second[d]) + (c * third[d] + e * fourth[d])
    for i in range(whole, n_features):
        row = columns[i]
        for d in range(n):
            out[d] += weights[i] * row[d]


@compiled
def score_networks(
    weights: Singles,
    directions: Singles,
    shape: Shape,
    features: Singles,
    scores: Singles,
    activations: Singles,
) -> None:
    """The same for rankers with hidden layers.

    Parameters
    ----------
    weights : [n_parameters]
    directions : [n_candidates, n_parameters]
    features : [n, n_features]
    scores : [n, 1 + n_candidates]
    activations : [at least n, n_activations]
        Scratch.
    """
    one = np.empty(features.shape[0], np.float32)
    near = weights.copy()
    for r in range(scores.shape[1]):
        if r > 0:
            for i in range(near.shape[0]):
                near[i] = weights[i] + directions[r - 1, i]
        score_documents(near, shape, features, one, activations, features)
        scores[:, r] = one


@compiled
def add_winners(
    directions: Singles, is_winner: Flags, n_winners: int, gradient: Floats
) -> None:
    """Fill the mean direction of the winners.

    Parameters
    ----------
    directions : [n_candidates, n_parameters]
    is_winner : [1 + n_candidates]
        The ranker that learns comes first, and is passed over.
    gradient : [n_parameters]
    """
    gradient[:] = 0.0
    for c in range(directions.shape[0]):
        if is_winner[c + 1]:
            for i in range(gradient.shape[0]):
                gradient[i] += directions[c, i]
    for i in range(gradient.shape[0]):
        gradient[i] /= n_winners


@compiled
def make_list(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Singles,
    duels: Duels,
    shares: Floats,
    order: Integers,
    ranks: npt.NDArray[np.int32],
    rows: Integers,
    teams: Integers,
    rng: np.random.Generator,
) -> None:
    """Fill the list that users see; and everybody's ranks where that takes them.

    Equal scores stand in a random order, the same for all rankers if ties are shared.

    Parameters
    ----------
    scores, ranks : [n, n_rankers]
    shares, order : [n]
        What a rank weighs; the order is filled unless everybody has ties of its own.
    rows, teams : [k]
        With k <= n; teams are filled by team draft only.
    """
    if duels.own_ties:
        fill_ranks_with_own_ties(scores, ranks, rng)
    else:
        fill_order(order, rng)
        if duels.comparison == PROBABILISTIC:
            draw_by_scores(scores, order, shares, rows, rng)
            return
        fill_ranks(scores, order, ranks)
    if duels.comparison == PROBABILISTIC:
        draw_probabilistic(ranks, shares, rows, rng)
    elif duels.comparison == TEAM_DRAFT:
        draft_teams(ranks, rows, teams, rng)
    else:
        for d in range(ranks.shape[0]):
            if ranks[d, 0] <= rows.shape[0]:
                rows[ranks[d, 0] - 1] = d


@compiled
def judge(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Singles,
    duels: Duels,
    shares: Floats,
    order: Integers,
    ranks: npt.NDArray[np.int32],
    rows: Integers,
    teams: Integers,
    clicks: Flags,
    n_clicks: int,
    is_winner: Flags,
    rng: np.random.Generator,
) -> int:
    """Mark who won by the clicks; returns how many.

    Parameters
    ----------
    scores, ranks : [n, n_rankers]
    shares, order : [n]
    rows, teams, clicks : [k]
        All but the clicks as `make_list` left them.
    is_winner : [n_rankers]
    """
    if duels.comparison == TEAM_DRAFT:
        return mark_team_winners(teams, clicks, is_winner)
    if duels.own_ties:
        shown_ranks = ranks[rows]
    else:
        shown_ranks = np.empty((rows.shape[0], scores.shape[1]), np.int32)
        fill_shown_ranks(scores, order, rows, shown_ranks)
    assignment = np.empty((n_clicks, scores.shape[1]))
    fill_assignment(shown_ranks, shares, clicks, assignment)
    if duels.n_samples > 0:
        return mark_winners_by_sample(assignment, duels.n_samples, is_winner, rng)
    return mark_winners(assignment, is_winner)


@compiled
def live(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    values: Singles,
    users: Users,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    duels: Duels,
    shown: Integers,
    rng: np.random.Generator,
) -> int:
    """Fill `shown` while parameters move; returns the number of updates.

    Parameters
    ----------
    values : [n_documents * n_features]
        The features once more, query by query [n_features, documents of the query],
        for linear rankers; empty for others.
    parameters : [n_parameters]
    shown : [n_impressions, 1 + cutoff]
        As `RankerLoop.run` returns it; -1 before.
    """
    offsets = world.offsets
    largest = np.max(offsets[1:] - offsets[:-1])
    n_rankers = 1 + duels.n_candidates
    directions = np.empty((duels.n_candidates, parameters.shape[0]), np.float32)
    activations = np.empty((largest, n_activations(shape)), np.float32)
    all_scores = np.empty((largest, n_rankers), np.float32)
    all_ranks = np.empty((largest, n_rankers), np.int32)
    all_order = np.empty(largest, np.int64)
    all_teams = np.empty(shown.shape[1], np.int64)
    all_clicks = np.empty(shown.shape[1], np.bool_)
    is_winner = np.zeros(n_rankers, np.bool_)
    gradient = np.empty(parameters.shape[0])
    weights = parameters.astype(np.float32)
    n_updates = 0
    for i in range(shown.shape[0]):
        query = any_query(offsets, rng)
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        k = min(n, shown.shape[1] - 1)
        features, labels = world.features[first:last], world.labels[first:last]
        scores, ranks = all_scores[:n], all_ranks[:n]
        fill_directions(directions, duels.unit, rng)
        if shape.sizes.shape[0] == 2:
            place, n_features = first * parameters.shape[0], parameters.shape[0]
            columns = values[place : place + n * n_features].reshape((n_features, n))
            score_candidates(weights, directions, columns, scores)
        else:
            score_networks(weights, directions, shape, features, scores, activations)
        bound_scores(scores)
        order = all_order[:n]
        shares = np.empty(n)
        fill_shares(shares, duels.tau)
        shown[i, 0] = query
        rows, teams, clicks = shown[i, 1 : k + 1], all_teams[:k], all_clicks[:k]
        make_list(scores, duels, shares, order, ranks, rows, teams, rng)
        if duels.comparison == ORACLE:
            n_winners = mark_better_rankers(ranks, labels, k, is_winner)
        else:
            n_clicks = click_on(labels, rows, users, clicks, rng)
            if n_clicks == 0:
                continue
            n_winners = judge(
                scores,
                duels,
                shares,
                order,
                ranks,
                rows,
                teams,
                clicks,
                n_clicks,
                is_winner,
                rng,
            )
        if n_winners > 0:
            add_winners(directions, is_winner, n_winners, gradient)
            if step(parameters, gradient, optimiser):
                weights[:] = parameters
                n_updates += 1
    return n_updates
