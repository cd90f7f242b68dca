"""Each number of a verdict is what it is said to be, and no other that looks alike."""

import msgspec
import numpy as np
import pytest
from scipy.stats import binom, norm

from models.evaluation.balance import log_evidence
from models.evaluation.conclusion import (
    clustered_half_widths,
    fixed_half_widths,
    log_e_values,
)
from models.evaluation.confidence_sequence import half_widths
from models.evaluation.list_counts import BY_RANKER, TOTALS
from models.evaluation.session_sequence import (
    LEAST_GROUPS,
    largest_score,
    session_intervals,
)
from models.evaluation.sums import PreferenceSums, pairs_of
from models.interleaving.method import Shown
from rankstream.settings import ExperimentSettings
from rankstream.wire.verdicts import HealthCheck, PairVerdict
from streams.comparisons.comparison import Comparison
from streams.comparisons.health import ALPHA, health_of
from streams.comparisons.verdicts import QUESTIONS, verdict_of
from tests.ends import ends_of

PLANNED = 400


def comparison_of(method: str, names: str) -> Comparison:
    """Nothing yet."""
    rankers = dict.fromkeys(names, "")
    settings = ExperimentSettings(
        rankers=rankers, method=method, planned_impressions=PLANNED
    )
    return Comparison("x", settings)


def filled(names: str, share: float, n: int, *, winner: int | None = 0) -> Comparison:
    """Signs; the winner, else each over its next in a circle, has this share."""
    found = comparison_of("team-draft", names)
    size = len(names)
    bounds = 1.0 - np.eye(size)
    better = np.zeros((size, size))
    for one in range(size):
        other = (one + 1) % size
        if winner is None:
            better[one, other], better[other, one] = 1.0, -1.0
        elif one != winner:
            better[winner, one], better[one, winner] = 1.0, -1.0
    for i in range(n):
        sign = 1.0 if (i * share) % 1.0 + share >= 1.0 else -1.0
        assert found.sums["team-draft"].add(sign * better, bounds, i // 7 % 100)
    found.totals[TOTALS.index("impressions")] = n
    return found


def widths_of(pair: PairVerdict, kind: str) -> float:
    """Half of an interval, which has the mean in the middle."""
    low, high = ends_of(pair, kind)
    assert pair.mean == pytest.approx((low + high) / 2)
    return (high - low) / 2


def test_intervals_and_evidence_of_each_pair_are_corrected_for_all() -> None:
    """Each by its own formula, at alpha over three pairs; evidence on its side."""
    found = filled("abc", 0.7, 300)
    sums = found.sums["team-draft"]
    assert isinstance(sums, PreferenceSums)
    pairs = verdict_of(found).methods["team-draft"].pairs
    each = ALPHA / 3
    expected = {
        "came": half_widths(sums, each, 0.5 * PLANNED),
        "fixed": fixed_half_widths(sums, each),
        "sessions": clustered_half_widths(sums, each),
    }
    evidence = log_e_values(sums)
    to_come = session_intervals(sums, each, PLANNED)

    assert np.isfinite(to_come).all(axis=1).tolist() == [True, True, False]
    for pair, ends in zip(pairs, to_come.tolist(), strict=True):
        is_known = np.isfinite(ends).all()
        assert pair.to_come == (tuple(ends) if is_known else (None, None))
    for kind, widths in expected.items():
        assert [widths_of(pair, kind) for pair in pairs] == pytest.approx(widths)
    assert not np.allclose(expected["fixed"], expected["sessions"], rtol=1e-3)
    for pair, n, m in zip(pairs, *pairs_of(3), strict=True):
        assert pair.log_e_a == evidence[n, m]
        assert pair.log_e_b == evidence[m, n]
    assert pairs[0].a == "a"
    assert pairs[0].log_e_a > 1.0 > pairs[0].log_e_b


PREFERENCE = "pairwise-preference"


@pytest.mark.parametrize(
    ("options", "typical"), [({}, 50.0), ({"largest_preference": 8.0}, 1.0)]
)
def test_the_same_computation_plans_the_same_width(
    options: dict[str, float], typical: float
) -> None:
    """Under its own name or a label; what is declared bounded is planned narrower."""
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""},
        options=options,
        also={f"same:{PREFERENCE}": {"largest_weight": 2.0**14}},
        planned_impressions=PLANNED,
    )
    found = Comparison("x", settings)
    for sums in found.sums.values():
        for i in range(200):
            value = 3.0 if i % 3 else -2.0
            assert sums.add(
                value * np.array([[0, 1], [-1, 0]]), 8 * (1 - np.eye(2)), i % 9
            )
    expected = half_widths(found.sums[PREFERENCE], ALPHA, typical * PLANNED)
    for method in verdict_of(found).methods.values():
        assert widths_of(method.pairs[0], "came") == pytest.approx(expected[0])


def test_who_is_ahead_by_the_fixed_interval_only_has_not_won() -> None:
    """Peeking decides nothing; with more of the same the sequence does."""
    early = verdict_of(filled("ab", 0.64, 100)).methods["team-draft"]
    (pair,) = early.pairs

    assert ends_of(pair, "fixed")[0] > 0 > ends_of(pair, "came")[0]
    assert pair.to_come == (None, None)
    assert early.winner is None
    assert verdict_of(filled("ab", 0.64, 2_000)).methods["team-draft"].winner == ("a")


def test_circles_are_decided_by_the_sequence_too() -> None:
    """Each over the next: a circle of means first, a decided one later."""
    early = verdict_of(filled("abc", 0.64, 100, winner=None)).methods["team-draft"]
    late = verdict_of(filled("abc", 0.64, 2_000, winner=None)).methods["team-draft"]

    assert len(early.cycles) == 1
    assert early.decided_cycles == []
    assert [sorted(each) for each in late.decided_cycles] == [["a", "b", "c"]]
    assert late.winner is None


def test_rates_of_a_b_are_one_difference_by_every_interval() -> None:
    """Three arms, most clicks of a list limited, one arm silent on hard queries.

    By enumeration of who is shown: lists of `a` get 2 clicks, of which 1 counts, those
    of `b` none, where `c` has something to show; elsewhere `b` gets all clicks.
    """
    settings = ExperimentSettings(
        rankers=dict.fromkeys("abc", ""), method="ab", options={"most_clicks": 1}
    )
    found = Comparison("x", settings)
    method = found.methods["ab"]
    rankings = np.array([[0, 1], [1, 0], [0, 1]])
    silent = np.array([[0, 1], [1, 0], [-1, -1]])
    for i in range(300):
        teams = np.full(2, i % 3)
        shown = Shown(rankings, rankings[i % 3], teams)
        found._credit("ab", method, shown, np.full(2, i % 3 == 0), i // 3)
        other = Shown(silent, silent[i % 2], np.full(2, i % 2))
        found._credit("ab", method, other, np.full(2, i % 2 == 1), i // 3)
    verdict = verdict_of(found)
    a_over_b, a_over_c, b_over_c = verdict.clicks_per_list

    assert verdict.methods["ab"].impressions == 300
    assert a_over_b.mean == a_over_c.mean == 1.0
    assert b_over_c.mean == 0.0
    for rates in (a_over_b, a_over_c, b_over_c):
        for kind in QUESTIONS:
            low, high = getattr(rates, kind)
            assert low is None or low <= rates.mean <= high
    assert a_over_b.to_come == pytest.approx([1.0, 1.0])
    quantile, n = norm.ppf(1 - ALPHA / 6), 300
    error = np.sqrt((3 - 1) * n / (n - 1) / n)
    assert a_over_b.fixed == pytest.approx([1 - quantile * error, 1 + quantile * error])


def test_sessions_that_share_a_taste_name_no_winner() -> None:
    """Three sessions of 700 for `a`, one for `b`: that tells of those that came."""
    found = comparison_of("team-draft", "ab")
    sums = found.sums["team-draft"]
    for i in range(2_800):
        sign = 1.0 if i % 4 else -1.0
        better = sign * np.array([[0.0, 1.0], [-1.0, 0.0]])
        assert sums.add(better, 1.0 - np.eye(2), i % 4)
    found.totals[TOTALS.index("impressions")] = 2_800
    verdict = verdict_of(found)
    of_method = verdict.methods["team-draft"]
    (pair,) = of_method.pairs

    assert ends_of(pair, "came")[0] > 0.4
    assert pair.to_come == (None, None)
    assert of_method.winner is None
    assert of_method.sessions.effective_groups == pytest.approx(4.0)
    assert of_method.sessions.needed > 8.0
    assert not of_method.sessions.enough
    check = checks_of(found)["sessions"]
    assert check.state == "warning"
    assert check.value == pytest.approx(4.0)
    assert set(verdict.questions) == {
        "to_come",
        "came",
        "fixed",
        "sessions",
        "winner",
    }
    assert "4.0 groups of 100" in of_method.sessions.why


def test_what_is_needed_is_that_of_each_pair_and_said() -> None:
    """At alpha over three pairs, in the verdict and in health; then in words."""
    found = filled("abc", 0.7, 300)
    settings = msgspec.structs.replace(found.settings, planned_impressions=400_000)
    found.settings = settings
    needed = largest_score(300 / 400_000, ALPHA / 3)
    sessions = verdict_of(found).methods["team-draft"].sessions

    assert LEAST_GROUPS < sessions.effective_groups < needed
    assert needed != pytest.approx(largest_score(300 / 400_000, ALPHA), rel=1e-3)
    assert sessions.needed == needed
    assert not sessions.enough
    assert f"{sessions.needed:.1f}" in str(checks_of(found)["sessions"].detail)
    found.settings = msgspec.structs.replace(settings, planned_impressions=400)
    assert verdict_of(found).drawn_by.sessions.needed == LEAST_GROUPS
    assert verdict_of(found).drawn_by.sessions.enough
    found.settings = msgspec.structs.replace(settings, planned_impressions=10**7)
    assert largest_score(300 / 10**7, ALPHA / 3) > 100.0
    few = verdict_of(found).methods["team-draft"]
    assert "too few where 10,000,000 are planned" in few.sessions.why
    assert few.winner is None
    assert verdict_of(comparison_of("team-draft", "ab")).drawn_by.sessions.why == ""


def test_lists_that_name_no_session_name_no_winner() -> None:
    """From one in twenty on; until then it is a warning."""
    for without, winner, state in (
        (0, "a", "ok"),
        (99, "a", "warning"),
        (100, None, "alarm"),
    ):
        found = filled("ab", 0.7, 2_000)
        found.n_without_session = without
        of_method = verdict_of(found).drawn_by

        assert of_method.winner == winner
        assert checks_of(found)["without session"].state == state
        assert ("neither session nor user" in of_method.sessions.why) == (
            winner is None
        )


def test_a_winner_is_better_for_those_that_came_as_well() -> None:
    """A preference of which the exact interval is not sure yet names nobody."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, planned_impressions=400)
    found = Comparison("x", settings)
    sums = found.sums[PREFERENCE]
    for i in range(400):
        better = (1.0 if i % 4 else -1.0) * np.array([[0.0, 1.0], [-1.0, 0.0]])
        assert sums.add(better, 64.0 * (1.0 - np.eye(2)), i % 100)
    (pair,) = verdict_of(found).drawn_by.pairs

    assert ends_of(pair, "to_come")[0] > 0.0 > ends_of(pair, "came")[0]
    assert verdict_of(found).drawn_by.winner is None


def checks_of(
    found: Comparison, outcomes: dict | None = None
) -> dict[str, HealthCheck]:
    """Health by name."""
    return {check.name: check for check in health_of(found, outcomes or {})}


def test_orphans_and_late_clicks_lower_the_join_rate_alike() -> None:
    """Eight of ten clicks, whatever became of the others."""
    found = filled("ab", 0.5, 10)
    for lost in ({"late": 2}, {"orphan": 2}, {"late": 1, "orphan": 1}):
        outcomes = {"consumed": 100, "applied_clicks": 8} | lost
        check = checks_of(found, outcomes)["join rate"]
        assert (check.value, check.state) == (0.8, "warning")


def test_refused_and_foreign_and_uneven_are_seen() -> None:
    """With values and lights at their limits."""
    found = filled("ab", 0.5, 90)
    assert checks_of(found)["refused"].state == "ok"
    found.refusals = {"depth": 4, "teams": 6}
    found.totals[TOTALS.index("foreign_clicks")] = 45
    found.by_ranker[:, BY_RANKER.index("places")] = 30, 70
    checks = checks_of(found)

    assert (checks["refused"].value, checks["refused"].state) == (0.1, "alarm")
    assert checks["refused"].detail == {"depth": 4, "teams": 6}
    assert (checks["foreign clicks"].value, checks["foreign clicks"].state) == (
        0.5,
        "alarm",
    )
    assert checks["places"].value == pytest.approx(0.8)
    assert checks["places"].state == "alarm"
    assert checks["places"].detail == pytest.approx([0.3, 0.7])


def test_coverage_is_that_of_the_pair_that_differs_least() -> None:
    """Two of three rankers agree in nine of ten lists."""
    found = comparison_of("team-draft", "abc")
    for i in range(10):
        bounds = 1.0 - np.eye(3)
        if i:
            bounds[0, 1] = bounds[1, 0] = 0.0
        found.sums["team-draft"].add(np.zeros((3, 3)), bounds, i)
    found.totals[TOTALS.index("impressions")] = 10
    check = checks_of(found)["coverage"]

    assert check.state == "warning"
    assert check.value == pytest.approx(0.1)


def test_coverage_of_a_logging_policy_is_of_the_lists_that_judge() -> None:
    """Lists of the groups that policies are fitted on could not be credited."""
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""},
        method="logging-policy",
        options={"model": "lists", "examination": [1.0, 0.5], "floor": 0.01},
        length=2,
    )
    found = Comparison("x", settings)
    for i in range(10):
        bounds = (1.0 - np.eye(2)) * (i < 4)
        found.sums["logging-policy"].add(np.zeros((2, 2)), bounds, i)
    found.totals[TOTALS.index("impressions")] = 50
    check = checks_of(found)["coverage"]

    assert check.state == "ok"
    assert check.value == pytest.approx(0.4)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_times_of_partitions_are_the_first_and_the_last(
    order: tuple[int, ...],
) -> None:
    """In any order; one that saw nothing has no say."""
    parts = [filled("ab", 0.5, 1) for _ in range(3)]
    parts[0].first_ms, parts[0].last_ms = 500, 9_000
    parts[2].first_ms, parts[2].last_ms = 700, 800
    merged = comparison_of("team-draft", "ab")
    for i in order:
        merged.merge(parts[i])

    assert (merged.first_ms, merged.last_ms) == (500, 9_000)
    assert merged.totals[0] == 3
    assert msgspec.json.encode(verdict_of(merged))


def test_abandoned_lists_are_those_without_a_click() -> None:
    """Seven of ten; it is shown and warns of nothing."""
    found = filled("ab", 0.5, 10)
    found.totals[TOTALS.index("clicked_lists")] = 3
    check = checks_of(found)["abandonment"]

    assert check.state == "ok"
    assert check.value == pytest.approx(0.7)


def test_averaged_pairs_are_not_fair() -> None:
    """Said of the method whose options they are."""
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""}, options={"published": True}
    )
    check = checks_of(Comparison("x", settings))["unfair methods"]

    assert (check.state, check.detail) == ("warning", [PREFERENCE])


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_evidence_against_fair_chance_is_one_in_expectation(share: float) -> None:
    """Over all counts of ten draws: so it may be looked at any time."""
    shares = np.array([share, 1.0 - share])
    expected = sum(
        binom.pmf(k, 10, share) * np.exp(log_evidence(np.array([k, 10 - k]), shares))
        for k in range(11)
    )

    assert expected == pytest.approx(1.0, abs=1e-12)


def test_two_impressions_have_one_degree_of_freedom() -> None:
    """By hand: 1 and 3 have variance 2, and their mean has half of it."""
    sums = PreferenceSums.empty(2)
    for value in (1.0, 3.0):
        sums.add(value * np.array([[0, 1], [-1, 0]]), 4.0 * (1 - np.eye(2)), 0)

    assert fixed_half_widths(sums, 0.05)[0] == pytest.approx(1.95996, rel=1e-3)


@pytest.mark.parametrize(("n_cut", "winner"), [(0, "a"), (1, "a"), (3, None)])
def test_click_rates_beside_cut_lists_name_no_winner(
    n_cut: int, winner: str | None
) -> None:
    """Of 2,000 lists up to one in a thousand; the method that draws has its winner."""
    also = {"counterfactual:team-draft": {"examination": [1.0, 0.5]}}
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""}, method="team-draft", also=also, length=2
    )
    found = Comparison("x", settings)
    better = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for sums in found.sums.values():
        for i in range(2_000):
            sums.add(better * (1.0 if i % 4 else -1.0), 1.0 - np.eye(2), i // 4 % 100)
    found.refusals = {"cut-short": n_cut}
    methods = verdict_of(found).methods

    assert methods["team-draft"].winner == "a"
    assert methods["counterfactual:team-draft"].winner == winner
