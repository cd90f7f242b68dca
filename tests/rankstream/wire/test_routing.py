"""Identities and routes."""

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
