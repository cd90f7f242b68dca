"""Input events drawn at random: most are plain, each rule is broken now and then."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankstream.wire.bounds import (
    LAST_MS,
    MAX_CANARY_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_QUERY_CHARACTERS,
)
from rankstream.wire.events import POLICIES
from tests.fuzz.mutating import STRANGE, spoilt

NOW_MS = 1_700_000_000_000

LONG_IDS = ["x" * MAX_ID_CHARACTERS, "x" * (MAX_ID_CHARACTERS + 1)]
WIDE_IDS = ["ä" * MAX_ID_CHARACTERS, "\U0001f600" * (MAX_ID_CHARACTERS + 1)]
RARE_IDS = [*LONG_IDS, *WIDE_IDS, "", "\x00", "a~b", "\u202e"]

ASCII = "".join(map(chr, range(128)))

QUERIES_SAID = [
    ASCII, ASCII[::-1], "Red  Shoes", " a\tb\n", "\x1fq\x1c x", "x", "@[`{", "a" * 31,
    "b" * 32, "c" * 300, "Straße", "CAFE\u0301  x", "a\u00a0\u3000b", "İ", "\u212a",
    "\u65e5\u672c " * 700, "ÄÖ", "\u3000",
]  # fmt: skip
RARE_QUERIES = [
    "", " \t\x1e",
    "q" * MAX_QUERY_CHARACTERS, "q" * (MAX_QUERY_CHARACTERS + 1),
    "ä" * MAX_QUERY_CHARACTERS,
]  # fmt: skip

RARE_TIMES = [
    0, -1, 1, 99_999_999, 100_000_000, 99_999_999_999, 100_000_000_000, NOW_MS // 1_000,
    NOW_MS * 1_000, LAST_MS, LAST_MS + 1, 2**63 - 1, 2**63, 2**64, 2**70,
]  # fmt: skip

RARE_SEEDS = [-1, -32, -33, -(2**63), -(2**63) - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64]

FLOATS = [0.0, -0.0, 1.5, -2.25, 1e-45, 1e-46, 3.4028234663852886e38, 7]
RARE_FLOATS = [3.4028235677973366e38, 3.5e38, -1e39, 1e300]

LONG_CANARIES = ["c" * MAX_CANARY_CHARACTERS, "c" * (MAX_CANARY_CHARACTERS + 1)]

LEVELS = 20
"""Attributes nest by so many levels at most."""


class DrawnEvents:
    """Events of either topic.

    Parameters
    ----------
    rare
        The probability of each thing that breaks, or nearly breaks, a rule.
    country
        How often a list has attributes, of which one is a country.
    """

    def __init__(self, seed: int, rare: float = 0.02, country: float = 0.06) -> None:
        self.rng = np.random.default_rng(seed)
        self._rare = rare
        self._country = country

    def pick(self, usual: Sequence[Any], rare: Sequence[Any] = ()) -> Any:
        """One of what is usual, seldom of what is rare."""
        of = rare if rare and self.rng.random() < self._rare else usual
        return of[int(self.rng.integers(len(of)))]

    def pick_sound(self, sound: Sequence[Any], wrong: Sequence[Any]) -> Any:
        """The same of what is seldom there: what is wrong of it less seldom."""
        is_wrong = self._rare > 0 and self.rng.random() < 0.2
        return self.pick(wrong if is_wrong else sound)

    def below(self, n: int) -> int:
        """From 0 on."""
        return int(self.rng.integers(n))

    def query(self, appended_ms: int) -> dict[str, Any]:
        """A query event."""
        names, shown, n_ranks = self._items()
        event: dict[str, Any] = {
            "impression_id": self._impression_id(),
            "query_id": self.pick(QUERIES_SAID, RARE_QUERIES),
            "at_ms": self._at_ms(appended_ms),
            "shown": shown,
        }
        policy = self.pick([*range(len(POLICIES))])
        self._maybe(event, "policy", lambda: self.pick([POLICIES[policy]], ["magic"]))
        if names is not None:
            event["candidates"] = names
        if names is not None or self.rng.random() < 5 * self._rare:
            n = len(shown if names is None else names)
            self._maybe(event, "scores", lambda: self._numbers(n), 0.6)
            if self.rng.random() < 0.4:
                event["exposures"] = self._exposures(n, n_ranks)
        self._maybe(event, "features", lambda: self._features(n_ranks))
        ids = ["m", "model", ""]
        self._maybe(event, "model", lambda: self.pick(ids, RARE_IDS))
        self._maybe(event, "intervention", lambda: self.pick([*ids, None], RARE_IDS))
        self._maybe(event, "version", lambda: self.pick([0, 1, 200, 2**40], RARE_SEEDS))
        self._maybe(
            event, "seed", lambda: self.pick([0, 7, 255, 2**40, -5], RARE_SEEDS)
        )
        self._maybe(event, "schema", lambda: self.pick([1], [0, 2, "1", 1.0, True]))
        for name in ("user", "session"):
            self._maybe(event, name, lambda: self.pick(["u1", "ü", "", None], RARE_IDS))
        self._add_extra(event, n_ranks)
        return event

    def click(self, appended_ms: int) -> dict[str, Any]:
        """A click event."""
        event: dict[str, Any] = {
            "impression_id": self._impression_id(),
            "at_ms": self._at_ms(appended_ms),
        }
        positions = [0, -1, 2**31, 2**63, 2**64, 1_001]
        if self.rng.random() < 0.7:
            event["position"] = self.pick([1, 2, 18, 19, 20, 128, 1_000], positions)
        if self.rng.random() < 0.5:
            event["item_id"] = self.pick(["d1", "dä", "x" * 40], [*RARE_IDS, None])
        self._maybe(
            event, "query_id", lambda: self.pick([*QUERIES_SAID, None], RARE_QUERIES)
        )
        self._maybe(event, "action", lambda: self.pick(["click", "cart"], RARE_IDS))
        self._maybe(
            event, "event_id", lambda: self.pick(["e1", "", "é", None], RARE_IDS)
        )
        self._maybe(event, "schema", lambda: self.pick([1], [0, 2, None]))
        return event

    def packed(self, event: dict[str, Any]) -> bytes:
        """As JSON of some style; seldom with something strange, or spoilt."""
        if self.rng.random() < self._rare:
            name = list(event)[self.below(len(event))]
            strange = [one for one in STRANGE if not isinstance(one, bytes)]
            event = event | {name: strange[self.below(len(strange))]}
        if self.rng.random() < self._rare:
            event = event | {"surprise": 1}
        if self.rng.random() < 0.3:
            names = [list(event)[i] for i in self.rng.permutation(len(event))]
            event = {name: event[name] for name in names}
        style = self.pick([(",", ":"), (", ", ": "), (" ,\n", "\t:")])
        plain = bool(self.rng.random() < 0.5)
        text = json.dumps(event, separators=style, ensure_ascii=plain)
        packed = text.encode(errors="surrogatepass")
        if self.rng.random() < self._rare:
            return spoilt(packed, [packed], self.rng)
        return packed

    def _maybe(
        self,
        event: dict[str, Any],
        name: str,
        value: Callable[[], Any],
        often: float = 0.3,
    ) -> None:
        if self.rng.random() < often:
            event[name] = value()

    def _impression_id(self) -> str:
        unique, route = f"{self.below(1 << 30):x}", f"{self.below(1 << 60):016x}"
        usual = [f"{unique}~{route}", f"{unique}~{route.upper()}", f"~{route}"]
        wrong = [unique, f"{unique}~{route}0", f"{unique}~{route[:15]}g", f"{route}~"]
        return str(self.pick(usual, [*wrong, *RARE_IDS]))

    def _at_ms(self, appended_ms: int) -> int:
        edge = [appended_ms + 300_000, appended_ms + 300_001]
        usual = appended_ms - self.below(20_000)
        return int(self.pick([usual], [*edge, *RARE_TIMES]))

    def _items(self) -> tuple[list[str] | None, list[str], int]:
        """Candidates in any order, what is shown of them, and how many that is."""
        n = self.pick([1, 2, 5, 10, 19, 20], [15, 16, 17, 40, 300, 1_001])
        stem = self.pick(["d", "item-0000", "é"])
        names = [f"{stem}{number}" for number in range(n)]
        if self.rng.random() < self._rare:
            names[self.below(n)] = self.pick(RARE_IDS)
        names = [names[i] for i in self.rng.permutation(n)]
        k = 1 + self.below(n)
        shown = [names[i] for i in self.rng.permutation(n)[:k]]
        if self.rng.random() < self._rare:
            shown[self.below(k)] = self.pick([*names, "elsewhere"])
        if self.rng.random() < self._rare:
            names[self.below(n)] = names[0]
        if self.rng.random() < self._rare:
            return self.pick([[], names]), [], 0
        return (names if self.rng.random() < 0.7 else None), shown, k

    def _numbers(self, n: int) -> Any:
        if self.rng.random() < self._rare:
            n += self.pick([1, -1])
        numbers = [self.pick(FLOATS, RARE_FLOATS) for _ in range(n)]
        return self._vector(numbers) if self.rng.random() < 0.5 else numbers

    def _vector(self, numbers: Any) -> str:
        """Of float32, in base64."""
        with np.errstate(over="ignore"):
            packed = np.asarray(numbers, np.float64).astype("<f4").tobytes()
        return self._text(packed)

    def _text(self, packed: bytes) -> str:
        """Base64, seldom one that is odd."""
        text = base64.b64encode(packed).decode()
        odd = [
            text[:-1], text + "=", text + "\n", text[:-2] + "~=", "=" + text, "",
            text.rstrip("="), text[:-2] + "//", text[:-1] + "B",
        ]  # fmt: skip
        return str(self.pick([text], odd))

    def _exposures(self, n: int, k: int) -> Any:
        matrix = np.zeros((n, k))
        for rank in range(min(n, k)):
            matrix[self.below(n) if self.rng.random() < 0.1 else rank, rank] = 1.0
        if self.rng.random() < 0.5:
            matrix = np.full((n, k), 1 / max(n, k, 1))
        matrix[matrix == 0] = self.pick([0.0, -0.0])
        factor = self.pick([1.0, 0.5], [0.0, 1.00009, 1.0001, 1.00011, -1.0, 2.0])
        flat = (matrix * factor).reshape(-1)
        if self.rng.random() < self._rare and len(flat):
            flat[self.below(len(flat))] = self.pick([-0.0, -1e-9, 0.3])
        return self._vector(flat) if self.rng.random() < 0.6 else flat.tolist()

    def _features(self, k: int) -> Any:
        width = 1 + self.below(3)
        rows = self.rng.random((k, width)).tolist()
        usual = self._vector(np.array(rows).reshape(-1))
        return self.pick([usual], [rows, self._vector([1.0] * (k + 1)), [[]], ""])

    def _add_extra(self, event: dict[str, Any], k: int) -> None:
        """What only later stages read."""
        n = len(event.get("candidates") or event["shown"])
        for name, value in {
            "canary": lambda: self.pick_sound(["m/1", "", "ü"], LONG_CANARIES),
            "experiment": lambda: {
                "id": "x",
                "epoch": self.pick_sound([1, 2**31 - 1], [0, -1, 2**31, 2**64 - 1]),
                "method": "ab",
            },
            "assignments": lambda: [
                self.pick([-1, 0, 999], [-2, 1_000, 2**63])
                for _ in range(k + self.pick([0], [1]))
            ],
            "rankings": lambda: {
                f"r{i}": event["shown"] for i in range(self.below(20))
            },
            "ranks": lambda: self._ranks(n, k),
        }.items():
            self._maybe(event, name, value, 0.06)
        self._maybe(event, "attributes", self._attributes, self._country)
        if self.rng.random() < 0.15:
            numbers = self.rng.random(n * (1 + self.below(3)) + self.pick([0], [1]))
            odd = [[[0.5]] * n, self._vector([1e39] * n), ""]
            event["candidate_features"] = self.pick_sound([self._vector(numbers)], odd)
        if self.rng.random() < (0.5 if "candidate_features" in event else self._rare):
            wrong = ["0123456789abcdeF", "0123456789abcdeg", "0" * 15, "0" * 17]
            event["features_hash"] = self.pick_sound(["0123456789abcdef"], wrong)

    def _attributes(self) -> Any:
        nested = self.pick([7, 2**64 - 1, -(2**63), "NL", None, 0.5, True], [2**64])
        for _ in range(self.pick([0, 2, 13, 14], [15, 16, LEVELS])):
            more = {f"k{i}": i for i in range(self.pick([0, 1, 20]))}
            nested = self.pick([{"a": nested} | more, [nested], [[], {}, nested]])
        country = self.pick(
            ["NL", " nl\t", "Ü", "a\x1fb"], ["", 7, "\u3000", "x" * 257]
        )
        return self.pick([{"country": country, "n": nested}], [{}, nested])

    def _ranks(self, n: int, k: int) -> str:
        """Of each shown item by one to three rankers."""
        columns = [self.rng.permutation(n)[:k] + 1 for _ in range(1 + self.below(3))]
        ranks = np.array(columns, "<u2").T.copy()
        if ranks.size:
            wrong = [0, n + 1, ranks[0, 0]] if len(ranks) > 1 else [0, n + 1]
            ranks[-1, 0] = self.pick_sound([ranks[-1, 0]], wrong)
        more = self.pick_sound([b""], [b"\x01", b"\x01\x00"])
        return self._text(ranks.tobytes() + more)
