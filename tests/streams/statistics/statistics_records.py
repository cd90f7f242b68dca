"""Records of `statistics` as the topic holds them, from plain impressions."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from models.counts.definition import ClosedImpression
from models.counts.placements import LOGGED
from rankstream.wire.exposures import pack_exposures
from streams.statistics import keys
from streams.statistics.keys import Counted, Row, ScopeName
from tests.models.counts.scope_values import ScopeValue

Record = tuple[bytes, bytes | None]

NAME = ScopeName("q", b"s" * 16, "m", 7)

COUNTED = Counted(
    groups=20,
    keep_ms=90 * 86_400_000,
    classes=("click", "long", "purchase"),
    reward="click",
    watermark_ms=1_700_000_000_000,
    sources={0: 100},
    n_left=25,
    oldest=6,
    capped=1,
    clipped=2,
    without_exposure=3,
)

_encode = msgspec.msgpack.Encoder().encode


def scope_records(
    name: ScopeName, value: ScopeValue, rows: Mapping[bytes, Row] | None = None
) -> list[Record]:
    """A scope, its pieces, its candidate set and its exposure rows."""
    return [
        (keys.scope_key(name), value.head()),
        *((keys.piece_key(name, g), v) for g, v in value.piece_values().items()),
        *((_encode(["lists", *name, n]), v) for n, v in value.list_values().items()),
        (keys.set_key(*name[:2], name.era), keys.encode_set(list(value.items))),
        *(
            (keys.row_key(name, row), _encode([keys.SCHEMA, *r]))
            for row, r in _of(rows)
        ),
    ]


def counted_record(counted: Counted = COUNTED) -> Record:
    """What a partition writes with each checkpoint."""
    return keys.counted_key(min(counted.sources)), keys.encode_counted(counted)


def logged_row(matrix: Any, items: tuple[str, ...] = ()) -> Row:
    """An exposure row of logged exposures, [n_items, n_ranks]."""
    packed = pack_exposures(np.asarray(matrix, np.float32))
    return Row(LOGGED, np.shape(matrix)[1], packed, _encode(items) if items else b"")


def logged(
    shown: list[int], clicked: list[int], matrix: Any, row: bytes, *, group: int = 0
) -> ClosedImpression:
    """A list whose exposures were logged, as the wire carries them."""
    placement = np.asarray(matrix, np.float32).astype(np.float64)
    return ClosedImpression(group, shown, {0: clicked}, LOGGED, row, placement)


def _of(rows: Mapping[bytes, Row] | None) -> list[tuple[bytes, Row]]:
    return list((rows or {}).items())
