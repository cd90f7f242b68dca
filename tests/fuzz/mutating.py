"""Records spoilt at random: their bytes, or what they hold."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**15, 2**31, 2**53 + 1, 2**63, 2**64 - 1, -(2**63),
    0.0, -0.0, 1.5, 1e300, -1e-300, "", "a", "\x00", "e\u0301", "\u202e", "\U0001f600",
    "x" * 300, b"", b"\x00", b"\xff" * 16, [], {}, [None], {"a": 1}, [[]] * 3,
)  # fmt: skip
"""Of any place in a record; those that JSON has not are left out there."""

TEXTS = (
    b"NaN", b"Infinity", b"1e999", b"-1e999", b"9" * 400, b'"\\ud800"', b"\xff\xfe",
    b"\xef\xbb\xbf", b"[" * 2_000, b'{"a":' * 2_000, b"\x91" * 2_000, b"\xc1", b"\x00",
    b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xd6\xff\xff\xff\xff\xff",
    b"\xa2\xff\xfe", b"\xa1a\xa1a",
)  # fmt: skip
"""That no encoder writes."""

MOST_BYTES = 1 << 14
"""Records grow to about this size."""

_pack = msgspec.msgpack.Encoder().encode


def spoilt(value: bytes, others: Sequence[bytes], rng: np.random.Generator) -> bytes:
    """One to four changes of a record; `others` lend pieces."""
    found = value
    for _ in range(int(rng.integers(1, 5))):
        if rng.random() < 0.5:
            found = _held(found, rng)
        else:
            change = CHANGES[int(rng.integers(len(CHANGES)))]
            found = change(found, others[int(rng.integers(len(others)))], rng)
    return found[:MOST_BYTES]


def _held(value: bytes, rng: np.random.Generator) -> bytes:
    """Another value somewhere in the tree that the record holds, if it is one."""
    for decode, encode in (
        (json.loads, lambda tree: json.dumps(tree).encode()),
        (msgspec.msgpack.decode, _pack),
    ):
        try:
            return bytes(encode(_grafted(decode(value), rng)))
        except (ValueError, TypeError, RecursionError, OverflowError):
            continue
    return _flipped(value, b"", rng)


def _grafted(tree: Any, rng: np.random.Generator) -> Any:
    """The tree with one node replaced, repeated or taken away."""
    if isinstance(tree, dict | list) and tree and rng.random() < 0.85:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[int(rng.integers(len(keys)))]
        draw = rng.random()
        if draw < 0.1:
            del tree[key]
        elif draw < 0.2 and isinstance(tree, list):
            tree.insert(key, tree[key])
        else:
            tree[key] = _grafted(tree[key], rng)
        return tree
    if isinstance(tree, bytes) and tree and rng.random() < 0.5:
        return _held(tree, rng)  # packed inside
    if isinstance(tree, int) and rng.random() < 0.5:
        return tree + int(rng.integers(-2, 3))
    return STRANGE[int(rng.integers(len(STRANGE)))]


def _flipped(value: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(value or b"\x00")
    found[int(rng.integers(len(found)))] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _overwritten(value: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(value or b"\x00")
    found[int(rng.integers(len(found)))] = int(rng.integers(256))
    return bytes(found)


def _cut(value: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    start, end = sorted(int(each) for each in rng.integers(len(value) + 1, size=2))
    return value[:start] + value[end:]


def _repeated(value: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    start, end = sorted(int(each) for each in rng.integers(len(value) + 1, size=2))
    return value[:end] + value[start:end] + value[end:]


def _crossed(value: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    here, there = (int(rng.integers(len(each) + 1)) for each in (value, other))
    return value[:here] + other[there:]


def _inserted(value: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(value) + 1))
    text = TEXTS[int(rng.integers(len(TEXTS)))]
    over = len(text) if rng.random() < 0.5 else 0
    return value[:at] + text + value[at + over :]


CHANGES: tuple[Callable[[bytes, bytes, np.random.Generator], bytes], ...] = (
    _flipped, _overwritten, _cut, _repeated, _crossed, _inserted,
)  # fmt: skip
