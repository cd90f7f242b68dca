"""What settings ask of evidence is what they say."""

import pytest

from rankstream.configuration.decisions import DecisionSettings
from streams.decisions.judging import rule_of


@pytest.mark.parametrize(
    ("is_shared", "n_sets", "error"),
    [(False, 50, 0.1), (True, 50, 0.002), (True, 1, 0.1), (True, 0, 0.1)],
)
def test_what_may_err_is_shared_by_sets_where_it_is_asked_for(
    is_shared: bool, n_sets: int, error: float
) -> None:
    """Of no set at all it is that of one."""
    plan = DecisionSettings("m", "safe", confidence=0.9, is_shared=is_shared)
    assert 1.0 - rule_of(plan, n_sets).epsilon == pytest.approx(error, rel=1e-9)
