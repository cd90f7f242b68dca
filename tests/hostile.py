"""Input records that nobody should send, each with how many dead letters it is."""

import gzip
import json
from typing import Any

NOW_MS = 1_700_000_000_000


def query(name: str, **fields: Any) -> dict[str, Any]:
    """A good query event, to be spoilt."""
    event: dict[str, Any] = {
        "impression_id": name,
        "query_id": "hostile",
        "at_ms": NOW_MS - 1_000,
        "shown": ["a", "b"],
    }
    return event | fields


def as_json(name: str, **fields: Any) -> bytes:
    """The same as JSON."""
    return json.dumps(query(name, **fields)).encode()


def _nested(depth: int) -> dict[str, Any]:
    return {"a": _nested(depth - 1)} if depth else {}


def hostile_records() -> dict[str, bytes | None]:
    """Record by what is wrong with it; each is exactly one dead letter."""
    text = as_json("h")
    return {
        "null value": None,
        "empty": b"",
        "one byte": b"\x00",
        "random bytes": bytes(range(256)) * 16,
        "gzip": gzip.compress(text),
        "protobuf": b"\x0a\x03abc\x10\x96\x01",
        "byte order mark": b"\xef\xbb\xbf" + text,
        "invalid UTF-8": text.replace(b'"h"', b'"\xff\xfe"'),
        "lone surrogate": text.replace(b'"h"', b'"\\ud800"'),
        "NaN": text.replace(b'"at_ms": 1699999999000', b'"at_ms": NaN'),
        "Infinity": text.replace(b'"at_ms": 1699999999000', b'"at_ms": Infinity'),
        "-Infinity": text.replace(b'"at_ms": 1699999999000', b'"at_ms": -Infinity'),
        "1e999": text.replace(b'"at_ms": 1699999999000', b'"at_ms": 1e999'),
        "5,000 digits": text.replace(b"1699999999000", b"9" * 5_000),
        "2**70": as_json("h", at_ms=2**70),
        "true for a number": as_json("h", at_ms=True),
        "text for a number": as_json("h", at_ms="3"),
        "fraction for a number": as_json("h", at_ms=1.5),
        "negative time": as_json("h", at_ms=-5),
        "year 9999 and later": as_json("h", at_ms=10**15),
        "seconds of the future": as_json("h", at_ms=NOW_MS + 7_200_000),
        "deep nesting": b'{"attributes":' + b'{"a":' * 100_000,
        "deep array": b"[" * 100_000,
        "marks upon a letter": as_json("h", query_id="a" + "\u0301\u0316" * 125_000),
        "deep attributes": as_json("h", attributes=_nested(17)),
        "attributes of 65 bits": as_json("h", attributes={"n": [2**64]}),
        "assignments of 64 bits": as_json("h", assignments=[2**63, 1]),
        "assignments of 100 bits": as_json("h", assignments=[10**30, 1]),
        "assignments of another list": as_json("h", assignments=[0, 1, 0]),
        "epoch of 65 bits": as_json(
            "h", experiment={"id": "x", "epoch": 2**64, "method": "ab"}
        ),
        "empty batch": b"[]",
        "array of nothing good": b"[7]",
        "missing field": b'{"impression_id":"h"}',
        "extra field": as_json("h", surprise=1),
        "null field": as_json("h", shown=None),
        "unknown schema": as_json("h", schema=9),
        "unknown policy": as_json("h", policy="magic"),
        "no documents": as_json("h", shown=[]),
        "documents twice": as_json("h", shown=["a", "a"], candidates=["a", "b"]),
        "1,001 documents": as_json("h", shown=[f"d{i}" for i in range(1_001)]),
        "20,000 candidates": as_json("h", candidates=[f"d{i}" for i in range(20_000)]),
        "features too short": as_json("h", features=[[1.0], [1.0, 2.0]]),
        "too few scores": as_json("h", candidates=["a", "b"], scores=[1.0]),
        "scores beyond float32": as_json("h", candidates=["a", "b"], scores=[1, 1e300]),
        "long id": as_json("x" * 10_000),
        "blank query": as_json("h", query_id=" \t "),
    }


def strange_but_good() -> dict[str, bytes]:
    """Records that look hostile and are good events."""
    strange = "<script>\u2028\u202e\x1b[31m\n\x00 __proto__ \U0001f600"
    return {
        "strange characters": as_json("good-1", query_id=strange),
        "duplicate keys": as_json("good-0").replace(
            b'"good-0"', b'"x", "impression_id": "good-2"'
        ),
        "old time": as_json("good-3", at_ms=NOW_MS - 10_000),
        "negative zero": as_json(
            "good-4", candidates=["a", "b"], scores=[-0.0, 0.0], policy="plackett-luce"
        ),
        "ten thousand candidates": as_json(
            "good-5",
            candidates=[f"d{i}" for i in range(10_000)],
            shown=["d1"],
            scores=[0.0] * 10_000,
            policy="plackett-luce",
        ),
    }
