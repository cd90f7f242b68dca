"""Which experiment is told where several compare the same rankers."""

import pytest

from rankstream.notebook.comparing import experiments_of
from streams.comparisons.preference_fold import PreferencesFold
from tests.streams.comparisons.test_verdicts import settings_of


def test_the_experiment_that_had_a_list_last_is_first() -> None:
    """Whatever number the epoch of another has; a name chooses."""
    settings = settings_of("team-draft")
    folded = PreferencesFold({"now": settings, "old-test": settings}, 0).comparisons()
    for each in folded:
        each.last_ms = 9 if each.name == "now" else 5
    a, b = folded[0].rankers[:2]
    both = tuple(folded)
    assert [x.name for x in experiments_of(both, a, b)] == ["now", "old-test"]
    assert [x.name for x in experiments_of(both, a, b, "old-test")] == ["old-test"]
    with pytest.raises(ValueError, match="two rankers of one experiment"):
        experiments_of(both, a, b, "other")
