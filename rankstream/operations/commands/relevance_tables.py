"""Corrected relevance as people read it."""

import math

from rich.table import Table

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import CURVE_REMEDY
from models.estimators.choice import NO_CURVE as UNTOLD
from models.estimators.intervals import FEW_CLICKS, FEW_GROUPS
from models.estimators.intervention_aware import LEAST_SUPPORT
from rankstream.operations.answers.relevance import ItemRelevance, QueryRelevance
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.plain_text import plain
from streams.training.curve_ends import CurveEnds

NO_CURVE = f"relevance is not corrected for position: {UNTOLD}: {CURVE_REMEDY}"

UNDER_EXPOSED = "under-exposed"

_WITHOUT = {FEW_GROUPS: "one group", FEW_CLICKS: "few clicks"}
"""What stands in the place of an interval."""

SPARE_OF_RELEVANCE = ("df", "lists", "clicks")
"""Columns that a narrow terminal can do without."""


N_RANKS_SHOWN = 10


def curve_label(curve: BiasCurve, source: str, ends: CurveEnds | None = None) -> str:
    """By what relevance is corrected; `source` says where that is from."""
    name = "alpha" if curve.has_trust_bias else "examination"
    numbers = [f"{number:.2f}" for number in curve.alpha[:N_RANKS_SHOWN]]
    if ends is None:
        return f"{name} by rank, {source}: {', '.join(numbers)}"
    shares = zip(ends.low.tolist(), ends.high.tolist(), strict=True)
    told = [
        # Rank 1 is the unit.
        number
        if math.isnan(low) or low == high
        else f"{number} [{low:.2f} to {high:.2f}]"
        for number, (low, high) in zip(numbers, shares, strict=False)
    ]
    if not any("[" in each for each in told):
        return (
            f"{name} by rank, {source}, without intervals, as their lists showed each "
            f"item too seldom: {', '.join(told)}"
        )
    of = "" if ends.confidence is None else f" of {100.0 * ends.confidence:g} %"
    return f"{name} by rank, {source}, with intervals{of} each: {', '.join(told)}"


def relevance_table(found: QueryRelevance, limit: int) -> Table:
    """A line for each item, the most relevant first; `limit` rows."""
    clicks = round(found.effective_clicks)
    table = Table(
        title="relevance, corrected for position",
        caption=f"as precise as {counted(clicks, 'click')} of equal weight; "
        f"{UNDER_EXPOSED}: exposure below {LEAST_SUPPORT:g}",
    )
    table.add_column("item", overflow="fold")
    for column in ("lists", "clicks", "exposure", "relevance", "95 %", "df", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for row in found.items[:limit]:
        table.add_row(
            plain(row.item),
            f"{row.impressions:,}",
            f"{row.clicked:,}",
            f"{row.exposure:,.1f}",
            "-" if math.isnan(row.relevance) else f"{row.relevance:.3f}",
            _interval(row),
            "" if row.reason else str(row.degrees),
            UNDER_EXPOSED if row.is_under_exposed else "",
        )
    if len(found.items) > limit:
        table.add_row(f"... {len(found.items) - limit:,} more")
    return table


def _interval(row: ItemRelevance) -> str:
    if row.reason:
        return _WITHOUT.get(row.reason, "-")
    return f"{row.low:.3f} to {row.high:.3f}"
