"""Where an event goes: the normalised query, its partition, and ids that carry it.

Both sides of ingestion use these rules: ingest, and the ranker that makes
impression ids. Both sides of `interactions` use that of models: the fold, and
the learners.
"""

import hashlib
import re
import unicodedata
import zlib

ROUTE_MARK = "~"
"""Separates the unique part of an impression id from the route that it carries."""

SEGMENT_MARK = "\x1f"
"""Separates a normalised query from the segment in which it was asked, if any."""

_ROUTE = re.compile(r"[0-9a-fA-F]{16}")


def normalised_query(query_id: str) -> str:
    """The form under which statistics of a query are kept.

    Unicode NFC, case folded, runs of white space made one space, ends stripped.
    """
    if query_id.isascii():
        return " ".join(query_id.lower().split())
    return " ".join(unicodedata.normalize("NFC", query_id.casefold()).split())


def route_of_query(query_id: str) -> int:
    """The 64-bit route of an already normalised query, the same in each segment.

    So a click finds its list by the query alone.
    """
    return hash_of_query(query_id.partition(SEGMENT_MARK)[0])


def hash_of_query(query_id: str) -> int:
    """64 bits that tell normalised queries apart, and their segments."""
    digest = hashlib.blake2b(query_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def partition_of_input(key: bytes | None, value: bytes, n_partitions: int) -> int:
    """The partition of `queries` or `clicks` that a record is sent to.

    It depends on the bytes alone, so what is sent again goes where it went before.
    """
    return zlib.crc32(key or value) % n_partitions


def partition_of_route(route: int, n_partitions: int) -> int:
    """The partition of the canonical log that holds a route."""
    return route % n_partitions


def partition_of_query(query_id: str, n_partitions: int) -> int:
    """The partition of the canonical log that holds an already normalised query."""
    return partition_of_route(route_of_query(query_id), n_partitions)


def partition_of_model(model: str, n_partitions: int) -> int:
    """The partition of `interactions` that a model's are in."""
    digest = hashlib.blake2b(model.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % n_partitions


def routed_impression_id(unique: str, route: int) -> str:
    """An impression id from which a click can be routed without its query."""
    return f"{unique}{ROUTE_MARK}{route:016x}"


def route_of_impression(impression_id: str) -> int | None:
    """The route that an impression id carries, or None."""
    _, mark, route = impression_id.rpartition(ROUTE_MARK)
    return int(route, 16) if mark and _ROUTE.fullmatch(route) else None


def route_of_click(query_id: str | None, impression_id: str) -> int | None:
    """The route of a click's query, else the one that its impression's id holds."""
    query = normalised_query(query_id) if query_id is not None else ""
    return route_of_query(query) if query else route_of_impression(impression_id)


def identity(*parts: str) -> bytes:
    """The 16-byte identity of an event, made of the parts that name it."""
    # With lengths, no character inside a part can look like the next part.
    named = b"".join([b"%d:%b" % (len(raw), raw) for raw in map(str.encode, parts)])
    return hashlib.blake2b(named, digest_size=16).digest()
