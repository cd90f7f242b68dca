"""Drawn closed impressions, and what their scopes must hold by the definition."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from models.counts.cells import CellSummary
from models.counts.definition import ClosedImpression, count
from models.counts.scope_record import CAPPED, decode_scope
from models.counts.scope_summaries import rows_of_lists, summaries_by_group
from models.plackett_luce.placement import placement_batch
from rankstream.settings import LimitSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    ClickMark,
    Interaction,
)
from rankstream.wire.exposures import pack_exposures, unpack_exposures
from streams.state_pieces import Parts
from streams.statistics.keys import OPEN_SET, OVERFLOW_SET
from tests import event_factory

KEEP_MS = 1_000
N_GROUPS = 4
ACTIONS = {"buy": "purchase", "order": "purchase", "stay": "long"}
CLASSES = ("click", "long", "purchase")

SETS = (("a", "b", "c"), ("a", "b", "c", "d"), ("b", "d"), ("e", "f", "g"))
POLICIES = (UNKNOWN, MULTILEAVE, DETERMINISTIC, TAIL_SHUFFLE, PLACKETT_LUCE, LOGGED)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

ScopeKey = tuple[str, tuple[str, ...] | bytes, str, int]
"""Query, candidates or the name of a growing set, intervention, era."""


def draw_interaction(rng: np.random.Generator, at_ms: int) -> Interaction:
    """A closed impression of few queries, sets and interventions, with clicks."""
    candidates = list(SETS[rng.integers(len(SETS))])
    shown = rng.permutation(len(candidates))[: rng.integers(1, len(candidates) + 1)]
    policy = int(rng.choice(POLICIES))
    is_open = rng.random() < 0.2
    if is_open:
        chosen = [candidates[row] for row in shown]
        candidates = sorted(chosen)
        shown = np.array([candidates.index(item) for item in chosen])
    n, k = len(candidates), len(shown)
    exposures = np.full((n, k), rng.choice((0.1, 2.0**-20, 1e-8, 0.0)), "<f4")
    exposures[shown[0], 0] = rng.choice((0.0, 0.4))
    scores = (np.arange(n) * rng.choice((0.0, 1.0, 30.0))).astype("<f4")
    impression = event_factory.impression(
        "i",
        at_ms,
        query_id=str(rng.choice(["q", "r", "öl"])),
        intervention=str(rng.choice(["m", "n", "o"])),
        policy=policy,
        items=candidates,
        shown=[candidates[row] for row in shown],
        is_open_set=is_open,
        scores=scores.tobytes() if policy == PLACKETT_LUCE else b"",
        exposures=pack_exposures(exposures) if policy == LOGGED else b"",
        unit=int(rng.integers(2**63)) * 2 + 1,
    )
    actions = ["click", "click", "other", *ACTIONS]
    marks = [
        ClickMark(int(rng.integers(0, k + 2)), i, str(rng.choice(actions)))
        for i in range(rng.integers(0, 5) if rng.random() < 0.7 else 0)
    ]
    return Interaction(impression, marks)


def placement_of(interaction: Interaction) -> Any:
    """P(item at rank) of what has an exposure row."""
    one = interaction.impression
    n, k = len(_decode(one.candidates)), len(one.shown) // 2
    if one.policy == LOGGED:
        return unpack_exposures(one.exposures, n, k).astype(np.float64)
    scores = np.frombuffer(one.scores, "<f4").astype(np.float64)
    return placement_batch(scores[None], k)[0]


def row_of(interaction: Interaction) -> tuple[int, int, bytes, bytes]:
    """What tells an exposure row from others of its scope."""
    one = interaction.impression
    material = one.scores if one.policy == PLACKETT_LUCE else one.exposures
    items = one.candidates if one.is_open_set else b""
    return one.policy, len(one.shown) // 2, material, items


@dataclass
class Expected:
    """Scopes in plain lists; limits and eras as the rules say."""

    limits: LimitSettings
    keep_ms: int = KEEP_MS
    scopes: dict[ScopeKey, list[Interaction]] = field(
        default_factory=lambda: defaultdict(list)
    )
    n_left: int = 0

    def take(self, interaction: Interaction) -> None:
        """Put an interaction where it belongs."""
        one = interaction.impression
        era = one.at_ms // self.keep_ms
        candidates = OPEN_SET if one.is_open_set else tuple(_decode(one.candidates))
        key = (one.query_id, candidates, one.intervention, era)
        if key not in self.scopes:
            there = [k for k in self.scopes if (k[0], k[3]) == (one.query_id, era)]
            there = [k for k in there if k[1] != OVERFLOW_SET]
            sets, names = {k[1] for k in there}, {k[2] for k in there}
            if (candidates not in sets and len(sets) >= self.limits.candidate_sets) or (
                one.intervention not in names
                and len(names) >= self.limits.interventions
            ):
                key = (one.query_id, OVERFLOW_SET, "", era)
        self.scopes[key].append(interaction)

    def advance(self, watermark_ms: int) -> None:
        """Let eras go."""
        for key in list(self.scopes):
            if (key[3] + 2) * self.keep_ms <= watermark_ms:
                self.n_left += len(self.scopes.pop(key))

    def summaries(
        self, key: ScopeKey, items: list[str], reward: int
    ) -> dict[int, CellSummary]:
        """What a scope must hold by group; rows are named by what they are."""
        closed = [
            self._closed(interaction, items, key[1] == OVERFLOW_SET)
            for interaction in self.scopes[key]
        ]
        return count(
            closed,
            items,
            reward=reward,
            exposure_rows=self.limits.exposure_rows,
            is_growing=isinstance(key[1], bytes),
            is_capped=key[1] == OVERFLOW_SET,
        )

    def _closed(
        self, interaction: Interaction, items: list[str], is_capped: bool
    ) -> ClosedImpression:
        one = interaction.impression
        candidates = _decode(one.candidates)
        shown = [candidates[row] for row in np.frombuffer(one.shown, "<u2")]
        clicks: dict[int, list[int]] = defaultdict(list)
        for mark in interaction.clicks:
            number = CLASSES.index(ACTIONS.get(mark.action, "click"))
            clicks[number].append(mark.position)
        numbers = [items.index(item) for item in shown]
        matrix, row = None, b""
        if one.policy in (LOGGED, PLACKETT_LUCE) and not is_capped:
            given = placement_of(interaction)
            matrix = np.zeros((len(items), given.shape[1]))
            matrix[[items.index(item) for item in candidates]] = given
            row = _encode(row_of(interaction))
        group = one.unit % N_GROUPS
        return ClosedImpression(group, numbers, clicks, one.policy, row, matrix)


def stored(
    state: dict[bytes, bytes],
) -> Iterator[tuple[ScopeKey, list[str], int, dict[int, CellSummary]]]:
    """Scopes of a state: key, items by number, flags, and summaries by group."""
    values = Parts().joined(state)
    by_key = {tuple(_decode(key)): value for key, value in values.items()}
    for (kind, *place), value in by_key.items():
        if kind != "scope":
            continue
        query, name, intervention, era = place
        items = _decode(by_key["set", query, name, era])[1]
        pieces, lists = (
            {
                key[5]: piece
                for key, piece in by_key.items()
                if key[0] == what and list(key[1:5]) == place
            }
            for what in ("piece", "lists")
        )
        record = decode_scope(value, pieces, lists)
        rows = [_decode(by_key["row", *place, row])[1:] for row in record.rows]
        matrices = {}
        for number in rows_of_lists(record):
            policy, k, material, own = rows[number]
            assert policy == LOGGED
            candidates = _decode(own) if own else items
            matrices[number] = np.zeros((len(items), k))
            matrices[number][[items.index(item) for item in candidates]] = (
                unpack_exposures(material, len(candidates), k)
            )
        is_growing = name in (OPEN_SET, OVERFLOW_SET)
        summaries = summaries_by_group(record, items, matrices, is_growing=is_growing)
        names = {
            row: _encode(tuple(what))
            for row, what in zip(record.rows, rows, strict=True)
        }
        key = (query, name if is_growing else tuple(items), intervention, era)
        assert bool(record.flags & CAPPED) == (name == OVERFLOW_SET)
        yield (
            key,
            items,
            record.flags,
            {g: _named(s, names) for g, s in summaries.items()},
        )


def _named(summary: CellSummary, names: dict[bytes, bytes]) -> CellSummary:
    rows = sorted(
        (names[row], count)
        for row, count in zip(
            summary.row_names, summary.row_counts.tolist(), strict=True
        )
    )
    return replace(
        summary,
        row_names=tuple(name for name, _ in rows),
        row_counts=np.array([count for _, count in rows], np.int64),
    )
