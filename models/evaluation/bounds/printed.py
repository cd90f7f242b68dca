"""Bounds as printed: of items of lists, or of clicks, as if all were independent.

Assumed is that clicks within a list are independent of each other, which users who
stop after a click, or who have tastes, are not; and that lists are, as in `one_look`.
What is assumed is chosen before the data: for long lists these bounds are narrower.
An item's w(d) c(d) lies in an interval of extent 2 b where w has both signs, with b the
largest |w|; printed is b, which is the extent of one sign.

References
----------
Oosterhuis (thesis, 2020), equations of section 8.3.2 before (8.13), by item; the
published code of Oosterhuis & de Rijke (WWW 2021), by click.
"""

import math

from models.evaluation.bounds.one_look import half_width
from models.kernels.compilation import compiled


@compiled
def half_width_by_item(
    n: float,
    items: float,
    total: float,
    click_squares: float,
    extent: float,
    error: float,
) -> float:
    """How far the mean of X may be from what is expected, from items of lists.

    A value is K w(d) c(d), K the mean length of a list.

    Parameters
    ----------
    n, items
        Lists, and items that they showed.
    total, click_squares
        Sums of w and of w^2 over clicks.
    extent
        Of an interval in which each w(d) c(d) lies.
    error
        1 - epsilon, in [0, 1].
    """
    if n <= 0.0:
        return math.inf
    length = items / n
    squares = length * length * click_squares
    return half_width(items, length * total, squares, length * extent, error)


@compiled
def half_width_by_click(
    n: float,
    clicks: float,
    total: float,
    click_squares: float,
    extent: float,
    error: float,
) -> float:
    """How far the mean of X may be from what is expected, from clicks alone.

    The number of clicks is taken as given: a value is the w of a click.

    Parameters
    ----------
    n, clicks
        Lists, and clicks on them.
    total, click_squares
        Sums of w and of w^2 over clicks.
    extent
        Of an interval in which each w lies, and 0.
    error
        1 - epsilon, in [0, 1].
    """
    if n <= 0.0:
        return math.inf
    of_click = half_width(clicks, total, click_squares, extent, error)
    return of_click * clicks / n if clicks > 0.0 else math.inf
