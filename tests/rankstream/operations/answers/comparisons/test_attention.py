"""Checks that warn, and what to do: each that there is has a remedy."""

import msgspec

from rankstream.operations.answers.comparisons.attention import REMEDIES, attention_to
from rankstream.ranking.methods import DRAWN, LOGGING_POLICY
from rankstream.wire.verdicts import HealthCheck
from streams.comparisons.health import LOG_COUNTS, health_of
from streams.comparisons.verdicts import refused_verdict
from tests.streams.comparisons.test_verdicts import BAD, GOOD, run_of, settings_of

NEVER = {"abandonment", "clicks per list", "hours since change"}
"""Checks that tell a number and never warn."""


def test_every_check_that_can_warn_has_a_remedy_and_no_other() -> None:
    """Of all methods, of the log, and of records that cannot be read."""
    outcomes = dict.fromkeys(LOG_COUNTS, 1) | {"consumed": 9}
    names = {check.name for check in refused_verdict("x", 1, "why").health}
    for method in {*DRAWN} - {LOGGING_POLICY}:
        fold = run_of(settings_of(method), {"good": GOOD, "bad": BAD}, 3)
        (comparison,) = fold.comparisons()
        for counts in (outcomes, {"unread": 1}):
            names |= {check.name for check in health_of(comparison, counts)}
    assert names - NEVER == REMEDIES.keys()


def test_alarms_come_first_and_what_is_well_is_left_out() -> None:
    """With the value, what came, and what to do."""
    checks = [
        HealthCheck(name="coverage", value=0.9, state="ok", detail=None),
        HealthCheck(name="late", value=0.023, state="warning", detail=None),
        HealthCheck(
            name="refused", value=0.2, state="alarm", detail={"impossible": 1_200}
        ),
        HealthCheck(
            name="first picks", value=3.5, state="warning", detail=[6_200, 5_300.4]
        ),
    ]
    refused, late, picks = attention_to(checks)
    assert refused.words.startswith("alarm: refused 0.2 (impossible 1,200): see the ")
    assert late.words.startswith("warning: late 0.023: events come behind their window")
    assert picks.detail == "6,200 / 5,300"
    assert refused.to_dict()["words"] == refused.words
    assert msgspec.json.encode([each.to_dict() for each in attention_to(checks)])
    assert attention_to(checks[:1]) == []
