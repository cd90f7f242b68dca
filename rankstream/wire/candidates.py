"""Records of the topic `candidates`: features that belong to a query and its items.

    key    MessagePack array: query, name of the candidate set, hash of the feature list
    value  MessagePack array: schema, number of features, items, features

The name of a set is that of the statistics. Items are sorted; features have a row for
each, little-endian float32, as the service gave them: neither shifted nor normalised.
"""

from typing import NamedTuple

import msgspec

from rankstream.wire.schemas import check_schema, decoded

SCHEMA = 1

_encode = msgspec.msgpack.Encoder().encode


class CandidatesKey(NamedTuple):
    """Whose features they are, and of which list of features."""

    query: str
    candidate_set: bytes
    features_hash: bytes


class CandidateFeatures(msgspec.Struct, frozen=True, array_like=True):
    """Features of all candidates of a query.

    `features` [n_items, n_features], one row behind the other.
    """

    schema: int
    n_features: int
    items: list[str]
    features: bytes


_decode_key = msgspec.msgpack.Decoder(CandidatesKey).decode
_decode_value = msgspec.msgpack.Decoder(CandidateFeatures).decode


def candidates_key(query: str, candidate_set: bytes, features_hash: bytes) -> bytes:
    """The key of one record."""
    return _encode((query, candidate_set, features_hash))


def decode_candidates_key(key: bytes) -> CandidatesKey:
    """What `candidates_key` made.

    Raises
    ------
    msgspec.DecodeError
        Where it is none.
    """
    return decoded(_decode_key, key)


def candidates_value(items: bytes, features: bytes, n_features: int) -> bytes:
    """The value of one record; `items` is a MessagePack array already."""
    return b"\x94" + _encode(SCHEMA) + _encode(n_features) + items + _encode(features)


def decode_candidates(value: bytes) -> CandidateFeatures:
    """What `candidates_value` made.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    msgspec.DecodeError
        Where it is none.
    """
    check_schema(value, SCHEMA, "features of candidates", "candidates")
    return decoded(_decode_value, value)
