"""Options that name a query, and the segment in which it was asked."""

import argparse

from rankstream.wire.routing import SEGMENT_MARK, normalised_query
from rankstream.wire.segments import query_in_segment


def add_query(parser: argparse.ArgumentParser, *, is_needed: bool = True) -> None:
    """Declare them."""
    parser.add_argument(
        "query",
        nargs=None if is_needed else "?",
        help="as events have it, in `query_id`",
    )
    parser.add_argument(
        "--segment",
        metavar="NAME",
        help="of the query, where `ingestion.segment` makes it part of queries",
    )


def query_asked(arguments: argparse.Namespace) -> str:
    """The query as statistics are kept by it.

    Raises
    ------
    ValueError
        Where the segment is none.
    """
    if arguments.segment is None:
        return normalised_query(arguments.query)
    return query_in_segment(arguments.query, arguments.segment)


def queries_asked(arguments: argparse.Namespace) -> list[str] | None:
    """The same where it may be left out; None for all queries.

    Raises
    ------
    ValueError
        Where the segment is none, or is that of no query.
    """
    if arguments.query is not None:
        return [query_asked(arguments)]
    if arguments.segment is not None:
        raise ValueError(
            "--segment must go with a query, as it is a part of one; "
            f"got {arguments.segment!r:.60} alone: name the query too"
        )
    return None


def as_asked(query: str) -> str:
    r"""A query that is kept, in the words that ask for it.

    Examples
    --------
    >>> as_asked("shoes"), as_asked("shoes\x1fnl")
    ("'shoes'", "'shoes' --segment 'nl'")
    """
    name, is_segmented, segment = query.partition(SEGMENT_MARK)
    return f"{name!r:.60}" + (f" --segment {segment!r:.60}" if is_segmented else "")
