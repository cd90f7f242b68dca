"""What pictures of a query hold: relevance of its items, and clicks of its places."""

from collections import defaultdict
from collections.abc import Sequence

from rankstream.operations.answers.relevance import QueryRelevance
from rankstream.operations.answers.shown_query import ShownQuery
from rankstream.operations.answers.statistics import CountedPlace, CountedScopes
from rankstream.operations.plots.bias import BY_RANK, bias_panel
from rankstream.operations.plots.picture import (
    Estimate,
    Line,
    Lines,
    Panel,
    Picture,
    Rows,
    Series,
)

PER_SHOWN = "clicks per time shown"


def relevance_picture(found: QueryRelevance, title: str = "relevance") -> Picture:
    """Items of a query, corrected for position beside what was counted."""
    return Picture(title, [[relevance_panel(found)]], _notes(found))


def relevance_panel(found: QueryRelevance) -> Rows:
    """The same as a panel, the most relevant item first."""
    items = found.items
    counted = [
        Estimate.of(each.clicked / each.impressions if each.impressions else None)
        for each in items
    ]
    return Rows(
        "relevance, corrected for position",
        "relevance, with intervals of 95 %",
        [each.item for each in items],
        [
            Series(
                "corrected",
                [Estimate.of(each.relevance, (each.low, each.high)) for each in items],
            ),
            Series("clicks per list", counted, is_estimated=False),
        ],
        is_from_zero=True,
    )


def query_picture(shown: ShownQuery) -> Picture:
    """What was counted of a query, and what follows from it.

    Without a curve there is no relevance: then items are seen by their clicks.
    """
    if shown.relevance is None:
        return counts_picture(shown.together, shown.query)
    found, curve, counts = shown.relevance, shown.curve, shown.together
    by_rank = clicks_by_rank(counts.places())
    panels: list[list[Panel]] = [
        [relevance_panel(found)],
        [by_rank, bias_panel(curve.curve, curve.ends)],
    ]
    notes = (*_notes(found), curve.source, curve.warning, *counts.remarks())
    return Picture(shown.query, panels, notes)


def counts_picture(counts: CountedScopes, title: str = "counted") -> Picture:
    """Clicks by item and by rank, not corrected for anything."""
    places = counts.places()
    panels: list[list[Panel]] = [[clicks_by_item(places)], [clicks_by_rank(places)]]
    return Picture(title, panels, counts.remarks())


def clicks_by_rank(places: Sequence[CountedPlace]) -> Lines:
    """Clicks of all items at a rank, per time that one was shown there."""
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for each in places:
        sums[each.rank][0] += each.clicked
        sums[each.rank][1] += each.shown
    ranks = sorted(sums)
    rates = [_rate(*sums[rank]) for rank in ranks]
    line = Line("clicks", rates, is_estimated=False, xs=ranks)
    return Lines("clicks by rank", PER_SHOWN, BY_RANK, [line], is_from_zero=True)


def clicks_by_item(places: Sequence[CountedPlace]) -> Rows:
    """Clicks of an item at all ranks, per time that it was shown; most shown first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in places:
        sums[each.item][0] += each.clicked
        sums[each.item][1] += each.shown
    items = sorted(sums, key=lambda item: (-sums[item][1], item))
    rates = [_rate(*sums[item]) for item in items]
    return Rows(
        "clicks by item, not corrected for position",
        PER_SHOWN,
        items,
        [Series("clicks", rates, is_estimated=False)],
        is_from_zero=True,
    )


def _rate(clicked: int, shown: int) -> Estimate:
    return Estimate.of(clicked / shown if shown else None)


def _notes(found: QueryRelevance) -> tuple[str, ...]:
    return (found.chosen, found.warning, *found.remarks)
