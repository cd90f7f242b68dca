"""What must be known of how well a policy's value is known, in words."""

import math
from collections.abc import Iterator

from rankstream.operations.terminal.words import counted
from streams.estimation.policy_rows import MOST_UNSEEN, PolicyRow
from streams.estimation.question import Question

NOTHING_SEEN = 1.0 - 1e-9
"""Above this share ids are likely to be others."""

ONE_CLICK = 0.2
"""From this share of one click on it is said in words."""

FEW_CLICKS = 30.0
"""Below so many effective clicks it is said in words."""


def support_of(row: PolicyRow, question: Question) -> Iterator[str]:
    """What must be known of one policy."""
    if row.unseen > NOTHING_SEEN:
        yield (
            f"none of the items of {row.name} was shown in lists of the same query: "
            "name queries and items as `rankstream statistics show` does"
        )
    elif row.unseen > MOST_UNSEEN:
        yield (
            f"{row.unseen:.1%} of what {row.name} would show could never be seen: it "
            "counts as not relevant, so the figure is rather too low"
        )
    if row.largest_share > ONE_CLICK:
        yield f"one click is {row.largest_share:.0%} of what {row.name} is from"
    if row.effective_clicks < FEW_CLICKS:
        n, n_groups = round(row.effective_clicks), question.n_groups
        n_used = len(question.groups)
        used = "" if n_used == n_groups else f", of {n_used} of {n_groups} groups"
        yield f"{row.name} is as precise as {counted(n, 'click')} of equal weight{used}"


def range_of(low: float, high: float, sign: str = "") -> str:
    """The ends of an interval in words, "-" where there is none."""
    if math.isnan(low):
        return "-"
    return f"{low:{sign}.4f} to {high:{sign}.4f}"
