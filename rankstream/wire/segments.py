r"""A segment of users as a part of the query: `query␟segment`.

Statistics and decisions of a query are then kept apart by segment, and so is a context
of a bandit. The mark is the unit separator, which `normalised_query` takes for white
space: no query and no segment holds it, so no two pairs have one form.
"""

from collections.abc import Mapping
from typing import Any

from rankstream.wire.routing import SEGMENT_MARK, normalised_query

MAX_SEGMENT_CHARACTERS = 256


def query_of_list(
    query_id: str, attributes: Mapping[str, Any] | None, segment: str
) -> str:
    r"""The form under which statistics of a list's query are kept.

    Ingestion and rankers both name queries by it. Empty where the query holds nothing
    that can be seen.

    Parameters
    ----------
    attributes
        Of the list's event.
    segment
        The attribute that is part of the query, `ingestion.segment`; "" for none.

    Raises
    ------
    ValueError
        Where that attribute is missing, or is no segment.

    Examples
    --------
    >>> query_of_list("Red  Shoes", {"country": "NL"}, "country")
    'red shoes\x1fnl'
    >>> query_of_list("Red  Shoes", {"country": "NL"}, "")
    'red shoes'
    """
    query = normalised_query(query_id)
    if not segment or not query:
        return query
    found = (attributes or {}).get(segment)
    if found is None:
        raise ValueError(
            f"attributes must have {segment!r}, the segment of the query "
            "(ingestion.segment); it is missing"
        )
    if not isinstance(found, str):
        raise ValueError(
            f"attributes.{segment} (ingestion.segment) must be text; got {found!r:.100}"
        )
    return query_in_segment(query, found)


def query_in_segment(query_id: str, segment: str) -> str:
    r"""A query in a segment, where both are known by name.

    Raises
    ------
    ValueError
        Where the segment is too long, or holds nothing that can be seen.

    Examples
    --------
    >>> query_in_segment("Red  Shoes", "NL")
    'red shoes\x1fnl'
    """
    if len(segment) > MAX_SEGMENT_CHARACTERS:
        raise ValueError(
            f"a segment must be at most {MAX_SEGMENT_CHARACTERS} characters; got "
            f"{len(segment)}"
        )
    normal = normalised_query(segment)
    if not normal:
        raise ValueError(f"a segment must hold a visible character; got {segment!r}")
    return f"{normalised_query(query_id)}{SEGMENT_MARK}{normal}"
