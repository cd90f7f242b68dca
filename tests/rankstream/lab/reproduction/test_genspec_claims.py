"""What is claimed of runs that are made up, and whether it holds."""

import itertools
from collections.abc import Mapping

import numpy as np
import pytest

from models.arrays import Floats
from rankstream.lab.reproduction.figures import Claim
from rankstream.lab.reproduction.genspec.claims import (
    CLEAR,
    NOISY,
    SOON,
    SURE,
    Curves,
    claims_of,
    delays_of,
)
from rankstream.lab.reproduction.genspec.plan import (
    ALL_LISTS,
    GENERAL,
    HOTFIX,
    LOGGING,
    PIE,
    POLICIES,
    SPECIAL,
)

COUNTS = [1, 3_000, 10_000]
SHAPE = (5, 5)

VALUES = {
    LOGGING: (0.6, 0.6, 0.6),
    GENERAL: (0.6, 0.7, 0.7),
    SPECIAL: (0.5, 0.99, 1.0),
    ALL_LISTS: (0.5, 1.0, 1.0),
    PIE: (0.5, 1.0, 1.0),
    HOTFIX: (0.5, 1.0, 1.0),
    "any time, 0.5": (0.6, 0.98, 0.999),
    "any time, 0.95": (0.6, 0.94, 0.995),
    "any time, 0.95, closed": (0.6, 0.93, 0.98),
    "Maurer-Pontil, 0.5": (0.6, 0.93, 0.995),
    "Maurer-Pontil, 0.95": (0.6, 0.87, 0.97),
    "SEA, 0.5": (0.6, 0.7, 0.8),
    "SEA, 0.95": (0.6, 0.65, 0.7),
}
"""NDCG after each number of lists; that of others is the logging policy's."""


def planted(
    slope: float, changed: Mapping[str, tuple[float, ...]], n_runs: int = 5
) -> Curves:
    """Paired runs about these values."""
    rng = np.random.default_rng(1)
    shared = rng.normal(0.0, 0.05, (SHAPE[0], n_runs, 1))
    values = {**VALUES, **changed}

    def runs(name: str) -> Floats:
        level = np.array(values.get(name, values[LOGGING]))
        return level + shared + rng.normal(0.0, 0.001, (*shared.shape[:2], len(level)))

    train = {name: runs(name) for name in POLICIES}
    unseen = {name: runs(GENERAL) for name in POLICIES}
    return Curves(slope, COUNTS, train, unseen)


def failed(claims: list[Claim]) -> set[str]:
    """What does not hold, without the slope and the place."""
    return {
        claim.text.partition(": ")[2].partition(";")[0]
        for claim in claims
        if not claim.holds
    }


@pytest.mark.parametrize(("slope", "n_claims"), [(CLEAR, 17), (NOISY, 14), (0.1, 13)])
def test_claims_hold_where_they_are_planted(slope: float, n_claims: int) -> None:
    """Those of clear clicks and of noisy ones beside those of all."""
    claims = claims_of(planted(slope, {}))

    assert len(claims) == n_claims
    assert failed(claims) == set()


@pytest.mark.parametrize(
    ("slope", "changed", "claim"),
    [
        (
            CLEAR,
            {"any time, 0.95": (0.59, 0.94, 0.995)},
            "any time, 0.95: never below logging",
        ),
        (NOISY, {PIE: (0.601, 1.0, 1.0)}, "PIE starts below logging"),
        (NOISY, {SPECIAL: (0.601, 0.99, 1.0)}, "specialisation starts below logging"),
        (
            CLEAR,
            {"Maurer-Pontil, 0.5": (0.6, 0.93, 0.98)},
            "Maurer-Pontil, 0.5: within 0.01 of specialisation at 10,000",
        ),
        (
            CLEAR,
            {"any time, 0.95": (0.6, 0.94, 0.985)},
            "any time, 0.95: within 0.01 of specialisation at 10,000",
        ),
        (
            NOISY,
            {"any time, 0.95, closed": (0.6, 0.93, 0.996)},
            "any time, 0.95: above the rule that keeps no list at 10,000",
        ),
        (
            CLEAR,
            {"any time, 0.5": (0.6, 0.95, 0.999)},
            "any time, 0.5: ahead of Maurer-Pontil, 0.5 by 0.03 at 3,000",
        ),
        (
            NOISY,
            {"any time, 0.5": (0.6, 0.7, 0.7)},
            "any time, 0.5: above generalisation at 10,000",
        ),
        (
            NOISY,
            {"SEA, 0.95": (0.6, 0.871, 0.971)},
            "Maurer-Pontil, 0.95 above SEA, 0.95, most at 1",
        ),
    ],
)
def test_what_is_not_so_does_not_hold(
    slope: float, changed: dict[str, tuple[float, ...]], claim: str
) -> None:
    """One value changes, and with it one claim."""
    assert failed(claims_of(planted(slope, changed))) == {claim}


@pytest.mark.parametrize("name", [PIE, HOTFIX])
def test_bandits_are_ahead_of_bounds_while_lists_are_few(name: str) -> None:
    """With clear clicks, by as much as is claimed."""
    for value, holds in ((0.99, True), (0.96, False)):
        curves = planted(CLEAR, {name: (0.5, value, 1.0)})
        claims = claims_of(curves._replace(counts=[1, SOON, 10_000]))
        text = f"slope 0.2: {name}: ahead of {SURE} by 0.03 at 300"
        (claim,) = [each for each in claims if each.text == text]
        assert claim.holds is holds


def test_the_worst_number_of_lists_is_what_counts() -> None:
    """And it is said which one it is."""
    changed = {"Maurer-Pontil, 0.01": (0.7, 0.58, 0.9)}
    (claim,) = [
        each
        for each in claims_of(planted(NOISY, changed))
        if "Maurer-Pontil, 0.01: never" in each.text
    ]

    assert claim.text.endswith("worst at 3,000")
    assert claim.gap.value == pytest.approx(-0.02, abs=0.001)
    assert claim.holds is False


def test_other_policies_on_unseen_queries_are_seen() -> None:
    """Where a meta-policy serves them something else than the general policy."""
    curves = planted(NOISY, {})
    name = "any time, 0.5"
    other = {**curves.unseen, name: curves.unseen[name] - 0.02}

    assert failed(claims_of(curves._replace(unseen=other))) == {
        f"{name}: unseen queries as by generalisation at 10,000"
    }


def test_one_run_decides_nothing() -> None:
    """Of each claim; it has no error."""
    curves = planted(CLEAR, {}, n_runs=1)
    one = {name: values[:1] for name, values in curves.train.items()}
    unseen = {name: values[:1] for name, values in curves.unseen.items()}
    claims = claims_of(curves._replace(train=one, unseen=unseen))

    assert {claim.holds for claim in claims} == {None}


def test_nothing_is_claimed_of_lists_that_did_not_come() -> None:
    """Without 3,000 lists nobody is ahead there."""
    curves = planted(CLEAR, {})._replace(counts=[1, 2_000, 10_000])
    assert not [claim for claim in claims_of(curves) if "ahead" in claim.text]


def test_delays_are_between_numbers_of_lists() -> None:
    """Half of what there is to gain is .8: between two points, by their logarithms."""
    changed: dict[str, tuple[float, ...]] = {
        ALL_LISTS: (0.7, 0.9, 1.0),
        SPECIAL: (0.6, 0.7, 0.9),
    }
    curves = planted(CLEAR, changed)._replace(counts=[100, 10_000, 1_000_000])
    delays = {delay.policy: delay.lists for delay in delays_of(curves)}

    assert delays[ALL_LISTS] == pytest.approx([1_000, 10**5.2], rel=0.1)
    assert delays[SPECIAL] == pytest.approx([10**5, np.inf], rel=0.1)
    assert list(delays)[:2] == [ALL_LISTS, SPECIAL]
    for one, other in itertools.pairwise(delays["any time, 0.5"]):
        assert one < other
