"""A source waits while another, which is still being read, is far behind it."""

from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.partitions.watermark_alignment import SourceFrontier, held_back

LEAD_MS = 100

SOURCES = st.dictionaries(
    st.integers(0, 7), st.builds(SourceFrontier, st.integers(-1, 1_000), st.booleans())
)


def test_what_is_far_ahead_of_a_source_that_is_behind_waits():
    """By more than the lead; those nearer, and the slowest, are read."""
    sources = {
        "slow": SourceFrontier(1_000, is_behind=True),
        "near": SourceFrontier(1_100, is_behind=True),
        "far": SourceFrontier(1_101, is_behind=True),
        "far and at its end": SourceFrontier(9_000, is_behind=False),
    }

    assert held_back(sources, LEAD_MS) == {"far", "far and at its end"}


def test_a_source_at_its_end_holds_nobody_back():
    """It has nothing that others could wait for; nor has one without any time yet."""
    sources = {
        "ended": SourceFrontier(0, is_behind=False),
        "silent": SourceFrontier(-1, is_behind=True),
        "far": SourceFrontier(9_000, is_behind=True),
    }

    assert held_back(sources, LEAD_MS) == set()


def test_a_source_at_the_beginning_of_time_is_waited_for():
    """Only one that has no frontier is not; the first frontier there is, is zero."""
    sources = {
        "first": SourceFrontier(0, is_behind=True),
        "far": SourceFrontier(LEAD_MS + 1, is_behind=True),
    }

    assert held_back(sources, LEAD_MS) == {"far"}


@given(SOURCES)
def test_something_that_is_behind_is_always_read(sources):
    """So holding back never stops everything."""
    held = held_back(sources, LEAD_MS)

    behind = {place for place, one in sources.items() if one.is_behind}
    assert not behind or behind - held
