"""What a partition may be doing, and what may happen to it then."""

import re
from itertools import product

import pytest

from streams.kafka.partitions.partition_life import (
    MOVES,
    Event,
    IllegalMove,
    PartitionLife,
    State,
)

TABLE = """
                  opened_behind  opened_level  caught_up  revoked           assigned   closed
opening           replaying      live          -          -                 -          closed
replaying         -              -             live       replay_suspended  replaying  closed
live              -              -             -          suspended         live       closed
suspended         -              -             -          suspended         live       closed
replay_suspended  -              -             -          replay_suspended  replaying  closed
closed            -              -             -          -                 -          -
"""  # noqa: E501  a table
"""Drawn by hand; a dash is illegal."""

PAIRS = list(product(State, Event))


def drawn() -> dict[tuple[State, Event], State]:
    """The table as moves."""
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    events = [Event[name.upper()] for name in head]
    return {
        (State[row[0].upper()], event): State[name.upper()]
        for row in rows
        for event, name in zip(events, row[1:], strict=True)
        if name != "-"
    }


def in_state(state: State) -> PartitionLife:
    """A life that has come so far."""
    life = PartitionLife("events[3]")
    life.state = state
    return life


def test_the_moves_are_those_that_were_drawn() -> None:
    """Every pair of the table, and no other."""
    assert dict(MOVES) == drawn()


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_every_event_moves_or_raises(state: State, event: Event) -> None:
    """In every state; what is illegal changes nothing."""
    life = in_state(state)
    expected = drawn().get((state, event))
    if expected is None:
        with pytest.raises(IllegalMove):
            life.take(event)
        assert life.state is state
    else:
        life.take(event)
        assert life.state is expected


def test_a_life_begins_where_it_is_opened() -> None:
    """And from there every other state can be reached."""
    reached = {PartitionLife("events[3]").state}
    for _ in State:
        reached |= {to for (state, _), to in MOVES.items() if state in reached}

    assert PartitionLife("events[3]").state is State.OPENING
    assert reached == set(State)


def test_what_is_closed_stays_closed_and_all_else_can_be() -> None:
    """A producer that is left open would be fenced for nothing by the next owner."""
    can_close = {state for state, event in MOVES if event is Event.CLOSED}

    assert can_close == set(State) - {State.CLOSED}
    assert all(state is not State.CLOSED for state, _ in MOVES)


def test_what_is_revoked_neither_folds_nor_writes_on() -> None:
    """Only what was live when it was revoked has something to write, once."""
    for state in State:
        revoked = MOVES.get((state, Event.REVOKED))
        if revoked is not None:
            assert not revoked.may_fold
            assert not revoked.may_write
    assert MOVES[State.LIVE, Event.REVOKED].may_write_last
    assert not MOVES[State.REPLAYING, Event.REVOKED].may_write_last


def test_only_live_partitions_write_and_whatever_writes_folds() -> None:
    """A replay folds in silence."""
    assert [state for state in State if state.may_write] == [State.LIVE]
    assert [state for state in State if state.may_fold] == [
        State.REPLAYING,
        State.LIVE,
    ]
    assert not State.CLOSED.may_write_last


def test_an_illegal_move_says_what_was_and_what_is_allowed() -> None:
    """The event, the states that it needs, the state, what can happen there."""
    with pytest.raises(IllegalMove) as caught:
        in_state(State.OPENING).take(Event.CAUGHT_UP)
    assert re.match(
        r"events\[3\] must be replaying to be caught up; it is opening, when it can be "
        r"opened behind its resume position or opened at its resume position or "
        r"closed: this is a fault of rankstream",
        str(caught.value),
    )


def test_an_illegal_move_of_what_is_closed_says_that_nothing_is() -> None:
    """There is nothing more."""
    with pytest.raises(IllegalMove, match="it is closed, when it can be nothing more"):
        in_state(State.CLOSED).take(Event.ASSIGNED)
