"""Items that count as one: those whose ids are equal before a mark.

Logs without ids of documents tell of each result what it is like, not which it is. An
id `GRADE/TYPE#RANK` names both: the class before the mark, which is seen at many
ranks, and what keeps the items of a list apart.

Classes are of ids alone, not of a query: whoever takes items of several queries takes
their classes as the same. What was counted of a class is the sum of what was counted of
its items, impressions too: a list has as many chances to show the class as it has
candidates of it. So a value is that of one item of the class.
"""

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
