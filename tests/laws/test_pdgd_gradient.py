"""PDGD's expected step prefers what users prefer, whatever the policy showed."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from models.click_models.cascade import TABLES, CascadeModel
from models.click_preferences import preference_pairs
from models.learners.learner import TrainingExample
from models.learners.pdgd import PdgdConfig, PdgdLearner
from models.learners.reversed_pairs import PLAIN, logged_pair_coefficients

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Outcomes = Iterator[tuple[Flags, float]]
Users = Callable[[list[int]], Outcomes]

N, SHOWN = 4, 3
LABELS = [2, 0, 1, 1]


def cascade_outcomes(model: CascadeModel, labels: list[int]) -> Outcomes:
    """Every click pattern of a cascade with its probability, from the tables."""
    found: dict[tuple[bool, ...], float] = {}
    width = len(labels)

    def walk(x: int, clicks: tuple[bool, ...], probability: float) -> None:
        if x == width:
            found[clicks] = found.get(clicks, 0.0) + probability
            return
        click, stop = model.click[labels[x]], model.stop[labels[x]]
        for clicked, chance in ((True, click), (False, 1.0 - click)):
            can_stop = clicked or not model.stop_requires_click
            stops = stop if can_stop else 0.0
            now = (*clicks, clicked)
            end = now + (False,) * (width - x - 1)
            found[end] = found.get(end, 0.0) + probability * chance * stops
            walk(x + 1, now, probability * chance * (1.0 - stops))

    walk(0, (), 1.0)
    for clicks, probability in found.items():
        yield np.array(clicks), probability


def position_outcomes(examination: Floats, labels: list[int]) -> Outcomes:
    """Every click pattern of position-based users with its probability."""
    chances = examination[: len(labels)] * np.array([0.1, 0.4, 0.9])[labels]
    for pattern in itertools.product([False, True], repeat=len(labels)):
        clicks = np.array(pattern)
        yield clicks, float(np.prod(np.where(clicks, chances, 1.0 - chances)))


def all_users() -> list[Users]:
    """Cascades of both rules and kinds, and two examination curves."""
    users: list[Users] = []
    for kind, requires in itertools.product(TABLES[3], [True, False]):
        model = CascadeModel(*TABLES[3][kind], stop_requires_click=requires)
        users.append(partial(cascade_outcomes, model))
    for power in (0.5, 2.0):
        curve = np.arange(1.0, SHOWN + 1) ** -power
        users.append(partial(position_outcomes, curve))
    return users


def lists(scores: Floats) -> Iterator[tuple[npt.NDArray[np.int64], float]]:
    """Every list that Plackett-Luce can show, with its probability."""
    sizes = np.exp(scores)
    for rows in itertools.permutations(range(N), SHOWN):
        left, probability = sizes.sum(), 1.0
        for row in rows:
            probability *= sizes[row] / left
            left -= sizes[row]
        yield np.array(rows), probability


def rho_of_kernel(scores: Floats, rows: npt.NDArray[np.int64], a: int, b: int) -> float:
    """Rho of one pair: the slopes of all others vanish."""
    clicks = np.zeros(SHOWN, np.bool_)
    clicks[b] = True
    present = 1e6 * np.arange(1.0, SHOWN + 1)
    present[a] = present[b] = 0.0
    coefficients = np.zeros(SHOWN)
    logged_pair_coefficients(scores, rows, clicks, present, coefficients, PLAIN)
    return float(4.0 * coefficients[b])


def expected_preferences(
    scores: Floats, users: Users, change: Callable[[float], float]
) -> Floats:
    """Exact expectation of the weight of every ordered pair of documents.

    The slope of the preference is a positive factor that both orders share.
    """
    expected = np.zeros((N, N))
    for rows, shown in lists(scores):
        rho = {
            (a, b): change(rho_of_kernel(scores, rows, a, b))
            for a, b in itertools.combinations(range(SHOWN), 2)
        }
        for clicks, clicked in users([LABELS[row] for row in rows]):
            for i, j in preference_pairs(clicks):
                weight = rho[min(i, j), max(i, j)]
                expected[rows[i], rows[j]] += shown * clicked * weight
    return expected - expected.T


def n_wrong(change: Callable[[float], float]) -> int:
    """Pairs whose expected step goes against the users, over users and policies."""
    rng = np.random.default_rng(11)
    wrong = 0
    for users in all_users():
        for _ in range(3):
            scores = rng.normal(size=N)
            scores *= 2.0 / scores.std()
            expected = expected_preferences(scores, users, change)
            for i, j in itertools.combinations(range(N), 2):
                sign = np.sign(LABELS[i] - LABELS[j])
                wrong += bool(sign * expected[i, j] < 0.0)
                wrong += bool(sign == 0 and abs(expected[i, j]) > 1e-14)
    return wrong


def test_expected_step_has_the_sign_of_every_preference() -> None:
    """No pair is pushed the wrong way, and equal documents are not pushed at all."""
    assert n_wrong(lambda rho: rho) == 0


@pytest.mark.parametrize(
    "change", [lambda _: 0.5, lambda rho: 1.0 - rho], ids=["missing", "inverted"]
)
def test_a_wrong_ratio_is_caught(change: Callable[[float], float]) -> None:
    """Without rho, or with it upside down, some pairs are pushed the wrong way."""
    assert n_wrong(change) > 0


@pytest.mark.parametrize("hidden", [(), (4,), (3, 2)])
def test_a_step_is_the_gradient_of_weighted_preferences(
    hidden: tuple[int, ...],
) -> None:
    """It equals central differences of sum rho * P(preferred before other).

    Rho is that of logged scores which are not those of the learner.
    """
    rng = np.random.default_rng(5)
    kind = "neural" if hidden else "linear"
    config = PdgdConfig(6, kind, hidden, learning_rate=1.0, seed=2)
    learner = PdgdLearner(config)
    state = learner.state()
    start = rng.normal(size=learner.ranker.n_parameters)
    learner.restore({**state, "parameters": start.astype("<f8").tobytes()})
    scores = 2.0 * rng.normal(size=N)
    rows = np.array([2, 0, 3])
    clicks = np.array([False, True, False])
    features = rng.random((SHOWN, 6))

    def objective(parameters: Floats) -> float:
        present = learner.ranker.score(parameters, features)
        total = 0.0
        for i, j in preference_pairs(clicks):
            rho = rho_of_kernel(scores, rows, min(i, j), max(i, j))
            total += rho / (1.0 + np.exp(present[j] - present[i]))
        return total

    steps = 1e-5 * np.eye(len(start))
    differences = [
        (objective(start + step) - objective(start - step)) / 2e-5 for step in steps
    ]

    assert learner.learn(TrainingExample(scores, rows, clicks, features))
    assert learner.parameters() - start == pytest.approx(differences, abs=1e-9)


FORMS = ("counterfactual", "biased", "all_observed")


def step_of(form: str, kind: str, scores: Floats, clicks: Flags) -> Floats:
    """The step that a form of PDGD takes from parameters that give other scores."""
    hidden = (4,) if kind == "neural" else ()
    learner = PdgdLearner(
        PdgdConfig(
            6,
            kind,
            hidden,
            learning_rate=1.0,
            seed=2,
            counterfactual=form == "counterfactual",
            biased=form == "biased",
            all_observed=form == "all_observed",
        )
    )
    before = learner.parameters()
    features = np.random.default_rng(8).normal(size=(SHOWN, 6))
    learner.learn(TrainingExample(scores, np.arange(SHOWN), clicks, features))
    return learner.parameters() - before


def present_scores(kind: str) -> Floats:
    """What the learner of `step_of` gives the shown documents, and one more."""
    hidden = (4,) if kind == "neural" else ()
    learner = PdgdLearner(PdgdConfig(6, kind, hidden, seed=2))
    features = np.random.default_rng(8).normal(size=(SHOWN, 6))
    return np.append(learner.ranker.score(learner.parameters(), features), 0.3)


@pytest.mark.parametrize("kind", ["linear", "neural"])
def test_counterfactual_with_its_own_log_is_pdgd(kind: str) -> None:
    """Where the learner logged its own scores both forms take the same step."""
    clicks = np.array([False, True, False])
    own, other = present_scores(kind), np.array([1.0, -2.0, 0.5, 0.0])

    assert step_of("counterfactual", kind, own, clicks) == pytest.approx(
        step_of("", kind, own, clicks), rel=1e-12
    )
    assert step_of("counterfactual", kind, other, clicks) != pytest.approx(
        step_of("", kind, other, clicks), rel=1e-3
    )


@pytest.mark.parametrize("form", FORMS)
def test_forms_take_the_step_of_their_definition(form: str) -> None:
    """Pairs, rho and slope as each form says, summed from the definitions."""
    scores = np.array([1.0, -2.0, 0.5, 0.0])
    clicks = np.array([True, False, False])
    present = scores if form == "counterfactual" else np.zeros(N)
    features = np.random.default_rng(8).normal(size=(SHOWN, 6))
    pairs = [(0, 1), (0, 2)] if form == "all_observed" else [(0, 1)]
    expected = np.zeros(6)
    for i, j in pairs:
        rho = rho_of_kernel(scores, np.arange(SHOWN), min(i, j), max(i, j))
        weight = 1.0 if form == "biased" else rho
        first = 1.0 / (1.0 + np.exp(present[j] - present[i]))
        expected += weight * first * (1.0 - first) * (features[i] - features[j])

    assert step_of(form, "linear", scores, clicks) == pytest.approx(expected)
