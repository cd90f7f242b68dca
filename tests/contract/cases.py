"""What the test vectors are computed from."""

from typing import Any

NOW_MS = 1_795_257_000_000

QUERIES = (
    "red shoes",
    "  Red \t SHOES\n",
    "Stra\u00dfe",
    "STRASSE",
    "\u0130stanbul",  # a capital with a dot, which folds to two characters
    "\u0131",  # and a small letter without, which folds to itself
    "\u039f\u0394\u039f\u03a3 \u03bf\u03b4\u03cc\u03c2",  # both small sigmas fold alike
    "cafe\u0301",
    "caf\u00e9",
    "\u1e9e\ufb03",  # a capital sharp s, and a ligature
    "\uff21\uff22",  # full width stays full width
    "a\u00a0b\u3000c\u2003d\u0085e",  # spaces beyond ASCII
    "a\x1cb\x1fc",  # separators of ASCII are spaces too
    "a\ufeffb\u200bc",  # these are none
    "\u5bff\u53f8 \U0001f363",
    "\u13a0\uab70",  # Cherokee folds to capitals
    "0",
)

SEGMENTS = (
    ("red shoes", "NL"),
    ("Red shoes", " nl "),
    ("red", "shoes nl"),
    ("red\x1fshoes", "nl"),  # the mark is white space in what clients send
    ("red", "shoes\x1fnl"),
    ("caf\u00e9", "cafe\u0301"),
)

UNITS: tuple[dict[str, Any], ...] = (
    {"impression_id": "f3a9", "session": "s81"},
    {"impression_id": "f3a9", "session": "s81", "user": "u1"},
    {"impression_id": "f3a9", "user": "u1"},
    {"impression_id": "f3a9", "session": "", "user": "u1"},
    {"impression_id": "f3a9", "session": "", "user": ""},
    {"impression_id": "f3a9"},
    {"impression_id": "f3a9", "session": "\u00fc\U0001f45f"},
    {"impression_id": "f3a9", "session": "x" * 200},
)

SHARES = (
    ("boost", "s81"),
    ("boost", "s82"),
    ("boost", "s83"),
    ("other", "s81"),
    ("\u00fcber", "\U0001f45f"),
    *(("boost", f"unit-{number}") for number in range(12)),
)

FEATURE_LISTS = (
    ["f1"],
    ["bm25", "age", "price"],
    ["age", "bm25", "price"],
    ["Gr\u00f6\u00dfe"],
)

_TWO = {"new": ["a", "c", "b", "d"], "old": ["a", "b", "c", "d"]}
_SHORT = {"new": ["a", "b", "x"], "old": ["a", "b", "c", "d", "e"]}
_THREE = {"z": ["a", "b", "c"], "m": ["a", "c", "b", "d"], "A": ["a", "d", "c"]}
_APART = {"\u00e9": ["p", "q"], "b": ["r", "s"]}
_BEYOND = {"\U0001f45f": ["a", "b", "c"], "\uff21": ["c", "b", "a"]}
_EMPTY = {"new": [], "old": ["a", "b"]}
_REPEATS = {"new": ["b", "b", "a"], "old": ["a", "b", "a"]}


def _comparisons() -> list[dict[str, Any]]:
    """Each method on each set of rankings, under ids of its own."""
    found: list[dict[str, Any]] = []
    kinds = (_TWO, _SHORT, _THREE, _APART, _BEYOND, _EMPTY, _REPEATS)
    methods = (
        "team-draft",
        "sample-scored",
        "pairwise-preference",
        "probabilistic",
        "balanced",
        "debiased-balanced",
        "ab",
    )
    for method in methods:
        for number, rankings in enumerate(kinds):
            if len(rankings) > 2 and "balanced" in method:
                continue
            for draw, length in ((0, 3), (1, 10)):
                case: dict[str, Any] = {
                    "method": method,
                    "impression_id": f"{method}-{number}-{draw}",
                    "rankings": rankings,
                    "length": length,
                }
                if draw:
                    items = {item for row in rankings.values() for item in row}
                    case |= {"candidates": sorted(items | {"zz"}), "epoch": 2}
                found.append(case)
    last = {"method": "probabilistic", "rankings": _TWO, "length": 4}
    found.append(last | {"impression_id": "soft", "options": {"tau": 1.5}})
    return found


COMPARISONS = _comparisons()
