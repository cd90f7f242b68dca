"""A reader finds a place from the tree alone: files are short, and rooms have few."""

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("deploy", "models", "producers", "rankstream", "streams")
MOST_LINES, MOST_MODULES = 400, 20

FILES = [path for room in PRODUCT for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("room", PRODUCT)
def test_no_module_is_long(room: str) -> None:
    """What is longer does two things."""
    lines = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in FILES
        if path.is_relative_to(ROOT / room)
    }
    assert lines
    assert {path: n for path, n in lines.items() if n > MOST_LINES} == {}


def test_no_room_has_many_modules() -> None:
    """A room that has more is several."""
    modules = Counter(
        str(path.parent.relative_to(ROOT)) for path in FILES if path.stem != "__init__"
    )
    assert len(modules) > len(PRODUCT)
    assert {room: n for room, n in modules.items() if n > MOST_MODULES} == {}
