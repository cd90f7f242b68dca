"""Laws of an outage: what live senders kept meanwhile is applied, every event of it.

Default settings, and nobody waits for the watermark before sending.
"""

import logging
from collections import Counter

import pytest

from rankstream.wire.topics import QUERIES
from tests.streams.simulated_outage import Case, Simulation

HOUR_MS = 3_600_000
AT_ONCE = ((0.2, 0.2),)
APART = ((0.3, 0.3), (36.0, 36.0))
LISTS_LAST = ((36.0, 0.2),)
LISTS_GIVEN_UP = ((50.0, 0.2),)
"""As where a leader goes: a request that was under way is given up after 30 s."""


def assert_nothing_is_thinned(outcomes: Counter[str]) -> None:
    """Everything that was sent is applied."""
    put_aside = {
        name: outcomes[name]
        for name in ("late", "orphan", "duplicate", "dead_letter", "pending")
    }
    applied = outcomes["applied_impressions"] + outcomes["applied_clicks"]
    assert not any(put_aside.values()), put_aside
    assert outcomes["sent"] == applied > 200


@pytest.mark.parametrize(
    "case",
    [
        Case(16, LISTS_GIVEN_UP),
        Case(30, LISTS_LAST),
        Case(70, AT_ONCE, patience_s=1e6),
        Case(110, AT_ONCE, patience_s=1e6),
        Case(110, APART),
        Case(110, LISTS_LAST, lists_per_s=0.8),
    ],
    ids=str,
)
def test_an_outage_makes_nothing_late(case: Case) -> None:
    """Whoever comes back first, and whether the worker outlives it or starts again."""
    run = Simulation(case).run()

    assert_nothing_is_thinned(run.outcomes)


@pytest.mark.parametrize("jumps_after_s", [0.0, 60.0])
@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS])
def test_a_worker_whose_clock_is_wrong_counts_the_same(
    ahead_ms: int, jumps_after_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    """An hour ahead or behind, from the start or by a jump; it says so once."""
    with caplog.at_level(logging.WARNING):
        right = Simulation(Case(lists_per_s=2.0)).run()
        assert caplog.messages == []
        wrong = Simulation(
            Case(lists_per_s=2.0, clock_ms=ahead_ms, jumps_after_s=jumps_after_s)
        ).run()

    assert_nothing_is_thinned(wrong.outcomes)
    assert wrong.outcomes == right.outcomes
    told_s = wrong.clocks.seconds((QUERIES, 0))
    assert told_s is not None
    assert abs(told_s - ahead_ms / 1_000) < 1
    (line,) = caplog.messages
    assert "event=clock-differs" in line
