"""Later pages go on with the draw of the first, and compare nobody."""

import msgspec
import pytest

from rankstream.experiments import Running
from rankstream.ranking.methods import DRAWN
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import QueryEvent

ITEMS = [f"d{i:02}" for i in range(23)]
LISTS = {"old": ITEMS, "new": ITEMS[::-1]}


@pytest.mark.parametrize("method", sorted(DRAWN))
def test_pages_are_one_list_cut_in_pieces(method: str) -> None:
    """Nothing twice, nothing lost, the same again, empty after the end."""
    running = Running(
        "x", ExperimentSettings(rankers=dict.fromkeys(LISTS, ""), method=method)
    )
    for wanted in range(20):
        first = running.combine(LISTS, query_id="q", impression_id=f"i{wanted}")
        pages = [running.page(first, number) for number in (2, 3, 4)]
        again = [running.page(first, number) for number in (2, 3, 4)]

        assert pages == again
        assert [len(page) for page in pages] == [10, 3, 0]
        assert sorted([*first.shown, *pages[0], *pages[1]]) == ITEMS


def test_another_draw_cannot_be_gone_on_with() -> None:
    """Nor is there a later page that is the first."""
    running = Running("x", ExperimentSettings(rankers=dict.fromkeys(LISTS, "")))
    first = running.combine(LISTS, query_id="q", impression_id="i1")
    with pytest.raises(ValueError, match="that the seed drew"):
        running.page(first._replace(seed=first.seed + 1), 2)
    with pytest.raises(ValueError, match="numbered from 2"):
        running.page(first, 1)


def test_the_event_of_a_page_names_no_experiment() -> None:
    """It has an id of its own, routed by its query, so its clicks find it."""
    running = Running("x", ExperimentSettings(rankers=dict.fromkeys(LISTS, "")))
    first = running.combine(LISTS, query_id="shoes")
    shown = running.page(first, 2)
    raw = running.page_event(shown, query_id="shoes", at_ms=7, session="s")
    event = msgspec.json.decode(raw, type=QueryEvent)
    before = running.query_event(first, at_ms=7)
    of_first = msgspec.json.decode(before, type=QueryEvent)

    assert event.shown == shown
    assert event.session == "s"
    assert event.experiment is None
    assert event.rankings is None
    assert event.assignments is None
    assert event.impression_id != of_first.impression_id
    assert of_first.experiment is not None
    named = running.page_event(shown, query_id="q", at_ms=7, impression_id="mine")
    assert msgspec.json.decode(named, type=QueryEvent).impression_id == "mine"
