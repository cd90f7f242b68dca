"""A join that goes on from a checkpoint: what was decided is not decided again."""

from rankstream.settings import TimeSettings
from rankstream.wire.events import ACTIVE, Element, Frontier
from streams.fold.join import WITHDRAWN, Join
from streams.native.elements import CLICK, decode_click
from tests.event_factory import START_MS, as_kept, as_record, click, impression

WINDOW_MS, DISORDER_MS, REMEMBER_MS = 1_000, 100, 500
TIME = TimeSettings(
    click_window_ms=WINDOW_MS, disorder_ms=DISORDER_MS, remember_ms=REMEMBER_MS
)


def reached(offset_ms: int) -> Frontier:
    """The only source has reached this time after the start."""
    return Frontier(0, 1, START_MS + offset_ms, ACTIVE)


def checkpoint(*elements: Element) -> tuple[Join, Join]:
    """A join that took elements, and one restored from its last checkpoint."""
    join, accepted = Join(TIME), []
    for element in elements:
        join.take(as_record([element]))
        accepted += join.new_accepted().raw
    resumed = Join(TIME)
    resumed.restore(join.state())
    resumed.restore_known(*join.new_remembered())
    resumed.restore_elements(as_kept(accepted))
    return join, resumed


def test_what_closed_exactly_at_the_checkpoint_is_not_counted_again() -> None:
    """It was accepted before an older checkpoint, and lies there still."""
    join, resumed = checkpoint(impression(), click(), reached(WINDOW_MS))
    for one in (join, resumed):
        assert (one.pending, one.n_open) == (0, 0)

        one.take(as_record([reached(2 * WINDOW_MS)]))
        applied = (one.counts["applied_impressions"], one.counts["applied_clicks"])
        assert applied == (1, 1)


def test_a_click_that_proved_late_is_not_applied_after_a_restore() -> None:
    """It waited before its impression came, which is open still."""
    beyond = click(at_ms=START_MS + WINDOW_MS + 1)
    join, resumed = checkpoint(beyond, impression())
    for one in (join, resumed):
        assert one.counts["late"] == 1
        assert one.pending == 1

        one.take(as_record([reached(WINDOW_MS)]))
        applied = (one.counts["applied_impressions"], one.counts["applied_clicks"])
        assert applied == (1, 0)


def test_a_click_of_the_last_moment_is_not_withdrawn() -> None:
    """It waited beside one that is late, and is attached: the state says no more."""
    last, late = (click(at_ms=START_MS + WINDOW_MS + over) for over in (0, 1))
    join = Join(TIME)
    join.take(as_record([last, late, impression()]))
    kept = as_kept(join.new_accepted().raw)
    tags = enumerate(kept.tags)
    clicks = [decode_click(kept.raw(i)) for i, tag in tags if tag == CLICK]
    withdrawn = [one.identity for one in clicks if one.position == WITHDRAWN]
    assert withdrawn == [late.identity]
    assert last in clicks
