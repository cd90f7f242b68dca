"""A model's history: what changed what is served, and what did not."""

import pytest

from rankstream.wire.models.changes import (
    CANARY,
    LOOKED,
    PROMOTED,
    SCHEMA,
    UNDECIDED,
    WITHDRAWN,
    Change,
    History,
    change_record,
)


def history(*kinds: str) -> History:
    """Rows of these kinds, in order."""
    found = History()
    for number, what in enumerate(kinds, 1):
        change = Change(SCHEMA, number, 0, what, f"{number}.0", "0.0", "ann")
        assert found.take(*change_record("m", change))
    return found


@pytest.mark.parametrize("between", [CANARY, WITHDRAWN, UNDECIDED])
def test_looks_add_up_until_something_else_is_served(between: str) -> None:
    """A canary changes nothing of that, however it ends but by a promotion."""
    found = history(LOOKED, PROMOTED, LOOKED, between, LOOKED)
    assert found.n_looks("m") == 2
    last, newest = found.last("m"), found.newest("m")
    assert last is not None
    assert newest is not None
    assert (last.number, newest.number) == (2, 5)
    assert history(LOOKED, LOOKED, PROMOTED).n_looks("m") == 0
