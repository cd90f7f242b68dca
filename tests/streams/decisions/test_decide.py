"""Decisions from what the fold counted: exact, without a leak, and right."""

import numpy as np
import pytest

from models.decisions.click_sums import differences_of
from models.decisions.meta_policy import GENERAL, LOGGING, SPECIALISED, Rule
from models.decisions.over_all_queries import Lack, OverAll
from models.decisions.tied_orders import expected_weights, tied_orders
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import Splits
from rankstream.wire.events import DETERMINISTIC, PLACKETT_LUCE, TAIL_SHUFFLE
from streams.decisions.decide import Judgements, decide, specialised_orders
from streams.decisions.declared_policies import DeclaredPolicy, SureRanking
from streams.decisions.evidence import evidence_of
from tests.streams.decisions.raw_sums import CURVE, TRUST, raw_sums
from tests.streams.decisions.shown_lists import GROUPS, ITEMS, Shown, counted

N = len(ITEMS)
SPLITS = Splits(GROUPS, (0, 1, 2), (3,), (4, 5, 6, 7), 0.0)
WEIGHTS = np.array([1.0, 0.63, 0.5, 0.4])
RATES = np.array([0.9, 0.6, 0.4, 0.3, 0.2])


def drawn_lists(seed, n=240, n_queries=3):
    """Each query by policies of its own, several in lists and one by scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_queries, N))
    orders = [rng.permutation(N).tolist() for _ in range(n_queries)]
    found = []
    for _ in range(n):
        query = int(rng.integers(n_queries))
        policy = int(rng.choice((DETERMINISTIC, TAIL_SHUFFLE, PLACKETT_LUCE)))
        order, own = orders[query], ()
        if policy == TAIL_SHUFFLE:
            order = [*order[:2], int(rng.permutation(order[2:])[0])]
        if policy == PLACKETT_LUCE:
            own = scores[query].tolist()
            order = np.argsort(-(scores[query] + rng.gumbel(size=N)))[:4].tolist()
        ranks = np.flatnonzero(rng.random(len(order)) < 0.4) + 1
        group = int(rng.integers(GROUPS))
        clicked = frozenset(ranks.tolist())
        found.append(Shown(query, group, order, clicked, policy, own))
    return found


def evidence_from(lists, curve=CURVE):
    """As a role reads it."""
    return evidence_of(counted(lists), SPLITS, curve, WEIGHTS)


def drawn_policy(rng, evidence, groups=frozenset({0, 1})):
    """Orders drawn for all sets."""
    starts = evidence.sets.starts
    orders = tied_orders(rng.normal(size=starts[-1]), starts)
    weights = expected_weights(orders, evidence.weights)
    return DeclaredPolicy(weights, groups, SureRanking(orders, weights))


def surely(sums, starts):
    """Whether a mean is above 0 by three standard errors; enough for these cases."""
    spans = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    total, square = (
        np.array([of_rows[i:j].sum() for i, j in spans])
        for of_rows in (sums.totals, sums.squares)
    )
    return total > 3.0 * np.sqrt(square)


def over_all(is_better):
    """What is said of all queries together; nothing of an interval."""
    lacking = () if is_better else (Lack.BOUND,)
    return OverAll(lacking, -np.inf, np.inf)


def surely_over_all(sums):
    """The same standard errors, of all queries together."""
    return over_all(surely(sums, np.array([0, len(sums.groups)]))[0])


SURELY = Judgements(surely, surely_over_all)


@pytest.mark.parametrize("curve", [CURVE, TRUST], ids=["position", "trust"])
@pytest.mark.parametrize("seed", range(3))
def test_what_the_fold_counts_is_what_raw_lists_add_up_to(seed, curve):
    """Both forms, of all queries, to the group."""
    lists = drawn_lists(seed)
    evidence = evidence_from(lists, curve)
    assert not evidence.refused
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(len(evidence.sets.queries), N))
    found = differences_of(
        evidence.policies,
        evidence.selection,
        evidence.sets.starts,
        first.ravel(),
        np.zeros(first.size),
    )
    for number, query in enumerate(evidence.sets.queries):
        own = [one for one in lists if f"q{one.query}" == query and one.group >= 4]
        raw, unsupported = raw_sums(
            [one.closed() for one in own], N, curve, first[number].tolist()
        )
        rows = slice(*found.starts[number : number + 2].tolist())
        table = np.array([each[rows] for each in found.sums]).T
        expected = [(key[0], *sums) for key, sums in raw.items()]
        # Rows of a group are told apart by what they are of, not by their order.
        for told, wanted in zip(
            sorted(np.round(table, 6).tolist()),
            sorted(np.round(expected, 6).tolist()),
            strict=True,
        ):
            assert told == pytest.approx(wanted, abs=2e-6)
        assert found.unsupported[number] == unsupported
    assert found.unsupported.sum() > 0
    assert found.interactions().sum() > 0


@pytest.mark.parametrize("policy", [DETERMINISTIC, TAIL_SHUFFLE])
def test_lists_that_a_scope_had_no_room_for_are_evidence_if_of_one_policy(policy):
    """The fold adds their placements up, which tell that there was one."""
    lists = [one for one in drawn_lists(7) if one.policy == policy]
    roomy, tight = (
        evidence_of(counted(lists, lists=n), SPLITS, TRUST, WEIGHTS) for n in (64, 1)
    )
    shown = {(one.query, *one.order) for one in lists}
    assert (len(shown) > 3) == (policy == TAIL_SHUFFLE)
    for own, other in zip(
        (*roomy.policies, *roomy.training, *roomy.selection),
        (*tight.policies, *tight.training, *tight.selection),
        strict=True,
    ):
        np.testing.assert_array_equal(own, other)
    assert not tight.refused


def flips(lists, groups):
    """The lists with one click of these groups changed, for each of them."""
    for number, one in enumerate(lists):
        if one.group in groups:
            for rank in range(1, len(one.order) + 1):
                yield [*lists[:number], one.flipped(rank), *lists[number + 1 :]]


def test_clicks_of_selection_groups_change_no_policy():
    """Each of them, flipped by itself, leaves every order and block as it was."""
    lists = drawn_lists(1, n=48)
    before = specialised_orders(evidence_from(lists))
    n_flipped = 0
    for flipped in flips(lists, SPLITS.selection):
        after = specialised_orders(evidence_from(flipped))
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)
        n_flipped += 1
    assert n_flipped > 60


def test_clicks_of_training_groups_change_no_evidence():
    """Sums of policies that are fixed have the same bits."""
    lists = drawn_lists(2, n=48)
    evidence = evidence_from(lists)
    policies = [drawn_policy(np.random.default_rng(seed), evidence) for seed in (1, 2)]

    def sums(own):
        first, second = (policy.weights for policy in policies)
        starts = own.sets.starts
        return differences_of(own.policies, own.selection, starts, first, second)

    before = sums(evidence)
    n_changed = 0
    for flipped in flips(lists, SPLITS.training):
        own = evidence_from(flipped)
        after = sums(own)
        for one, other in zip(before.sums, after.sums, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(before.starts, after.starts)
        n_changed += not np.array_equal(
            specialised_orders(own).items, specialised_orders(evidence).items
        )
    assert n_changed > 5


def users_lists(seed, n, relevance, order):
    """One query, always the same list."""
    rng = np.random.default_rng(seed)
    looked = CURVE.alpha[: len(order)]
    for _ in range(n):
        clicked = np.flatnonzero(rng.random(len(order)) < looked * relevance[order]) + 1
        group = int(rng.integers(GROUPS))
        yield Shown(0, group, order, frozenset(clicked.tolist()), DETERMINISTIC)


def test_a_better_order_is_found_and_served():
    """The best items stood last; what no list could show comes behind all others."""
    relevance = np.array([0.1, 0.2, 0.05, 0.9, 0.6])
    lists = [*users_lists(3, 4_000, relevance, [0, 2, 1, 3])]
    evidence = evidence_from(lists)
    shown = np.array([1.0, 0.5, 0.63, 0.4, 0.0])
    logging = DeclaredPolicy(shown, frozenset())
    found = decide(evidence, logging, logging, SURELY, Rule.CLOSED)
    assert found.chosen.tolist() == [SPECIALISED]
    orders = found.orders[SPECIALISED]
    assert orders.of_set(0) == ([3, 1, 0, 2, 4], [1] * 5)
    own = expected_weights(orders, WEIGHTS)
    truth = (own - shown) @ relevance
    assert found.over_logging.differences.means()[0] == pytest.approx(truth, abs=0.1)
    assert found.over_all.lacking
    as_logged = decide(evidence, logging, DeclaredPolicy(None), SURELY, Rule.CLOSED)
    for one, other in zip(
        as_logged.over_logging.differences.sums,
        found.over_logging.differences.sums,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_without_a_click_nothing_is_better():
    """All that was shown is tied, and the lists say nothing."""
    lists = [Shown(0, group, [0, 2, 1, 3], frozenset(), 2) for group in range(GROUPS)]
    evidence = evidence_from(lists)
    policy = drawn_policy(np.random.default_rng(0), evidence)
    found = decide(evidence, policy, DeclaredPolicy(None), SURELY, Rule.CLOSED)
    assert found.orders[SPECIALISED].of_set(0) == ([0, 1, 2, 3, 4], [4, 1])
    assert found.chosen.tolist() == [LOGGING]


def test_one_click_puts_its_item_first_and_decides_nothing():
    """The specialised policy believes it; the bound does not."""
    lists = [Shown(0, group, [0, 2, 1, 3], frozenset(), 2) for group in range(GROUPS)]
    lists.append(Shown(0, 0, [0, 2, 1, 3], frozenset({4}), 2))
    evidence = evidence_from(lists)
    policy = drawn_policy(np.random.default_rng(0), evidence)
    found = decide(evidence, policy, DeclaredPolicy(None), SURELY, Rule.CLOSED)
    assert found.orders[SPECIALISED].of_set(0) == ([3, 0, 1, 2, 4], [1, 3, 1])
    assert found.chosen.tolist() == [LOGGING]


def judging(*answers, is_general_better):
    """Answers given one after another, whatever the sums say."""
    given = iter(answers)
    return Judgements(lambda *_: next(given), lambda _: over_all(is_general_better))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(Rule.KEPT, LOGGING), (Rule.CLOSED, GENERAL), (Rule.PRINTED, LOGGING)],
)
def test_the_rule_is_the_one_that_was_asked_for(rule, expected):
    """Better than the general policy but not than the logging one, as that one is."""
    evidence = evidence_from(drawn_lists(4))
    rng = np.random.default_rng(0)
    policy, logging = (drawn_policy(rng, evidence) for _ in range(2))
    n = len(evidence.sets.queries)
    answers = np.ones(n, bool), np.zeros(n, bool), np.ones(n, bool)
    by = judging(*answers, is_general_better=True)
    found = decide(evidence, policy, logging, by, rule)
    assert found.chosen.tolist() == [expected] * n
    assert found.is_decided().tolist() == [expected == LOGGING] * n
    by = judging(*answers, is_general_better=False)
    found = decide(evidence, policy, logging, by, rule)
    assert found.chosen.tolist() == [LOGGING] * n
    assert not found.is_decided().any()


def test_no_query_is_served_what_is_worse_than_logging_for_sure():
    """Whatever the policies; without the last comparison some are."""
    n_harmed = dict.fromkeys(Rule, 0)
    rng = np.random.default_rng(11)
    evidence = evidence_from(drawn_lists(11, n=2_400))
    always = Judgements(surely, lambda _: over_all(is_better=True))
    starts = evidence.sets.starts
    for _ in range(40):
        general, logging = (drawn_policy(rng, evidence) for _ in range(2))
        for rule in Rule:
            found = decide(evidence, general, logging, always, rule)
            own = expected_weights(found.orders[SPECIALISED], WEIGHTS)
            of_items = np.repeat(found.chosen, np.diff(starts))
            served = np.choose(of_items, [logging.weights, general.weights, own])
            worse = differences_of(
                evidence.policies, evidence.selection, starts, logging.weights, served
            )
            n_harmed[rule] += surely(worse.sums, worse.starts).sum()
    assert n_harmed[Rule.KEPT] == 0
    assert n_harmed[Rule.CLOSED] > 0
    assert n_harmed[Rule.PRINTED] > 0


def test_a_set_that_a_policy_says_nothing_of_is_not_decided_for_itself():
    """There is no evidence that could speak for its own policy."""
    evidence = evidence_from(drawn_lists(4))
    rng = np.random.default_rng(0)
    policy, logging = (drawn_policy(rng, evidence) for _ in range(2))
    weights = policy.weights.copy()
    weights[: evidence.sets.starts[1]] = np.nan
    always = Judgements(
        lambda _, starts: np.ones(len(starts) - 1, bool),
        lambda _: over_all(is_better=True),
    )
    found = decide(evidence, policy._replace(weights=weights), logging, always)
    assert found.is_ranked.tolist() == [False, True, True]
    assert found.chosen.tolist() == [GENERAL, SPECIALISED, SPECIALISED]
    assert found.is_decided().tolist() == [False, True, True]
    assert found.over_general.differences.interactions()[0] == 0
    # Where the logging policy has no order, none can be served, whatever the rule says.
    silent = logging._replace(weights=np.where(np.isnan(weights), np.nan, 0.0))
    found = decide(evidence, policy, silent, always, Rule.PRINTED)
    assert found.chosen.tolist() == [LOGGING, SPECIALISED, SPECIALISED]
    assert found.is_decided().tolist() == [False, True, True]


@pytest.mark.parametrize("which", [0, 1])
def test_policies_that_know_the_clicks_that_judge_them_are_refused(which):
    """Or may know them; those that know others may be judged."""
    evidence = evidence_from(drawn_lists(5))
    rng = np.random.default_rng(0)
    good = drawn_policy(rng, evidence, frozenset({0, 3}))
    for groups, said in (
        (frozenset({0, 4}), r"must not come from clicks that it is judged by.*\[4\]"),
        (None, "must tell whose clicks it came from"),
    ):
        policies = [good, good]
        policies[which] = good._replace(groups=groups)
        with pytest.raises(ValueError, match=said):
            decide(evidence, policies[0], policies[1], SURELY)
    decide(evidence, good, good, SURELY)


def test_the_general_policy_is_told():
    """Only the logging one can be what was logged."""
    evidence = evidence_from(drawn_lists(5))
    logging = DeclaredPolicy(None)
    with pytest.raises(ValueError, match="general policy must tell the weights"):
        decide(evidence, logging, logging, SURELY)


@pytest.mark.parametrize("rule", [Rule.KEPT, Rule.PRINTED])
def test_what_single_queries_are_left_to_is_told(rule):
    """What was logged is no order that could be served."""
    evidence = evidence_from(drawn_lists(5))
    policy = drawn_policy(np.random.default_rng(0), evidence)
    with pytest.raises(ValueError, match="logging policy must tell its ranking"):
        decide(evidence, policy, DeclaredPolicy(None), SURELY, rule)


def test_what_was_logged_is_compared_with_the_general_policy():
    """By the closed rule, which serves nothing of it but by default."""
    evidence = evidence_from(drawn_lists(5))
    policy = drawn_policy(np.random.default_rng(0), evidence)
    found = decide(evidence, policy, DeclaredPolicy(None), SURELY, Rule.CLOSED)
    both = differences_of(
        evidence.policies, evidence.selection, evidence.sets.starts, policy.weights
    )
    means = found.logging_over_general.differences.means()
    np.testing.assert_array_equal(means, -both.means())
    assert (means != 0.0).any()


def test_lists_of_one_item_are_a_contextual_bandit():
    """X = (pi_1(a) - pi_2(a)) r / p, with p the chance of the action in its context."""
    rng = np.random.default_rng(6)
    scores = rng.normal(size=N)
    chances = np.exp(scores) / np.exp(scores).sum()
    lists = []
    for _ in range(200):
        action = int(rng.choice(N, p=chances))
        clicked = frozenset({1} if rng.random() < RATES[action] else ())
        group = int(rng.integers(GROUPS))
        lists.append(Shown(0, group, [action], clicked, PLACKETT_LUCE, scores.tolist()))
    curve, weights = BiasCurve(np.ones(1), np.zeros(1)), np.ones(1)
    evidence = evidence_of(counted(lists), SPLITS, curve, weights)
    first, second = rng.dirichlet(np.ones(N), 2)
    found = differences_of(
        evidence.policies, evidence.selection, evidence.sets.starts, first, second
    ).sums
    weighed = (first - second) / chances
    for row, group in enumerate(found.groups.tolist()):
        own = [one for one in lists if one.group == group]
        values = [weighed[one.order[0]] * len(one.clicked) for one in own]
        assert found.interactions[row] == len(own)
        assert found.totals[row] == pytest.approx(sum(values), rel=1e-5)
        assert found.squares[row] == pytest.approx(
            sum(value**2 for value in values), rel=1e-5
        )
    assert found.gains == pytest.approx(np.full(4, weighed.max()), rel=1e-5)
    assert found.losses == pytest.approx(np.full(4, -weighed.min()), rel=1e-5)
