"""What pictures of values of policies hold."""

from rankstream.operations.answers.values import Values
from rankstream.operations.plots.picture import Estimate, Picture, Rows, Series


def values_picture(found: Values) -> Picture:
    """Values of policies, and beside them their differences from one of them."""
    rows, question = found.rows, found.question
    names = [row.name for row in rows]
    rewards = [Estimate.of(row.reward, (row.low, row.high)) for row in rows]
    differences = [
        Estimate.of(row.difference, (row.difference_low, row.difference_high))
        for row in rows
    ]
    unit = f"{found.weights} per list, with intervals of 95 %"
    panels = [
        Rows("value", unit, names, [Series("value", rewards)]),
        Rows(
            f"less {question.base}",
            f"{found.weights} per list, paired",
            names,
            [Series("difference", differences)],
            reference=0.0,
        ),
    ]
    title = f"{found.weights} per list, by {question.estimator}"
    return Picture(title, [panels], [*found.remarks()])
