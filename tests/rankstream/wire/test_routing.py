"""Identities and routes."""

import pytest

from rankstream.wire.routing import identity, route_of_impression, routed_impression_id


def test_parts_of_an_identity_cannot_run_into_each_other() -> None:
    """Whatever characters they hold."""
    named = {
        identity("a", "b"),
        identity("ab", ""),
        identity("a\x1fb"),
        identity("a\x1fb", "c"),
        identity("a", "b\x1fc"),
        identity("1:a", "b"),
    }
    assert len(named) == 6
    assert identity("a", "b") == identity("a", "b")


def test_an_impression_id_carries_its_route() -> None:
    """And one that carries none says so."""
    assert route_of_impression(routed_impression_id("x", 77)) == 77
    assert route_of_impression("x") is None
    assert route_of_impression("x~00000000000000FF") == 255


@pytest.mark.parametrize(
    "route",
    ["-000000000000001", "+000000000000001", "0x00000000000001", "0_0_0_0_0_0_0_01",
     " 00000000000001 ", "000000000000001\n", "٠" * 16, "0" * 15, "0" * 17, ""],
)  # fmt: skip
def test_what_is_no_16_digits_is_no_route(route: str) -> None:
    """Though Python would read a number in it."""
    assert route_of_impression(f"x~{route}") is None
    assert route_of_impression(route) is None
