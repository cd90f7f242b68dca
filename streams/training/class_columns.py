"""Columns whose items are classes, of no query: ids equal before a mark are one item.

Of a log without ids of documents a curve of bias is fitted on classes, each seen at
many ranks; see `models.estimators.item_classes`.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from models.estimators.item_classes import class_of
from streams.statistics.columns import Columns

MOST_CLASSES = 1 << 12
"""All are held, with their counts by rank; no sample of queries makes them fewer."""


class TooManyClasses(ValueError):
    """Items have too many classes for all of them to be held.

    Operator action: do without classes; ids of documents have none.
    """


def columns_by_class(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """The same rows, whose items are numbers of classes, all of one query.

    Interventions, groups and ranks stay as they were.

    Parameters
    ----------
    chunks
        In their order; see `streams.statistics.columns`.

    Raises
    ------
    TooManyClasses
        Where not all of them can be held.
    """
    numbers: dict[str, int] = {}
    for chunk in chunks:
        n_items = np.array([len(items) for items in chunk.items], np.int64)
        found = [
            numbers.setdefault(class_of(item), len(numbers))
            for items in chunk.items
            for item in items
        ]
        if len(numbers) > MOST_CLASSES:
            raise TooManyClasses(
                f"classes of items must be few, {MOST_CLASSES:,} at most, as all are "
                f"held; got more, such as {next(reversed(numbers))!r}: do without "
                "classes where ids have none"
            )
        starts = np.cumsum(n_items) - n_items
        item = np.array(found, np.int64)[starts[chunk.scope] + chunk.item]
        nothing: tuple[str, ...] = ()
        yield chunk._replace(
            names=tuple(name._replace(query="") for name in chunk.names),
            items=(nothing,) * len(chunk.items),
            item=item,
        )
