"""Small comparisons in full: every list, every pattern of clicks."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from models.interleaving.allowed_lists import all_lists
from models.interleaving.method import Method, Shown
from models.interleaving.rankings import checked

Lists = list[tuple[float, Shown]]

EMPTY = np.empty(0, np.int64)


def as_rankings(lists: Sequence[Sequence[int]]) -> np.ndarray:
    """The lists of all rankers, one a row, filled up with -1."""
    longest = max((len(each) for each in lists), default=0)
    return checked(np.array([[*each, *[-1] * (longest - len(each))] for each in lists]))


def random_rankings(
    rng: np.random.Generator, n_rankers: int, n_documents: int
) -> np.ndarray:
    """All documents, ranked at random by each ranker."""
    return np.array([rng.permutation(n_documents) for _ in range(n_rankers)])


def _shown(rankings: np.ndarray, shown: tuple, teams: tuple | None = None) -> Shown:
    assignments = EMPTY if teams is None else np.array(teams, np.int64)
    return Shown(rankings, np.array(shown, np.int64), assignments)


def free_choices(rankings: np.ndarray, placed: tuple) -> list[int]:
    """Documents that some ranker puts at the next place or above."""
    top = rankings[:, : len(placed) + 1].ravel().tolist()
    return sorted({d for d in top if d >= 0} - set(placed))


def pairwise_lists(rankings: np.ndarray, length: int) -> Lists:
    """Every list of pairwise preference multileaving with its probability."""
    states = {(): Fraction(1)}
    for _ in range(length):
        following: dict = {}
        for placed, probability in states.items():
            choices = free_choices(rankings, placed)
            for document in choices:
                key = (*placed, document)
                following[key] = following.get(key, 0) + probability / len(choices)
        states = following or states
    return [(float(p), _shown(rankings, placed)) for placed, p in states.items()]


def _best(ranking: np.ndarray, placed: tuple) -> int:
    return next((d for d in ranking.tolist() if d >= 0 and d not in placed), -1)


def _shared(rankings: np.ndarray) -> int:
    same = (rankings == rankings[0]).all(axis=0) & (rankings[0] >= 0)
    return int(np.cumprod(same).sum())


def draft_lists(rankings: np.ndarray, length: int) -> Lists:
    """Every list and assignment of a team draft."""
    n_rankers, n_neutral = len(rankings), _shared(rankings)
    n_fair = int((rankings >= 0).sum(axis=1).min())
    prefix = tuple(rankings[0, : min(n_neutral, length)].tolist())
    states: dict = {(prefix, (-1,) * len(prefix)): Fraction(1)}
    finished: dict = {}
    while states:
        following: dict = {}
        orders = list(itertools.permutations(range(n_rankers)))
        for (placed, teams), probability in states.items():
            for order in orders:
                shown, owners = placed, teams
                for ranker in order:
                    best = _best(rankings[ranker], shown)
                    if len(shown) < length and best >= 0:
                        owner = ranker if len(shown) < n_fair else -1
                        shown, owners = (*shown, best), (*owners, owner)
                ended = len(shown) == length or shown == placed
                into = finished if ended else following
                key = (shown, owners)
                into[key] = into.get(key, 0) + probability / len(orders)
        states = following
    return [
        (float(p), _shown(rankings, shown, owners))
        for (shown, owners), p in finished.items()
    ]


def soft_lists(rankings: np.ndarray, length: int, tau: float) -> Lists:
    """Every list of probabilistic multileaving with its probability."""
    states = {(): 1.0}
    for _ in range(length):
        following: dict = {}
        for placed, probability in states.items():
            able = [row for row in rankings if _best(row, placed) >= 0]
            for row in able:
                masses = {
                    d: (i + 1.0) ** -tau
                    for i, d in enumerate(row.tolist())
                    if d >= 0 and d not in placed
                }
                for d, mass in masses.items():
                    share = mass / sum(masses.values()) / len(able)
                    key = (*placed, d)
                    following[key] = following.get(key, 0.0) + probability * share
        states = following or states
    return [(p, _shown(rankings, placed)) for placed, p in states.items()]


def optimized_lists(rankings: np.ndarray, length: int) -> Lists:
    """Every list that optimized multileaving may draw; its chances are its own."""
    rows = all_lists(rankings, length, 1_000)
    return [(1.0 / len(rows), _shown(rankings, tuple(row))) for row in rows]


def merged_lists(rankings: np.ndarray, length: int) -> Lists:
    """Both lists of balanced interleaving, by taking turns."""
    found = []
    for order in ((0, 1), (1, 0)):
        turns = [d for each in rankings[list(order)].T.tolist() for d in each]
        shown = tuple(dict.fromkeys(d for d in turns if d >= 0))[:length]
        found.append((0.5, _shown(rankings, shown)))
    return found


def split_lists(rankings: np.ndarray, length: int) -> Lists:
    """The whole list of each ranker that has one."""
    tops = [tuple(d for d in row.tolist() if d >= 0)[:length] for row in rankings]
    able = [ranker for ranker, top in enumerate(tops) if top]
    return [
        (1 / len(able), _shown(rankings, tops[ranker], (ranker,) * len(tops[ranker])))
        for ranker in able
    ]


def uniform_lists(rankings: np.ndarray, length: int) -> Lists:
    """Every list of ranked documents, all as likely."""
    documents = sorted({d for d in rankings.ravel().tolist() if d >= 0})
    rows = list(itertools.permutations(documents, min(length, len(documents))))
    return [(1 / len(rows), _shown(rankings, row)) for row in rows]


LISTS_OF: dict[str, Callable[[np.ndarray, int], Lists]] = {
    "pairwise-preference": pairwise_lists,
    "team-draft": draft_lists,
    "optimized": optimized_lists,
    "probabilistic": lambda rankings, length: soft_lists(rankings, length, 3.0),
    "sample-scored": draft_lists,
    "balanced": merged_lists,
    "debiased-balanced": merged_lists,
    "ab": split_lists,
    "logging-policy": uniform_lists,
}
"""How the lists of each method are enumerated: laws run over all methods by it."""

LENIENT = {"team-draft", "sample-scored"}
"""Methods that take any list below the shortest ranking, where they credit nobody."""


def patterns(length: int) -> np.ndarray:
    """Every pattern of clicks. [2^length, length]."""
    return np.array(list(itertools.product([False, True], repeat=length)))


def outcomes(method: Method, lists: Lists) -> np.ndarray:
    """Preferences for each list and pattern. [n_lists, n_patterns, R, R]."""
    every = patterns(len(lists[0][1].shown))
    return np.array(
        [[method.infer(shown, clicks) for clicks in every] for _, shown in lists]
    )


def expectation(lists: Lists, found: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """E[preferences]; `chances` [n_lists, n_patterns] is P(pattern | list)."""
    probabilities = np.array([p for p, _ in lists])
    return np.asarray(np.einsum("l,lp,lpnm->nm", probabilities, chances, found))


def independent_chances(lists: Lists, click: np.ndarray) -> np.ndarray:
    """P(pattern | list) of independent clicks; `click` [k, n_documents]."""
    every = patterns(len(lists[0][1].shown))
    places = np.arange(every.shape[1])
    chances = []
    for _, shown in lists:
        p = click[places, shown.shown]
        chances.append(np.where(every, p, 1.0 - p).prod(axis=1))
    return np.array(chances)


def uncorrelated_chances(rng: np.random.Generator, lists: Lists) -> np.ndarray:
    """P(pattern | list), any joint distribution that knows nothing of documents."""
    n_patterns = 2 ** len(lists[0][1].shown)
    return np.tile(rng.dirichlet(np.full(n_patterns, 0.3)), (len(lists), 1))


def correlated_chances(
    rng: np.random.Generator, lists: Lists, relevant: np.ndarray, n_read: int
) -> np.ndarray:
    """P(pattern | list) where relevant documents are clicked more at every rank read.

    A user would click each place always, if its document is relevant, or never:
    any joint distribution over these will do, with something for the second.
    """
    k = len(lists[0][1].shown)
    users = np.array(list(itertools.product([0, 1, 2], repeat=n_read)))
    weights = rng.dirichlet(np.full(len(users), 0.3)) + 1e-3
    weights /= weights.sum()
    value = 2 ** np.arange(k)[::-1]
    chances = np.zeros((len(lists), 2**k))
    for row, (_, shown) in enumerate(lists):
        clicks = np.zeros((len(users), k), np.int64)
        is_relevant = relevant[shown.shown[:n_read]]
        clicks[:, :n_read] = (users == 2) | ((users == 1) & is_relevant)
        np.add.at(chances[row], clicks @ value, weights)
    return chances


def pareto_rankings(
    rng: np.random.Generator, n_rankers: int, n_documents: int, n_read: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rankings of which the first dominates all others, and what is relevant."""
    while True:
        rankings = random_rankings(rng, n_rankers, n_documents)
        relevant = rng.random(n_documents) < 0.5
        ranks = np.argsort(rankings, axis=1) + 1
        counted = relevant & (ranks <= n_read).any(axis=0)
        others = ranks[1:, counted] - ranks[0, counted]
        if counted.any() and (others >= 0).all() and (others > 0).any(axis=1).all():
            yield rankings, relevant
