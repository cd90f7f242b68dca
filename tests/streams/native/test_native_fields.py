"""Whether C and Python number fields as the structs do."""

import pytest

from rankstream.wire.events import Click, Frontier, Impression
from streams.native import elements as e
from streams.native import write_fields as fields
from tests.streams.native.plain_locator import KINDS

STRUCTS = ((e.IMPRESSION, Impression), (e.CLICK, Click), (e.FRONTIER, Frontier))


def test_the_header_is_what_the_structs_give() -> None:
    """Else write it anew: `python -m streams.native.write_fields`."""
    assert fields.HEADER.read_text() == fields.header()


@pytest.mark.parametrize(("tag", "struct"), STRUCTS)
def test_the_plain_locator_expects_the_same_kinds(
    tag: int, struct: type[Impression | Click | Frontier]
) -> None:
    """Kinds of fields, and how many there are."""
    assert list(KINDS[tag]) == fields.kinds_of(struct)


@pytest.mark.parametrize(
    ("name", "place"),
    [("unit", e.UNIT), ("extra", e.EXTRA), ("at_ms", e.AT_MS), ("shown", e.SHOWN)],
)
def test_places_follow_the_struct(name: str, place: int) -> None:
    """The tag lies first."""
    assert ("tag", *Impression.__struct_fields__)[place] == name
    assert f"#define IMPRESSION_{name.upper()} {place}\n" in fields.header()
