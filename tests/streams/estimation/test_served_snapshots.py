"""Which versions are served, as the topic `snapshots` tells."""

from typing import Any

import pytest

from rankstream.snapshots import Pointer, following_key, pointer_of
from rankstream.wire.models.deployments import deployment_record
from streams.estimation.served_snapshots import ServedSnapshots
from tests.snapshot_factory import envelope, snapshot


def told(*records: tuple[bytes, bytes | None]) -> ServedSnapshots:
    """What records say of two models."""
    found = ServedSnapshots(["m", "n"])
    for record in records:
        found.take(*record)
    return found


def version(number: int, **fields: Any) -> tuple[bytes, bytes]:
    """A version under its own key."""
    epoch, model = fields.get("epoch", 0), fields.get("model", "m")
    return f"{model}/{epoch}.{number}".encode(), envelope(number, **fields)


def newest(number: int, **fields: Any) -> tuple[bytes, bytes]:
    """A version under the key of its model, as of what was trained."""
    named = {"groups": [0, 1], "intervention": f"m@0.{number}"}
    return b"m", envelope(number, **(named | fields))


def test_the_last_version_of_each_model_is_served() -> None:
    """Of those that are asked for; what is damaged or elsewhere is no version."""
    found = told(
        version(1), version(3), version(2), version(9, model="o"),
        version(2, model="n"),
        (b"m/0.8", envelope(7)), (b"m/0.9", envelope(9)[:-1]), (b"m/0.1", None),
    )  # fmt: skip
    assert {name: pointer_of(x) for name, x in found.newest.items()} == {
        "m": Pointer(0, 3),
        "n": Pointer(0, 2),
    }
    # Of others too, as their lists are in the log.
    assert found.learned == {"m", "n", "o"}


def test_after_a_rollback_was_undone_learned_versions_are_served_in_its_epoch() -> None:
    """As the publisher writes them."""
    rolled = (b"m", envelope(1, epoch=1))
    assert pointer_of(told(version(5), rolled, version(6)).newest["m"]) == (1, 1)
    follow = (following_key("m"), envelope(6, epoch=2))
    found = told(version(5), rolled, version(6), follow, version(7))
    assert pointer_of(found.newest["m"]) == (2, 7)


def test_what_a_trained_version_came_from_is_kept() -> None:
    """Where it was here; else which one it is, for who has it."""
    found = told(version(0), newest(5, parent=0))
    assert found.parent("m") == snapshot(0)
    assert found.lacking_parent("m") is None
    found.take(*newest(9, parent=5))
    parent = found.parent("m")
    assert parent is not None
    assert pointer_of(parent) == (0, 5)
    # Read once more, as after an outage.
    for each in (version(0), newest(5, parent=0), newest(9, parent=5)):
        found.take(*each)
    assert found.parent("m") == parent
    found.take(*newest(12, parent=10))
    assert found.parent("m") is None
    assert found.lacking_parent("m") == Pointer(0, 10)
    found.add_parent(snapshot(10))
    assert found.lacking_parent("m") is None
    assert found.parent("m") == snapshot(10)


def test_what_is_learned_online_came_from_nothing_that_was_served() -> None:
    """Nor did the first version of anything."""
    for record in (version(5), version(0)):
        found = told(version(4), record)
        assert found.parent("m") is None
        assert found.lacking_parent("m") is None


@pytest.mark.parametrize("groups", [[0, 3], []])
def test_whose_clicks_deployments_came_from(groups: list[int]) -> None:
    """Of all models; nothing where that is not known."""
    found = told(deployment_record("o@0.5", 1_000, groups), (b"x/deployed", b"\x93"))
    assert found.fitted_on == ({"o@0.5": frozenset(groups)} if groups else {})
    assert not found.newest
