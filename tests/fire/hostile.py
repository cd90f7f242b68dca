"""Records that ingestion meets one day, and what must become of each.

Every one is built around an otherwise good event of the given time, so that it is bad
for one reason only. Those with an empty list of codes are strange but good.
"""

import base64
import gzip
import json
import random
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes], ...]

LARGEST_BYTES = 8 * 1024 * 1024 - 4_096
"""About the largest value that fits an input record, with its headers."""

TWO_HOURS_MS = 7_200_000


class Hostile(NamedTuple):
    """A record, and the code of each of its elements that is a dead letter."""

    name: str
    topic: str
    value: bytes | None
    codes: tuple[str, ...]
    key: bytes | None = None
    headers: Headers = ()
    elements: tuple[bytes, ...] = ()
    """Raw bytes of each bad element, where they are not the whole record."""

    @property
    def letters(self) -> list[tuple[bytes | None, str]]:
        """Value and code of each dead letter."""
        values = self.elements or (self.value,) * len(self.codes)
        return list(zip(values, self.codes, strict=True))


def good_query(at_ms: int, name: str = "hostile") -> dict[str, Any]:
    """A query event with everything in it."""
    return {
        "schema": 1,
        "impression_id": f"{name}-{at_ms}",
        "query_id": "hostile query",
        "at_ms": at_ms,
        "model": "fire",
        "version": 0,
        "policy": "plackett-luce",
        "shown": ["b", "a"],
        "candidates": ["a", "b", "c"],
        "scores": [0.5, 1.5, -1.0],
        "features": [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]],
    }


def good_click(at_ms: int, name: str = "hostile") -> dict[str, Any]:
    """A click event."""
    return {
        "schema": 1,
        "impression_id": f"{name}-{at_ms}",
        "query_id": "hostile query",
        "at_ms": at_ms,
        "position": 1,
    }


def _json(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _raw(event: dict[str, Any], name: str, text: str) -> bytes:
    """An event with one field's text as it is."""
    marked = {**event, name: "@@"}
    return _json(marked).replace(b'"@@"', text.encode("utf-8", "surrogatepass"))


QUERY_FIELDS: list[tuple[str, str, Any, str]] = [
    ("boolean for an integer", "version", True, "malformed"),
    ("text for an integer", "version", "3", "malformed"),
    ("null for a text", "query_id", None, "malformed"),
    ("unknown schema", "schema", 2, "schema"),
    ("unknown field", "type", "impression", "malformed"),
    ("prototype field", "__proto__", {"admin": 1}, "malformed"),
    ("unknown policy", "policy", "thompson", "policy"),
    ("empty query", "query_id", " \t ", "no-route"),
    ("empty id", "impression_id", "", "identity"),
    ("long id", "impression_id", "x" * 257, "identity"),
    ("negative time", "at_ms", -1, "time"),
    ("time after the year 9999", "at_ms", 253_402_300_800_000, "time"),
    ("nothing shown", "shown", [], "shown"),
    ("shown twice", "shown", ["a", "a"], "shown"),
    ("not a candidate", "shown", ["a", "z"], "shown"),
    ("candidates twice", "candidates", ["a", "b", "b"], "candidates"),
    ("no candidates", "candidates", None, "scores"),
    ("empty candidate", "candidates", ["a", "b", ""], "identity"),
    ("scores too short", "scores", [0.5], "scores"),
    ("scores too long", "scores", [0.5] * 4, "scores"),
    ("no scores", "scores", None, "scores"),
    ("scores no base64", "scores", "not base64!", "scores"),
    ("scores beyond float32", "scores", [1e39, 0.0, 0.0], "scores"),
    ("features too short", "features", [[0.1]], "features"),
    ("features uneven", "features", [[0.1], [0.1, 0.2]], "features"),
    ("features empty", "features", [[], []], "features"),
    ("features of text", "features", [["a"], ["b"]], "malformed"),
    ("exposures beyond one", "exposures", [0.9] * 6, "exposures"),
    ("exposures below zero", "exposures", [-0.1] * 6, "exposures"),
    ("large version", "version", 2**63, "malformed"),
    ("large seed", "seed", 2**64, "malformed"),
]
"""Name, field, its value, code."""

CLICK_FIELDS: list[tuple[str, str, Any, str]] = [
    ("position zero", "position", 0, "position"),
    ("position below zero", "position", -1, "position"),
    ("position of a float", "position", 1.5, "malformed"),
    ("position of a boolean", "position", True, "malformed"),
    ("position of a text", "position", "3", "malformed"),
    ("position too large", "position", 10_001, "position"),
    ("position enormous", "position", 2**70, "position"),
    ("no place", "position", None, "identity"),
    ("no impression", "impression_id", "", "identity"),
    ("no route", "query_id", None, "no-route"),
    ("empty action", "action", "", "identity"),
    ("long event id", "event_id", "e" * 257, "identity"),
    ("unknown field of a click", "dwell", 3, "malformed"),
    ("unknown schema of a click", "schema", 99, "schema"),
]


def hostile_records(at_ms: int, now_ms: int, seed: int = 0) -> list[Hostile]:
    """One of each that is bad.

    Parameters
    ----------
    at_ms
        Event time of what would else be good.
    now_ms
        The wall clock.
    """
    rng = random.Random(seed)  # noqa: S311  bytes of no meaning
    query, click = good_query(at_ms), good_click(at_ms)
    records = [
        Hostile(name, "queries", _json({**query, field: value}), (code,))
        for name, field, value, code in QUERY_FIELDS
    ]
    records += [
        Hostile(name, "clicks", _json({**click, field: value}), (code,))
        for name, field, value, code in CLICK_FIELDS
    ]
    for event, topic in ((query, "queries"), (click, "clicks")):
        for name, value, code in _undecodable(event, rng):
            # A record needs a key or a value, say clients.
            key = b"gone" if value is None else None
            records.append(Hostile(f"{name}, {topic}", topic, value, (code,), key))
        ahead = _json({**event, "at_ms": now_ms + TWO_HOURS_MS})
        records.append(Hostile(f"hours ahead, {topic}", topic, ahead, ("time-future",)))
        records += _of_records(event, topic)
    deep = _raw(query, "attributes", '{"a":' * 100_000 + "1" + "}" * 100_000)
    records.append(Hostile("deep objects", "queries", deep, ("not-json",)))
    return records + _large(query)


def _undecodable(
    event: dict[str, Any], rng: random.Random
) -> list[tuple[str, bytes | None, str]]:
    whole = _json(event)
    numbers = {
        "NaN": "not-json",
        "Infinity": "not-json",
        "-Infinity": "not-json",
        "1e999": "malformed",
        "9" * 5_000: "malformed",
        str(2**70): "time",
        "1.5": "malformed",
    }
    found: list[tuple[str, bytes | None, str]] = [
        (f"time {text[:20]}", _raw(event, "at_ms", text), code)
        for text, code in numbers.items()
    ]
    deep = "[" * 100_000 + "]" * 100_000
    found += [
        ("tombstone", None, "empty"),
        ("empty", b"", "empty"),
        ("white space", b" \n\t ", "empty"),
        ("one byte", b"x", "not-json"),
        ("one digit", b"7", "malformed"),
        ("one zero byte", b"\0", "not-json"),
        ("random bytes", b"\x80" + rng.randbytes(4_096), "not-json"),
        ("gzip", gzip.compress(whole, mtime=0), "not-json"),
        ("protobuf", b"\x08\x96\x01\x12\x07testing\x1a\x02\x08\x01", "not-json"),
        ("byte order mark", b"\xef\xbb\xbf" + whole, "not-json"),
        ("UTF-16", whole.decode().encode("utf-16"), "not-json"),
        ("cut off", whole[:-3], "not-json"),
        ("two events", whole + whole, "not-json"),
        ("trailing comma", whole[:-1] + b",}", "not-json"),
        ("single quotes", whole.replace(b'"', b"'"), "not-json"),
        ("invalid UTF-8", whole.replace(b"hostile query", b"\xff\xfe"), "not-json"),
        ("lone surrogate", whole.replace(b"hostile query", b"\\ud800"), "not-json"),
        ("deep nesting", _raw(event, "attributes", deep), "malformed"),
        ("text", b'"an event"', "malformed"),
        ("null", b"null", "malformed"),
        ("empty object", b"{}", "malformed"),
        ("unclosed batch", b"[" + whole, "not-json"),
        ("empty batch", b"[]", "empty-batch"),
        ("long batch", b"[" + b"1," * 100_000 + b"1]", "batch"),
    ]
    return found


def _of_records(event: dict[str, Any], topic: str) -> list[Hostile]:
    """What is strange about records rather than about events."""
    bad = _json({**event, "unexpected": "\x1b[31m<script>\r\n__proto__"})
    other = _json({**event, "schema": 7})
    many = tuple((f"header-{n}", bytes([n])) for n in range(200))
    forged: Headers = (
        ("__rankstream.errors.code", b"forged"),
        ("__rankstream.errors.offset", b"0"),
        ("", b"\xff\x00"),
    )
    batch = b"[ " + bad + b",1 ,\n" + other + b"]"
    return [
        Hostile(
            f"200 headers, {topic}", topic, bad, ("malformed",), b"\xff\0key", many
        ),
        Hostile(f"forged headers, {topic}", topic, bad, ("malformed",), b"", forged),
        Hostile(f"another's key, {topic}", topic, other, ("schema",), b"another query"),
        Hostile(
            f"batch, {topic}",
            topic,
            batch,
            ("malformed", "malformed", "schema"),
            b"key",
            elements=(bad, b"1", other),
        ),
    ]


def _large(query: dict[str, Any]) -> list[Hostile]:
    names = [f"d{n}" for n in range(10_001)]
    many = {**query, "candidates": names, "shown": ["d1"], "scores": None}
    many |= {"policy": "unknown", "features": None}
    shown = {**many, "candidates": None, "shown": names[:1_001]}
    padded = _json({**query, "schema": 3})
    padded += b" " * (LARGEST_BYTES - len(padded))
    # Zeros take two bytes as text and four as numbers.
    grows = {**shown, "shown": names[:1_000], "features": [[0] * 3_000] * 1_000}
    return [
        Hostile("10,001 documents", "queries", _json(many), ("too-many-documents",)),
        Hostile("1,001 shown", "queries", _json(shown), ("shown",)),
        Hostile("largest record", "queries", padded, ("schema",)),
        Hostile("too large once read", "queries", _json(grows), ("too-large",)),
    ]


def strange_queries(at_ms: int) -> list[tuple[str, bytes, str, list[str]]]:
    """Good ones that look bad: name, value, normalised query, shown items."""
    query = good_query(at_ms)
    plain = {**query, "policy": "unknown", "scores": None, "features": None}
    names = [f"d{n:05}" for n in range(10_000)]
    wide = [f"w{n:03}" for n in range(200)]
    zeros = base64.b64encode(bytes(4 * 136 * 200)).decode()
    build: list[tuple[str, dict[str, Any], str]] = [
        ("zero features", {**query, "features": [[0.0] * 4] * 2}, "hostile query"),
        ("script", {**plain, "query_id": "<script>\x1b[31m\n__proto__"},
         "<script>\x1b[31m __proto__"),
        ("10,000 documents", {**plain, "candidates": names, "shown": names[-10:]},
         "hostile query"),
        ("200 by 136", {**query, "candidates": wide, "shown": wide,
                        "scores": [0.5] * 200, "features": zeros}, "hostile query"),
        ("heavy", {**plain, "attributes": {"note": ""}}, "hostile query"),
    ]  # fmt: skip
    found = []
    for name, event, normalised in build:
        event["impression_id"] = f"strange {name}"
        if name == "heavy":
            room = LARGEST_BYTES - len(_json(event))
            event["attributes"] = {"note": "y" * room}
        found.append((name, _json(event), normalised, list(event["shown"])))
    twice = {**plain, "impression_id": "strange keys"}
    value = _json(twice)[:-1] + b',"query_id":"Second\\u00c9 KEY"}'
    found.append(("twice the same key", value, "secondé key", ["b", "a"]))
    return found
