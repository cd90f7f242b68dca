"""Laws of corrected relevance, by enumeration of all that a log could have been.

Each law is a check of a module, so that it can be run on mutants of it as well: one
term changed, and a law must break.
"""

import inspect
import math
from itertools import product
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

from models.estimators import intervals, intervention_aware
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.click_log import ClickLog
from tests.curve_factory import ratio_curve
from tests.laws.logged_clicks import Users, outcomes, placement, plackett_luce

EXACT = 1e-12

TRUSTING = Users((1.0, 0.7, 0.4), (0.98, 0.9, 0.85), (0.6, 0.3, 0.1), (0.8, 0.3, 0.5))
CAREFUL = TRUSTING._replace(if_relevant=(1.0,) * 3, if_not=(0.0,) * 3)

OLD = plackett_luce({0: 4.0, 1: 1.0, 2: 0.0}, 2)
NEW = plackett_luce({0: 1.0, 1: 0.5, 2: 3.0}, 2)
"""The old policy never shows item 2: only together do they show all three."""
PAIR = plackett_luce({0: 1.0, 1: 2.0}, 2)
"""Of a candidate set without item 2."""
WHOLE = plackett_luce({0: 4.0, 1: 1.0, 2: 2.0}, 3)

REAL = SimpleNamespace(aware=intervention_aware, intervals=intervals)


class Impression:
    """One list to be: its policy, its candidates, its group."""

    def __init__(self, policy, *, candidates=(0, 1, 2), group=0):
        self.policy, self.candidates, self.group = policy, candidates, group
        self.expected = placement(policy, 3, 3)


def places_of(groups, items, ranks, clicked, expected):
    """Rows of one policy, of which nobody asks how often items were there."""
    return ClickLog(groups, groups * 0, items, ranks, clicked, clicked, expected)


def sums_of(real, impressions, found, curve, *, n_groups=1):
    """What the code under test adds up of impressions that came to these outcomes."""
    rows, per_item = [], np.zeros((n_groups, 3))
    for one, outcome in zip(impressions, found, strict=True):
        per_item[one.group, list(one.candidates)] += 1
        for item, row in product(range(3), range(3)):
            clicked = outcome.shown[row : row + 1] == (item,) and outcome.clicks[row]
            expected = one.expected[item, row]
            if expected:
                rows.append((one.group, item, row + 1, int(clicked), expected))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return real.aware.item_sums(places_of(*columns), per_item[:, None], curve)


def expectation(impressions, users, of):
    """The mean of `of` over every joint outcome."""
    total, chances = [], []
    ways = [outcomes(one.policy, users) for one in impressions]
    for found in product(*ways):
        chance = math.prod(one.probability for one in found)
        total.append(chance * of(found))
        chances.append(chance)
    assert abs(math.fsum(chances) - 1.0) < EXACT
    return np.array([math.fsum(column) for column in zip(*total, strict=True)])


def check_is_unbiased(real, impressions, users, curve):
    """The mean of the estimate is what is relevant, of each item."""

    def estimated(found):
        sums = sums_of(real, impressions, found, curve)
        return real.aware.estimates(sums).values

    mean = expectation(impressions, users, estimated)
    np.testing.assert_allclose(mean, users.relevance, rtol=0, atol=EXACT)


def trust_and_position(real):
    """Two policies, of which one alone shows item 2; trust bias."""
    alpha, beta = TRUSTING.curve()
    of_both = [Impression(OLD), Impression(NEW)]
    check_is_unbiased(real, of_both, TRUSTING, BiasCurve(alpha, beta))


def position_alone(real):
    """Without trust bias what is estimated is P(click | looked at)."""
    of_both = [Impression(OLD), Impression(NEW)]
    curve = position_curve(CAREFUL.examination)
    check_is_unbiased(real, of_both, CAREFUL, curve)
    noisy = CAREFUL._replace(if_relevant=(0.9,) * 3, if_not=(0.2,) * 3)
    clicked = tuple(0.9 * r + 0.2 * (1 - r) for r in noisy.relevance)

    def estimated(found):
        return real.aware.estimates(sums_of(real, of_both, found, curve)).values

    mean = expectation(of_both, noisy, estimated)
    np.testing.assert_allclose(mean, clicked, rtol=0, atol=EXACT)


def whole_lists(real):
    """One policy that shows everything."""
    alpha, beta = TRUSTING.curve()
    check_is_unbiased(real, [Impression(WHOLE)], TRUSTING, BiasCurve(alpha, beta))


def ranks_beyond_the_curve(real):
    """Lists are longer than the curve: clicks there are left out with exposures."""
    alpha, beta = (column[:2] for column in TRUSTING.curve())
    check_is_unbiased(real, [Impression(WHOLE)], TRUSTING, BiasCurve(alpha, beta))
    alpha, beta = alpha[:1], beta[:1]
    check_is_unbiased(real, [Impression(WHOLE)], TRUSTING, BiasCurve(alpha, beta))


def several_candidate_sets(real):
    """A list whose candidates lack an item says nothing of it, nor takes from it."""
    alpha, beta = TRUSTING.curve()
    impressions = [Impression(PAIR, candidates=(0, 1)), Impression(NEW)]
    check_is_unbiased(real, impressions, TRUSTING, BiasCurve(alpha, beta))
    found = [outcomes(one.policy, TRUSTING)[0] for one in impressions]
    sums = sums_of(real, impressions, found, BiasCurve(alpha, beta))
    alone = sums_of(real, impressions[1:], found[1:], BiasCurve(alpha, beta))
    ours, theirs = real.aware.estimates(sums), real.aware.estimates(alone)
    assert ours.values[2] == theirs.values[2]
    assert ours.weights[2] == theirs.weights[2]
    assert (ours.impressions == (2, 2, 1)).all()


def values_in_ratios(real):
    """Known in ratios only: what is estimated is P(click at rank 1)."""
    alpha, beta = TRUSTING.curve()
    curve = ratio_curve(BiasCurve(alpha, beta))
    of_both = [Impression(OLD), Impression(NEW)]

    def estimated(found):
        return real.aware.estimates(sums_of(real, of_both, found, curve)).values

    mean = expectation(of_both, TRUSTING, estimated)
    first = alpha[0] * np.array(TRUSTING.relevance) + beta[0]
    np.testing.assert_allclose(mean, first, rtol=0, atol=EXACT)
    # Another anchor of what nobody can tell: the same curve of ratios.
    noise = 0.1
    other = BiasCurve(alpha / (1 - noise), beta - alpha * noise / (1 - noise))
    again = ratio_curve(other)
    np.testing.assert_allclose(again.alpha, curve.alpha, rtol=0, atol=EXACT)
    np.testing.assert_allclose(again.beta, curve.beta, rtol=0, atol=EXACT)


def one_item(real, alphas, clicks, *, groups=None, curve=None):
    """Sums of impressions on which one item stood first with these probabilities."""
    groups = np.zeros(len(alphas), np.int64) if groups is None else np.array(groups)
    zeros = np.zeros(len(alphas), np.int64)
    places = places_of(groups, zeros, zeros + 1, np.array(clicks), np.array(alphas))
    n = np.bincount(groups).astype(float)[:, None]
    return real.aware.item_sums(places, n[:, None], curve or position_curve([1.0]))


def value_of(real, sums):
    """That of the only item."""
    return real.aware.estimates(sums).values[0]


def adaptive_mean(real, n):
    """E of n impressions at .5, then n at .9 if clicks were many, at .1 if not; R .5.

    Clicks are counted, so sums over n impressions are as good as n of them.
    """
    total = []
    for before, after in product(range(n + 1), repeat=2):
        later = 0.9 if before > n / 4 else 0.1
        chance = _binomial(n, before, 0.25) * _binomial(n, after, later / 2)
        sums = one_item(real, [0.5 * n, later * n], [before, after])
        total.append(chance * value_of(real, sums))
    return math.fsum(total)


def _binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def chosen_from_these_clicks(real):
    """Biased, as the thesis' theorem does not say; the bias goes as clicks come."""
    means = [adaptive_mean(real, n) for n in (1, 4, 16, 48)]
    by_hand = 0.25 * (1 + 0.45) / 1.4 + 0.75 * 0.05 / 0.6
    assert abs(means[0] - by_hand) < EXACT
    assert round(means[0], 4) == 0.3214
    away = [abs(mean - 0.5) for mean in means]
    assert away == sorted(away, reverse=True)
    assert away[-1] < 0.04


def chosen_from_other_groups(real):
    """Exact on the groups whose clicks the policy was not chosen from."""
    selected, together = [], []
    for clicks in product((0, 1), repeat=4):
        first_training, first_selection, *rest = clicks
        later = 0.9 if first_training else 0.1
        alphas = [0.5, 0.5, later, later]
        chance = math.prod(
            alpha / 2 if click else 1 - alpha / 2
            for alpha, click in zip(alphas, clicks, strict=True)
        )
        marks = [first_training, first_selection, *rest]
        sums = one_item(real, alphas, marks, groups=[0, 1, 0, 1])
        selected.append(chance * value_of(real, sums.of_groups([1])))
        together.append(chance * value_of(real, sums))
    assert abs(math.fsum(selected) - 0.5) < EXACT
    assert abs(math.fsum(together) - 0.5) > 0.05


def the_worked_example(real):
    """100 impressions at .25, 300 at .05: clicks weigh 4 and 20 apart, 10 together."""
    before = one_item(real, [25.0], [0])._replace(impressions=np.array([[100.0]]))
    after = one_item(real, [15.0], [0])._replace(impressions=np.array([[300.0]]))
    both = real.aware.ItemSums(
        *(np.concatenate(x) for x in zip(before, after, strict=True))
    )
    weights = [real.aware.estimates(sums).weights[0] for sums in (before, after, both)]
    np.testing.assert_allclose(weights, [4.0, 20.0, 10.0], rtol=EXACT)


def each_query_by_its_own_traffic(real):
    """Two queries, the same policies, other mixes: each averages over its own."""
    expected = np.array([[100, 300], [300, 100]]) @ [0.25, 0.05]
    relevance = np.array([0.8, 0.3])
    clicked = expected * relevance
    places = places_of(
        np.zeros(2, np.int64), np.arange(2), np.ones(2, np.int64), clicked, expected
    )
    sums = real.aware.item_sums(
        places, np.full((1, 1, 2), 400.0), position_curve([1.0, 0.5])
    )
    found = real.aware.estimates(sums)
    np.testing.assert_allclose(found.values, relevance, rtol=EXACT)
    np.testing.assert_allclose(found.weights, [10.0, 5.0], rtol=EXACT)
    np.testing.assert_allclose(found.support, expected, rtol=EXACT)


def clipped_in_training(real):
    """Averages are raised to 10 / sqrt(N), never beyond 1; beta is not clipped."""
    curve = BiasCurve(np.array([0.5]), np.array([0.1]))
    sums = one_item(real, [40.0], [30], curve=curve)
    sums = sums._replace(impressions=np.array([[400.0]]))
    for n, least in ((400, 0.5), (40_000, 0.05), (10_000_000, 0.05), (25, 1.0)):
        value = real.aware.training_values(sums, n)[0]
        by_hand = (30 - 4.0) / 400 / max(least, 20.0 / 400)
        assert abs(value - by_hand) < EXACT


def clicks_of_unlike_weights(real):
    """Two of weight 1 and one of weight 4: six, squared, over eighteen."""
    found = real.aware.effective_clicks(
        np.array([2.0, 1.0, 0.0]), np.array([1.0, 4.0, np.inf])
    )
    assert abs(found - 36 / 18) < EXACT


def the_jackknife_of_a_mean(real):
    """Where groups are alike in exposure the interval is that of their mean."""
    clicks = np.array([30, 50, 40, 80])
    curve = BiasCurve(np.array([0.5]), np.array([0.1]))
    sums = one_item(real, [100.0] * 4, clicks, groups=range(4), curve=curve)
    found = real.intervals.jackknife_intervals(sums, confidence=0.9)
    each = (clicks - 10.0) / 50.0
    half = student.ppf(0.95, 3) * each.std(ddof=1) / 2
    assert abs(found.low[0] - (each.mean() - half)) < EXACT
    assert abs(found.high[0] - (each.mean() + half)) < EXACT
    assert found.degrees[0] == 3


def the_jackknife_of_a_ratio(real):
    """Groups of unlike exposure at unlike ranks, each left out by hand."""
    curve = BiasCurve(np.array([0.5, 0.4]), np.array([0.2, 0.1]))
    groups, ranks = np.arange(3), np.array([1, 2, 1])
    expected, clicks = np.array([100.0, 300.0, 40.0]), np.array([60, 90, 40])
    places = places_of(groups, groups * 0, ranks, clicks, expected)
    sums = real.aware.item_sums(places, np.full((3, 1, 1), 400.0), curve)
    found = real.intervals.jackknife_intervals(sums)
    alpha, beta = np.array([50.0, 120.0, 20.0]), np.array([20.0, 30.0, 8.0])
    without = [
        (clicks - beta)[rest].sum() / alpha[rest].sum()
        for rest in ([1, 2], [0, 2], [0, 1])
    ]
    half = student.ppf(0.975, 2) * np.std(without) * math.sqrt(2)
    value = (190 - 58) / 190
    assert abs(found.low[0] - (value - half)) < EXACT
    assert abs(found.high[0] - (value + half)) < EXACT


def groups_without_the_item(real):
    """Groups that could not show it say nothing of how groups differ."""
    clicks, groups = [3, 5, 4, 8], [0, 1, 2, 5]
    ours = one_item(real, [10.0] * 4, clicks, groups=groups)
    theirs = one_item(real, [10.0] * 4, clicks, groups=range(4))
    found = [real.intervals.jackknife_intervals(sums) for sums in (ours, theirs)]
    np.testing.assert_allclose(found[0].low, found[1].low, rtol=EXACT)
    np.testing.assert_allclose(found[0].high, found[1].high, rtol=EXACT)


LAWS = (
    trust_and_position,
    position_alone,
    whole_lists,
    ranks_beyond_the_curve,
    several_candidate_sets,
    values_in_ratios,
    chosen_from_these_clicks,
    chosen_from_other_groups,
    the_worked_example,
    each_query_by_its_own_traffic,
    clipped_in_training,
    clicks_of_unlike_weights,
    the_jackknife_of_a_mean,
    the_jackknife_of_a_ratio,
    groups_without_the_item,
)

MUTANTS = (
    ("aware", "clicked - beta, alpha, out", "clicked, alpha, out"),
    ("aware", "clicked - beta, alpha, out", "clicked + beta, alpha, out"),
    ("aware", "curve.alpha[rows] * expected", "curve.alpha[0] * expected"),
    ("aware", "curve.alpha[rows] * expected", "expected"),
    ("aware", "curve.beta[rows] * expected", "curve.beta[0] * expected"),
    ("aware", "curve.beta[rows] * expected", "curve.beta[rows]"),
    ("aware", "log.expected[is_known]", "np.ceil(log.expected[is_known])"),
    ("aware", "log.expected[is_known]", "np.minimum(log.expected[is_known], 1)"),
    ("aware", "ranks[is_known] - 1", "ranks[is_known] - 2"),
    ("aware", "ranks <= curve.n_ranks", "ranks < curve.n_ranks"),
    ("aware", "groups[is_known] * n_items +", "groups[is_known] * 0 +"),
    ("aware", "+ log.items[is_known]", "+ 0 * log.items[is_known]"),
    ("aware", "divide(impressions, alpha", "divide(impressions.sum(), alpha"),
    ("aware", "divide(impressions, alpha", "divide(1.0, alpha"),
    ("aware", "CLIP / np.sqrt(n_impressions), 1.0", "CLIP / n_impressions, 1.0"),
    ("aware", "CLIP / np.sqrt(n_impressions), 1.0", "CLIP, 1.0"),
    ("aware", "np.sqrt(n_impressions), 1.0", "np.sqrt(n_impressions), 2.0"),
    ("aware", "np.maximum(alpha / n_there", "np.minimum(alpha / n_there"),
    ("aware", "(clicked - beta) / n_there", "clicked / n_there"),
    ("aware", "(counts * factors**2)", "(counts * factors)"),
    ("aware", "float((counts * factors).sum()) ** 2", "float(counts.sum()) ** 2"),
    ("intervals", "(n_groups - 1) / n_divided", "n_divided"),
    ("intervals", "(n_groups - 1) / n_divided", "1 / n_divided"),
    ("intervals", "(known - mean) ** 2", "known ** 2"),
    ("intervals", "degrees = np.maximum(n_groups - 1.0", "degrees = (n_groups + 0.0"),
    ("intervals", "1.0), 0.5 + 0.5 * confidence", "1.0), confidence"),
    ("intervals", "np.where(has_item, (known", "np.where(True, (known"),
    ("intervals", "clicked - beta, alpha", "clicked, alpha"),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_law_holds(law):
    """Of the code as it is."""
    law(REAL)


@pytest.mark.parametrize(("room", "old", "new"), MUTANTS)
def test_a_changed_term_breaks_a_law(room, old, new):
    """One term is another one, and some law notices."""
    real = SimpleNamespace(**vars(REAL) | {room: mutant(vars(REAL)[room], old, new)})
    assert any(breaks(law, real) for law in LAWS), "no law noticed"


def mutant(module, old, new):
    """A module with one place of its source changed."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{old!r} must stand once in {module.__name__}"
    changed = ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant.py", "exec"), vars(changed))  # noqa: S102
    return changed


def breaks(law, real):
    """Whether a law does not hold."""
    try:
        with np.errstate(all="ignore"):
            law(real)
    except (AssertionError, ValueError, IndexError):
        return True
    return False
