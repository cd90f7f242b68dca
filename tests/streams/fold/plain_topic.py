"""The topic `statistics` as plain counts would write it, and any such topic decoded.

Names of sets and rows, in which pieces a scope is written, and how items of growing
sets are numbered are left open; `decoded` hides them, so that what remains compares.
"""

import hashlib
from collections import Counter, defaultdict

import msgspec

from rankstream.wire.events import LOGGED, PLACKETT_LUCE
from streams.state_pieces import Parts
from tests.streams.fold.plain_statistics import (
    OPEN_SET,
    OVERFLOW_SET,
    PAIR_COUNTS,
    comparable,
    row_of,
    shown_of,
)

SCHEMA = 2
LONGEST, MOST_MASKS = 32, 63
CAPPED, OVERFLOWED, TRUNCATED = 1, 2, 4
TOTALS = (
    "impressions",
    "without_click",
    "clicks",
    "clicks_squared",
    "without_exposure",
    "clipped",
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Forms:
    """The impressions of a scope, each in list form or in the general form.

    `lists` counts [row or -1 - policy, items] by group and mask.
    """

    def __init__(self, plain, place):
        self.rows = plain.rows_of(place)
        self.flags = CAPPED if place[1] == OVERFLOW_SET else 0
        self.lists = {}
        self.general = defaultdict(list)
        for one in plain.scopes[place]:
            group, clicked = plain.group_of(one), plain.clicked(one)
            mask = sum(1 << (rank - 1) for rank in clicked)
            if not self.fits(plain.limits, one.impression, group, mask):
                self.general[group].append(one)

    def fits(self, limits, impression, group, mask):
        """Whether an impression was counted in list form."""
        shown, row = tuple(shown_of(impression)), row_of(impression)
        if self.flags & CAPPED:
            return False
        if len(shown) > LONGEST:
            self.flags |= TRUNCATED
        if row is not None and row not in self.rows:
            self.flags |= OVERFLOWED
            return False
        if impression.policy == PLACKETT_LUCE or len(shown) > LONGEST:
            return False
        number = self.rows.index(row) if row else -1 - impression.policy
        if (number, shown) not in self.lists and len(self.lists) >= limits.lists:
            self.flags |= OVERFLOWED
            return False
        groups = self.lists.setdefault((number, shown), {})
        masks = groups.setdefault(group, Counter())
        if mask and mask not in masks and sum(m > 0 for m in masks) >= MOST_MASKS:
            self.flags |= OVERFLOWED
            return False
        masks[mask] += 1
        return True


def topic_of(plain, source=0):
    """Keys and values of the topic, as a fold that counts so would leave it."""
    state = {}
    sets: dict[tuple, dict[str, int]] = {}
    for place in plain.scopes:
        query, candidates, intervention, era = place
        name = candidates
        if not isinstance(name, bytes):
            name = hashlib.blake2b(_encode(list(name)), digest_size=16).digest()
        items = sets.setdefault((query, name, era), {})
        if name not in (OPEN_SET, OVERFLOW_SET):
            items.update({item: n for n, item in enumerate(candidates)})
        for one in plain.scopes[place]:
            for item in _decode(one.impression.candidates):
                items.setdefault(item, len(items))
        scope = (query, name, intervention, era)
        head, rows = head_of(plain, place, items)
        state[_encode(["scope", *scope])] = _encode(head)
        for row_name, row in rows.items():
            state[_encode(["row", *scope, row_name])] = _encode([SCHEMA, *row])
    for key, items in sets.items():
        state[_encode(["set", *key])] = _encode([SCHEMA, list(items)])
    state[_encode(["counted", source])] = _encode(counted_of(plain, source))
    return state


def head_of(plain, place, items):
    """The value of a scope, and its rows by name."""
    forms = Forms(plain, place)
    rows = {hashlib.blake2b(_encode(r), digest_size=16).digest(): r for r in forms.rows}
    lists = []
    for (row, shown), groups in forms.lists.items():
        counts = []
        for group, masks in sorted(groups.items()):
            flat = [n for pair in sorted(masks.items()) if pair[0] for n in pair]
            if masks:
                counts += [group, sum(masks.values()), flat]
        lists += [row, [items[item] for item in shown], counts]
    cells = []
    for group, of_group in sorted(forms.general.items()):
        summed = plain.cell_of(place, of_group, forms.rows)
        cells += [group, general_of(summed, forms.rows, items)]
    rewards: Counter = Counter()
    for one in plain.scopes[place]:
        of_one = plain.cell_of(place, [one], forms.rows)["rewards"]
        for number, item, rank in of_one:
            rewards[plain.group_of(one), number, items[item], rank] += 1
    flat = [n for key, count in sorted(rewards.items()) for n in (*key, count)]
    last_ms = max(one.impression.at_ms for one in plain.scopes[place])
    head = [SCHEMA, forms.flags, last_ms, list(rows), lists, cells, [], flat]
    return head, rows


def general_of(cell, rows, items):
    """The general form of a group, by numbers of items."""
    pairs = {(items[i], rank): c for (i, rank), c in cell["pairs"].items()}
    order = {place: n for n, place in enumerate(sorted(pairs))}
    clicks = {}
    for (a, r, b, s), count in cell["click_pairs"].items():
        one, other = order[items[a], r], order[items[b], s]
        clicks[min(one, other), max(one, other)] = count
    sums = {items[i]: counts for i, counts in cell["sums"].items()}
    low = (1 << 40) - 1
    return [
        [cell["totals"][name] for name in TOTALS],
        [
            n
            for row in sorted(map(rows.index, cell["rows"]))
            for n in (row, cell["rows"][rows[row]])
        ],
        [
            n
            for place in sorted(pairs)
            for n in (
                *place,
                *(pairs[place][name] for name in (*PAIR_COUNTS, "exposure")),
            )
        ],
        [
            n
            for item in sorted(sums)
            for n in (
                item,
                *(sums[item][name] for name in ("plus", "minus", "inverse")),
                sums[item]["squared"] & low,
                sums[item]["squared"] >> 40,
            )
        ],
        [n for pair in sorted(clicks) for n in (*pair, clicks[pair])],
    ]


def counted_of(plain, source):
    """The value of the record that names what was counted."""
    totals, kept = plain.totals, plain.statistics
    oldest = min((era for *_, era in plain.scopes), default=None)
    names = ("capped", "clipped", "without_exposure")
    return [
        SCHEMA,
        kept.groups,
        plain.keep_ms,
        list(kept.classes()),
        kept.reward,
        plain.watermark_ms,
        [[source, totals["interactions"]]],
        [totals["n_left"], oldest, *(totals[name] for name in names)],
        sorted(map(list, kept.actions.items())),
    ]


def decoded(state):
    """A topic without names, numbers and pieces; it must be whole and in order."""
    by_key = {tuple(_decode(k)): _decode(v) for k, v in Parts().joined(state).items()}
    assert all(value[0] == SCHEMA for value in by_key.values())
    used: set[tuple] = {key for key in by_key if key[0] == "counted"}
    found: dict[object, object] = {key: by_key[key] for key in used}
    for key, value in by_key.items():
        if key[0] != "scope":
            continue
        _, flags, last_ms, names, lists, cells, pieces, rewards = value
        query, name, intervention, era = place = key[1:]
        items = by_key["set", query, name, era][1]
        if isinstance(lists, int):
            apart = [("lists", *place, number) for number in range(lists)]
            lists = [part for each in apart for part in by_key[each][1]]
            used |= set(apart)
        rows = [tuple(by_key["row", *place, row][1:]) for row in names]
        groups = dict(chunks(cells, 2))
        assert not groups.keys() & set(pieces)
        groups |= {group: by_key["piece", *place, group][1] for group in pieces}
        used |= {key, ("set", query, name, era)}
        used |= {("row", *place, row) for row in names}
        used |= {("piece", *place, group) for group in pieces}
        candidates = name if name in (OPEN_SET, OVERFLOW_SET) else tuple(items)
        assert (query, candidates, intervention, era) not in found
        assert list(chunks(cells, 2)) == sorted(chunks(cells, 2))
        found[query, candidates, intervention, era] = {
            "flags": flags,
            "last_ms": last_ms,
            "rows": rows,
            "lists": lists_in(lists, items, rows),
            "cells": {g: cell_in(cell, items, rows) for g, cell in groups.items()},
            "rewards": {
                (g, number, items[item], rank): count
                for g, number, item, rank, count in chunks(rewards, 5)
            },
        }
    assert used >= set(by_key)
    return found


def chunks(flat, size):
    """A flat list, some elements at a time."""
    assert len(flat) % size == 0
    return [tuple(flat[i : i + size]) for i in range(0, len(flat), size)]


def lists_in(lists, items, rows):
    """Groups and masks of lists by row or policy, and items."""
    found = {}
    for row, numbers, counts in chunks(lists, 3):
        assert row < 0 or rows[row][0] == LOGGED
        groups = chunks(counts, 3)
        assert groups == sorted(groups)
        assert all(n > 0 for _, n, _ in groups)
        for _, _, masks in groups:
            assert chunks(masks, 2) == sorted(chunks(masks, 2))
            assert all(mask and count for mask, count in chunks(masks, 2))
        key = (rows[row] if row >= 0 else -1 - row, tuple(items[n] for n in numbers))
        assert key not in found
        found[key] = {g: (n, dict(chunks(masks, 2))) for g, n, masks in groups}
    return found


def cell_in(cell, items, rows):
    """A cell's general form by items."""
    totals, row_counts, pairs, sums, click_pairs = cell
    places = [(items[pair[0]], pair[1]) for pair in chunks(pairs, 8)]
    assert chunks(pairs, 8) == sorted(chunks(pairs, 8))
    assert chunks(sums, 6) == sorted(chunks(sums, 6))
    assert chunks(row_counts, 2) == sorted(chunks(row_counts, 2))
    assert all(a < b for a, b, _ in chunks(click_pairs, 3))
    counts = (*PAIR_COUNTS, "exposure")
    return comparable(
        {
            "totals": Counter(dict(zip(TOTALS, totals, strict=True))),
            "rows": Counter({rows[row]: n for row, n in chunks(row_counts, 2)}),
            "pairs": {
                place: Counter(dict(zip(counts, pair[2:], strict=True)))
                for place, pair in zip(places, chunks(pairs, 8), strict=True)
            },
            "sums": {
                items[item]: Counter(
                    plus=plus,
                    minus=minus,
                    inverse=inverse,
                    squared=low + (high << 40),
                )
                for item, plus, minus, inverse, low, high in chunks(sums, 6)
            },
            "click_pairs": Counter(
                {
                    tuple(sorted((places[a], places[b]))): n
                    for a, b, n in chunks(click_pairs, 3)
                }
            ),
        }
    )
