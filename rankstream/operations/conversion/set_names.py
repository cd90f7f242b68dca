"""Names of candidate sets as the core gives them (`streams/native/scopes.c`).

A converted set has the name that its next list will have, so that it stays one set.
"""

import struct

_ALL_BITS = (1 << 64) - 1
_SECRETS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)


def set_name(candidates: bytes) -> bytes:
    """The name of a closed set, 16 bytes, of its sorted items as MessagePack."""
    first, second, _ = _SECRETS
    first = _folded(first ^ _SECRETS[0], len(candidates) ^ _SECRETS[1])
    padded = candidates + bytes(-len(candidates) % 16)
    for left, right in struct.iter_unpack("<2Q", padded):
        first = _folded(left ^ _SECRETS[1], right ^ first)
        second = _folded(left ^ second, right ^ _SECRETS[2])
    return struct.pack("<2Q", first, second ^ first)


def _folded(left: int, right: int) -> int:
    """The halves of the 128-bit product and its factors, one over the other."""
    product = left * right
    return (product >> 64 ^ product ^ left ^ right) & _ALL_BITS
