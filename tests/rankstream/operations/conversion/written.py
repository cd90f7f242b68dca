"""Records of schema 2 read in the plainest way, by what is decided of their layout."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rankstream.wire.events import POLICIES
from streams.state_pieces import Parts
from tests.rankstream.operations.conversion.stored import Tables

_decode = msgspec.msgpack.Decoder().decode


def rows_of(flat: list[Any], width: int, n_keys: int) -> list[list[Any]]:
    """A flat list as rows, which must rise by their first columns."""
    assert len(flat) % width == 0
    rows = [flat[start : start + width] for start in range(0, len(flat), width)]
    names = [row[:n_keys] for row in rows]
    assert names == sorted(names)
    assert len(set(map(tuple, names))) == len(names)
    return rows


class Written:
    """Values by kind and name, each without its schema, which must be 2."""

    def __init__(self, values: Mapping[bytes, bytes]) -> None:
        self.by_kind: dict[str, dict[tuple[Any, ...], list[Any]]] = {}
        for key, value in Parts().joined(values).items():
            kind, *name = _decode(key)
            schema, *rest = _decode(value)
            assert schema == 2, (kind, name)
            self.by_kind.setdefault(kind, {})[tuple(name)] = rest

    def cells(self) -> Iterator[tuple[tuple[Any, ...], list[bytes], int, list[Any]]]:
        """Scope, names of its rows, group and cell; pieces where they lie apart."""
        for scope, head in self.by_kind["scope"].items():
            _flags, _last_ms, rows, lists, cells, pieces, rewards = head
            assert (lists, rewards) == ([], [])
            for group, cell in rows_of(cells, 2, 1):
                yield scope, rows, group, cell
            for group in pieces:
                (cell,) = self.by_kind["piece"][*scope, group]
                yield scope, rows, group, cell

    def old_name(self, scope: tuple[Any, ...]) -> tuple[str, bytes, str]:
        """Query, set and intervention of a scope; the set as it was called before."""
        query, candidates, intervention, era = scope
        if candidates not in (bytes(16), b"\xff" * 16):
            packed = msgspec.msgpack.encode(
                self.by_kind["set"][query, candidates, era][0]
            )
            candidates = hashlib.blake2b(packed, digest_size=16).digest()
        return query, candidates, intervention

    def tables(self) -> Tables:
        """The same rows as the release before exported; of all eras."""
        tables: Tables = {
            name: [] for name in ("pairs", "cells", "items", "click-pairs", "rows")
        }
        for (query, candidates, intervention, era), rows, group, cell in self.cells():
            old_set = self.old_name((query, candidates, intervention, era))[1]
            name = [query, old_set.hex(), intervention, group]
            (items,) = self.by_kind["set"][query, candidates, era]
            totals, row_counts, pairs, sums, click_pairs = cell
            tables["cells"].append([*name, *totals])
            places = [(items[item], rank) for item, rank, *_ in rows_of(pairs, 8, 2)]
            for item, *counts in rows_of(pairs, 8, 2):
                tables["pairs"].append([*name, items[item], *counts])
            for item, plus, minus, inverse, low, high in rows_of(sums, 6, 1):
                squared = (high << 40) + low
                squares = [squared / (1 << 16), str(squared)]
                tables["items"].append(
                    [*name, items[item], plus, minus, inverse, *squares]
                )
            for a, b, count in rows_of(click_pairs, 3, 2):
                assert a < b
                one, other = sorted((places[a], places[b]))
                tables["click-pairs"].append([*name, *one, *other, count])
            for number, count in rows_of(row_counts, 2, 1):
                row = rows[number]
                policy, n_ranks, material, own = self.by_kind["row"][
                    query, candidates, intervention, era, row
                ]
                told = [POLICIES[policy], n_ranks, material.hex(), own.hex()]
                tables["rows"].append([*name, row.hex(), count, *told])
        return tables
