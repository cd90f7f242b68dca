"""Verdicts on canaries: from single lists, one by one, and by hand."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from models.evaluation.balance import log_evidence
from models.evaluation.canary import (
    CANARY,
    CLICKS,
    IMBALANCE_ALPHA,
    LISTS,
    SERVED,
    groups_expected,
    groups_filled,
    judge,
    scores_of,
)
from models.evaluation.canary_judgement import WITHOUT_CLICK, Rules, Verdict
from models.evaluation.session_sequence import LEAST_GROUPS, largest_score
from models.evaluation.sums import N_GROUPS

RULES = Rules(
    (0.1, 0.4), planned=2_000, least=100, margin=0.2, guardrails=(WITHOUT_CLICK, "buy")
)


def lists_of(
    rng: np.random.Generator, n_sessions: int = 3_000, effect: float = 1.0
) -> list[tuple[int, int, int, list[int]]]:
    """Stage, group, arm and counts of each list; the arm of a session follows shares.

    Sessions of 1 to 6 lists; those in the middle see both stages.
    """
    found = []
    for number in range(n_sessions):
        group, drawn = int(rng.integers(N_GROUPS)), rng.random()
        rate = rng.gamma(4.0, 0.25)
        for i in range(rng.integers(1, 7)):
            stage = int(number + 100 * i > n_sessions // 2)
            arm = int(drawn < RULES.shares[stage])
            clicks = int(rng.poisson(rate * (effect if arm else 1.0)))
            found.append((stage, group, arm, [clicks, int(clicks == 0), clicks // 2]))
    return found


def sums_of(lists: list[tuple[int, int, int, list[int]]]) -> np.ndarray:
    """As `judge` takes them."""
    sums = np.zeros((2, N_GROUPS, 2, 5), np.int64)
    for stage, group, arm, counts in lists:
        sums[stage, group, arm] += [1, *counts, 0]
    return sums[..., :-1]


def scored_one_by_one(
    lists: list[tuple[int, int, int, list[int]]], which: int
) -> tuple[np.ndarray, np.ndarray]:
    """T and N by their definition."""
    mean = sum(counts[which] for *_, counts in lists) / len(lists)
    totals, sizes = np.zeros(N_GROUPS), np.zeros(N_GROUPS)
    for stage, group, arm, counts in lists:
        share = RULES.shares[stage]
        totals[group] += (counts[which] - mean) * (arm - share)
        sizes[group] += share * (1.0 - share)
    return totals, sizes


@pytest.mark.parametrize("effect", [1.0, 0.7])
def test_differences_are_those_of_single_lists(effect: float) -> None:
    """T, N, means and both ends, each end being a mean of just the largest score."""
    lists = lists_of(np.random.default_rng(0), effect=effect)
    sums = sums_of(lists)
    judged = judge(sums, RULES)
    # A list of the canary comes with 1 - p of N, over stages alike; alpha is of three.
    planned = 2_000 * (0.9 + 0.6) / 2
    for which, found in enumerate((judged.clicks, *judged.guardrails)):
        totals, sizes = scored_one_by_one(lists, which)
        scores = scores_of(sums, np.array(RULES.shares), CLICKS + which)
        np.testing.assert_allclose(scores[0], totals, atol=1e-9)
        np.testing.assert_allclose(scores[1], sizes, atol=1e-9)
        assert found.mean == pytest.approx(totals.sum() / sizes.sum())
        largest = largest_score(float(sizes.sum()) / planned, 0.05 / 3)
        for end in (found.low, found.high):
            around = totals - end * sizes
            score = around.sum() ** 2 / (around @ around)
            assert score == pytest.approx(largest)
        assert found.low < found.mean < found.high


def test_counts_are_those_of_single_lists() -> None:
    """Lists by arm, those that were meant, groups, and what is still needed."""
    lists = lists_of(np.random.default_rng(1))
    judged = judge(sums_of(lists), RULES)
    canary = sum(arm for _, _, arm, _ in lists)
    by_group = np.bincount([g for _, g, arm, _ in lists if arm], minlength=N_GROUPS)

    assert (judged.canary_lists, judged.served_lists) == (canary, len(lists) - canary)
    assert judged.meant == pytest.approx(sum(RULES.shares[one[0]] for one in lists))
    assert judged.effective_groups == pytest.approx(
        by_group.sum() ** 2 / (by_group**2).sum()
    )
    assert judged.of_planned == canary / 2_000
    assert judged.is_balanced
    first = judge(sums_of([one for one in lists if one[0] == 0][:500])[:1], RULES)
    assert first.needed == 100 - first.canary_lists > 0
    # Of the present stage alone.
    begun = [one for one in lists if one[0] == 1][:100]
    earlier = [one for one in lists if one[0] == 0]
    second = judge(sums_of(earlier + begun), RULES)
    assert second.needed == 100 - sum(arm for _, _, arm, _ in begun) > 0
    assert second.canary_lists > 200
    assert judged.needed == 0
    assert (first.stage, judged.stage) == (1, 2)


def test_with_one_stage_it_is_the_difference_of_means() -> None:
    """Times how evenly lists lie: T = n_1 n_0 / n (mean_1 - mean_0), to the last."""
    sums = sums_of(lists_of(np.random.default_rng(2), effect=0.5))[:1]
    (n_0, n_1), (y_0, y_1) = (
        sums[0, ..., column].sum(axis=0) for column in (LISTS, CLICKS)
    )
    totals, _ = scores_of(sums, np.array([0.1]), CLICKS)
    expected = n_1 * n_0 / (n_1 + n_0) * (y_1 / n_1 - y_0 / n_0)
    assert totals.sum() == pytest.approx(expected)


def test_groups_may_have_any_order() -> None:
    """The verdict is the same, to the last bits."""
    rng = np.random.default_rng(3)
    sums = sums_of(lists_of(rng))
    one, other = judge(sums, RULES), judge(sums[:, rng.permutation(N_GROUPS)], RULES)
    assert one.verdict == other.verdict
    assert (other.clicks.low, other.clicks.high) == pytest.approx(
        (one.clicks.low, one.clicks.high)
    )


def test_stages_of_one_share_may_be_merged() -> None:
    """T and N are those of both."""
    sums = sums_of(lists_of(np.random.default_rng(4)))
    apart = scores_of(sums, np.array([0.3, 0.3]), CLICKS)
    merged = scores_of(sums.sum(axis=0, keepdims=True), np.array([0.3]), CLICKS)
    np.testing.assert_allclose(apart, merged, atol=1e-9)


def test_arms_that_are_swapped_differ_by_the_opposite() -> None:
    """With shares of the other arm, N stays."""
    sums = sums_of(lists_of(np.random.default_rng(5)))
    shares = np.array(RULES.shares)
    totals, sizes = scores_of(sums, shares, CLICKS)
    swapped, same = scores_of(sums[:, :, ::-1], 1.0 - shares, CLICKS)
    np.testing.assert_allclose(swapped, -totals, atol=1e-9)
    np.testing.assert_allclose(same, sizes)


def test_clicks_that_all_lists_have_do_not_count() -> None:
    """One click more on each list of both arms moves nothing, also of unlike stages."""
    sums = sums_of(lists_of(np.random.default_rng(6)))
    more = sums.copy()
    more[..., CLICKS] += 3 * more[..., LISTS]
    shares = np.array(RULES.shares)
    np.testing.assert_allclose(
        scores_of(more, shares, CLICKS), scores_of(sums, shares, CLICKS), atol=1e-8
    )


def even(n_served: int, n_canary: int, served: float, canary: float) -> np.ndarray:
    """One stage; clicks per list around these means, in turns by group."""
    sums = np.zeros((1, N_GROUPS, 2, 2), np.int64)
    sums[0, :, :, LISTS] = n_served, n_canary
    turns = np.arange(N_GROUPS) % 3 - 1
    sums[0, :, SERVED, CLICKS] = np.rint(n_served * served) + turns
    sums[0, :, CANARY, CLICKS] = np.rint(n_canary * canary) + np.roll(turns, 1)
    return sums


ONE = Rules((0.1,), planned=1_000, least=500, margin=0.1)


@pytest.mark.parametrize(
    ("sums", "rules", "verdict"),
    [
        (even(90, 10, 1.0, 0.5), ONE, Verdict.WORSE),
        (even(90, 10, 1.0, 1.0), ONE, Verdict.RISE),
        (even(90, 10, 1.0, 1.5), ONE, Verdict.RISE),
        # Worse, but by less than the margin: both hold, and it is withdrawn.
        (even(90, 10, 1.0, 0.9), dataclasses.replace(ONE, margin=0.5), Verdict.WORSE),
        # It may rise but for lists of its stage, beyond what was planned too.
        (even(90, 10, 1.0, 1.0), dataclasses.replace(ONE, least=1_001), Verdict.WAIT),
        # As good, and a margin of nothing is never shown.
        (even(90, 10, 1.0, 1.0), dataclasses.replace(ONE, margin=0.0), "undecided"),
        (
            even(90, 10, 1.0, 1.0),
            dataclasses.replace(ONE, margin=0.0, planned=1_001),
            Verdict.WAIT,
        ),
        (even(60, 40, 1.0, 1.0), ONE, Verdict.IMBALANCE),
        (even(60, 40, 1.0, 0.5), ONE, Verdict.WORSE),
        (even(90, 0, 1.0, 0.0), ONE, Verdict.IMBALANCE),
        (even(9, 0, 1.0, 0.0)[:, :30], ONE, Verdict.WAIT),
        (np.zeros((1, N_GROUPS, 2, 2), np.int64), ONE, Verdict.WAIT),
    ],
)
def test_the_verdict_is_the_first_that_holds(
    sums: np.ndarray, rules: Rules, verdict: Verdict
) -> None:
    """Worse before imbalance, that before a rise, that before the end."""
    assert judge(sums, rules).verdict == verdict


@pytest.mark.parametrize(
    ("guardrail", "canary", "is_worse"),
    [
        (WITHOUT_CLICK, 5, True),
        (WITHOUT_CLICK, 1, False),
        ("buy", 1, True),
        ("buy", 5, False),
    ],
)
def test_a_guardrail_withdraws_where_its_wrong_side_is_sure(
    guardrail: str, canary: int, is_worse: bool
) -> None:
    """More lists without a click are worse, and fewer of the actions of a class."""
    clicks = even(90, 10, 1.0, 1.0)
    rail = even(90, 10, 0.3, canary / 10)[..., CLICKS:]
    sums = np.concatenate([clicks, rail], axis=3)
    judged = judge(sums, dataclasses.replace(ONE, guardrails=(guardrail,)))
    assert judged.guardrails[0].is_worse is is_worse
    assert judged.verdict is (Verdict.WORSE if is_worse else Verdict.RISE)
    assert ("worse" in judged.words) is is_worse
    assert (guardrail in judged.words) is is_worse


def test_nothing_is_said_of_a_version_that_few_sessions_saw() -> None:
    """From the 36th group on, where all are alike; lists of one session are one."""
    rng = np.random.default_rng(7)
    for n_groups, is_told in ((35, False), (36, True)):
        sums = even(90, 10, 1.0, 0.2)
        sums[0, n_groups:, CANARY] = 0
        judged = judge(sums, ONE)
        assert judged.effective_groups == pytest.approx(n_groups)
        assert math.isfinite(judged.clicks.low) is is_told
    sums = even(90, 0, 1.0, 0.0)
    sums[0, 0, CANARY] = 1_000, rng.poisson(1_000.0)
    assert groups_filled(sums) == 1.0
    assert not math.isfinite(judge(sums, ONE).clicks.high)


def test_a_plain_difference_is_sure_of_a_loss_that_nobody_saw() -> None:
    """Groups of y (Z / p - (1 - Z) / (1 - p)) are all below 0 before the first list.

    Around the mean of all lists they lie on both sides, and add up to 0.
    """
    sums = even(9, 0, 1.0, 0.0)
    sums[..., CANARY, :] = 0
    share = 0.1
    plain = sums[0, :, CANARY, CLICKS] / share - sums[0, :, SERVED, CLICKS] / 0.9
    assert (plain < 0.0).all()
    assert plain.sum() ** 2 / (plain @ plain) > 3 * largest_score(0.01, 0.05)
    totals, _ = scores_of(sums, np.array([share]), CLICKS)
    assert totals.sum() == pytest.approx(0.0)
    # Around 0 it is below 0 everywhere again.
    assert (scores_of(sums, np.array([share]), CLICKS, around=0.0)[0] < 0.0).all()
    judged = judge(sums, ONE)
    assert (judged.clicks.low, judged.clicks.high) == (-math.inf, math.inf)
    assert math.isnan(judged.clicks.mean)


def dealt(rng: np.random.Generator, n: int, each: int, share: float) -> np.ndarray:
    """Lists of `n` sessions of `each`, of which the canary gets this share."""
    sums = np.zeros((1, N_GROUPS, 2, 2), np.int64)
    arms = (rng.random(n) < share).astype(int)
    np.add.at(sums[0, ..., LISTS], (rng.integers(N_GROUPS, size=n), arms), each)
    return sums


def test_long_sessions_are_no_imbalance_and_a_wrong_share_is_one() -> None:
    """A test of lists alone takes sessions of twenty lists for a fault."""
    rng = np.random.default_rng(8)
    rules = Rules((0.1,), planned=2_000, least=500)
    told = plain = 0
    for _ in range(200):
        sums = dealt(rng, 2_000, 20, 0.1)
        told += not judge(sums, rules).is_balanced
        counts = sums[0, ..., LISTS].sum(axis=0)
        plain += log_evidence(counts, np.array([0.9, 0.1])) > -math.log(IMBALANCE_ALPHA)
    assert told == 0
    assert plain > 20
    found = judge(dealt(rng, 2_000, 20, 0.15), rules)
    assert found.verdict is Verdict.IMBALANCE
    assert "where 4,000 were meant, of 40,000" in found.words


@pytest.mark.parametrize("each", [1, 20])
def test_groups_are_expected_as_they_come(each: int) -> None:
    """On average over canaries that are dealt as meant."""
    rng = np.random.default_rng(9)
    found = [dealt(rng, 1_000, each, 0.1) for _ in range(200)]
    came = np.mean([groups_filled(sums) for sums in found])
    expected = np.mean([groups_expected(sums, np.array([0.1])) for sums in found])
    assert came == pytest.approx(expected, rel=0.05)
    assert came == pytest.approx(1.0 / (0.01 + 0.01), rel=0.05)


def test_a_canary_that_nobody_is_shown_is_found_once_it_should_have_been() -> None:
    """Not before: that none of few sessions is in it happens."""
    rng = np.random.default_rng(10)
    rules = Rules((0.05,), planned=2_000, least=500)
    for n, is_found in ((500, False), (3_000, True)):
        sums = dealt(rng, n, 5, 0.0)
        expected = groups_expected(sums, np.array([0.05]))
        assert (expected > LEAST_GROUPS) is is_found
        assert (judge(sums, rules).verdict is Verdict.IMBALANCE) is is_found


@pytest.mark.parametrize(
    ("sums", "rules", "words"),
    [
        (even(90, 10, 1.0, 0.5), ONE, "worse after 1,000 lists of the canary: clicks "),
        (even(90, 10, 1.0, 1.0), ONE, "it may be served to all after 1,000 lists"),
        (
            even(90, 10, 1.0, 1.0),
            dataclasses.replace(ONE, shares=(0.1, 0.2)),
            "its share may rise after 1,000 lists",
        ),
        (
            even(90, 10, 1.0, 1.0),
            dataclasses.replace(ONE, least=1_200),
            "200 more lists are needed in this stage; after 1,000 lists",
        ),
        (
            even(90, 10, 1.0, 1.0),
            dataclasses.replace(ONE, margin=0.0),
            "undecided after 1,000 lists of the canary, 1,000 were planned",
        ),
        (
            even(90, 10, 1.0, 1.0),
            dataclasses.replace(ONE, margin=0.01, planned=9_000),
            "a loss of more than 0.01 is not excluded; after",
        ),
        (
            even(90, 10, 1.0, 1.0)[:, :20],
            ONE,
            "too few sessions, or a few with most of the lists: they fill 20.0 of 100 "
            "groups evenly, and more than 35 are needed, some 54 sessions; after",
        ),
        (
            np.where([True, False], even(90, 10, 1.0, 1.0), 0),
            dataclasses.replace(ONE, planned=9_000),
            "clicks lie in too few groups of sessions; after 1,000 lists",
        ),
        (
            np.zeros((1, N_GROUPS, 2, 2), np.int64),
            ONE,
            "too few sessions, or a few with most of the lists: they fill 0.0 of 100 "
            "groups evenly, and more than 35 are needed, some 54 sessions; after 0 "
            "lists of the canary nothing can be said of clicks yet",
        ),
    ],
)
def test_words_say_what_was_found(sums: np.ndarray, rules: Rules, words: str) -> None:
    """And what is waited for."""
    assert judge(sums, rules).words.startswith(words)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shares": ()}, "shares must rise"),
        ({"shares": (0.0, 0.5)}, "shares must rise"),
        ({"shares": (0.5, 0.5)}, "shares must rise"),
        ({"shares": (0.5, 1.0)}, "shares must rise"),
        ({"planned": 0}, "planned and least"),
        ({"least": 0}, "planned and least"),
        ({"alpha": 1.0}, "alpha must"),
        ({"alpha": 0.0}, "alpha must"),
        ({"margin": -0.1}, "margin must"),
        ({"margin": math.nan}, "margin must"),
        ({"guardrails": ("buy", "buy")}, "guardrails must"),
    ],
)
def test_rules_out_of_range_are_refused(wrong: dict[str, Any], said: str) -> None:
    """With what came."""
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(ONE, **wrong)


@pytest.mark.parametrize(
    "shape", [(2, 100, 2, 2), (1, 100, 2, 3), (100, 2, 2), (0, 100, 2, 2)]
)
def test_sums_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    """The shape that is needed is said."""
    with pytest.raises(ValueError, match=r"\[1 to 1, n_groups, 2, 2\]"):
        judge(np.zeros(shape, np.int64), ONE)


def test_most_sessions_may_be_in_the_canary() -> None:
    """Then the old version's lists are those that are waited for."""
    swapped = dataclasses.replace(ONE, shares=(0.9,))
    for n_groups in (35, 36):
        sums = even(90, 10, 1.0, 0.2)
        sums[0, n_groups:, CANARY] = 0
        mirrored = sums[:, :, ::-1]
        one, other = judge(sums, ONE), judge(mirrored, swapped)
        assert one.effective_groups == other.effective_groups
        assert math.isfinite(one.clicks.low) == math.isfinite(other.clicks.low)
        assert other.clicks.mean == pytest.approx(-one.clicks.mean)
        expected = groups_expected(sums, np.array([0.1]))
        assert groups_expected(mirrored, np.array([0.9])) == pytest.approx(expected)
