"""Items that count as one: those whose ids are equal before a mark.

Logs without ids of documents tell of each result what it is like, not which it is. An
id `GRADE/TYPE#RANK` names both: the class before the mark, which is seen at many
ranks, and what keeps the items of a list apart.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from models.arrays import Integers

CLASS_END = "#"
"""The class of an item is its id before the first of these."""


def class_of(item: str) -> str:
    """The class of an item.

    Examples
    --------
    >>> class_of("USEFUL/WEB#4"), class_of("a")
    ('USEFUL/WEB', 'a')
    """
    return item.partition(CLASS_END)[0]


class ItemClasses(NamedTuple):
    """Which items count as one.

    Parameters
    ----------
    names : [n_classes]
        What the ids of a class share, sorted.
    numbers : [n_items]
        The class of each item; what was counted of items `i` counts of `numbers[i]`.
    """

    names: tuple[str, ...]
    numbers: Integers


def item_classes(items: Iterable[str]) -> ItemClasses:
    """The classes of items; one without a mark is a class of its own.

    Classes are of ids alone, not of a query: whoever takes items of several queries
    takes their classes as the same. What was counted of a class is the sum of what was
    counted of its items, impressions too: a list has as many chances to show the class
    as it has candidates of it. So a value is that of one item of the class.

    Parameters
    ----------
    items : [n_items]
        Ids.

    Examples
    --------
    >>> found = item_classes(["USEFUL/WEB#1", "USEFUL/WEB#4", "VITAL/WEB#1"])
    >>> found.names, found.numbers.tolist()
    (('USEFUL/WEB', 'VITAL/WEB'), [0, 0, 1])
    """
    classes = [class_of(item) for item in items]
    names = tuple(sorted(set(classes)))
    number = {name: i for i, name in enumerate(names)}
    return ItemClasses(names, np.array([number[x] for x in classes], np.int64))
