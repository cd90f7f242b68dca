"""Statistics of schema 1, stored, and what the release that wrote them exported."""

import json
import lzma
from pathlib import Path
from typing import Any

from streams.local import read_changes
from tests.rankstream.operations.conversion.__main__ import EXPECTED, STATE

KEEP_MS = 172_800_000
"""Of the settings under which they were made."""

Tables = dict[str, list[list[Any]]]
"""Rows of each kind of counter; query, set, intervention and group come first."""


def stored_values(file: Path = STATE) -> dict[bytes, bytes]:
    """Keys and values, as `replay --local --out` wrote them."""
    return dict(read_changes(file))


def expected_tables() -> Tables:
    """What the release that wrote them read in them."""
    tables: Tables = json.loads(lzma.decompress(EXPECTED.read_bytes()))
    return tables
