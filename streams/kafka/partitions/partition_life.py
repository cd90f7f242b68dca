"""What a partition of a stage is doing, and what may happen to it, as data.

Whatever depends on it asks the state. No other attribute says the same.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class State(Enum):
    """What a partition is doing.

    Parameters
    ----------
    words
        For messages.
    may_fold
        Whether records are folded; others are dropped, for whoever reads them again.
    may_write
        Whether commits are written.
    may_write_last
        Whether the one commit that is due when a live partition is revoked may still
        be written.
    """

    OPENING = "opening", False, False, False
    """Its former owner is fenced, and its state is read back."""

    REPLAYING = "replaying", True, False, False
    """Records up to the resume position are folded again, and their outputs dropped."""

    LIVE = "live", True, True, True
    """Records are folded and commits written."""

    SUSPENDED = "suspended", False, False, True
    """It was revoked; assigned again to this process it goes on from memory."""

    REPLAY_SUSPENDED = "suspended while replaying", False, False, False
    """It was revoked before it had caught up, so there is nothing to be written."""

    CLOSED = "closed", False, False, False
    """It is not ours any more."""

    def __init__(
        self, words: str, may_fold: bool, may_write: bool, may_write_last: bool
    ) -> None:
        self.words = words
        self.may_fold = may_fold
        self.may_write = may_write
        self.may_write_last = may_write_last


class Event(Enum):
    """What happens to a partition."""

    OPENED_BEHIND = "opened behind its resume position"
    OPENED_LEVEL = "opened at its resume position"
    CAUGHT_UP = "caught up"
    REVOKED = "revoked"
    ASSIGNED = "assigned again"
    CLOSED = "closed"


MOVES: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.OPENING, Event.OPENED_BEHIND): State.REPLAYING,
        (State.OPENING, Event.OPENED_LEVEL): State.LIVE,
        (State.OPENING, Event.CLOSED): State.CLOSED,
        (State.REPLAYING, Event.CAUGHT_UP): State.LIVE,
        (State.REPLAYING, Event.REVOKED): State.REPLAY_SUSPENDED,
        (State.REPLAYING, Event.ASSIGNED): State.REPLAYING,
        (State.REPLAYING, Event.CLOSED): State.CLOSED,
        (State.LIVE, Event.REVOKED): State.SUSPENDED,
        (State.LIVE, Event.ASSIGNED): State.LIVE,
        (State.LIVE, Event.CLOSED): State.CLOSED,
        (State.SUSPENDED, Event.REVOKED): State.SUSPENDED,
        (State.SUSPENDED, Event.ASSIGNED): State.LIVE,
        (State.SUSPENDED, Event.CLOSED): State.CLOSED,
        (State.REPLAY_SUSPENDED, Event.REVOKED): State.REPLAY_SUSPENDED,
        (State.REPLAY_SUSPENDED, Event.ASSIGNED): State.REPLAYING,
        (State.REPLAY_SUSPENDED, Event.CLOSED): State.CLOSED,
    }
)
"""Where each event leads; a pair that is missing is illegal.

Revocations repeat: a stop may follow a rebalance that has not ended. Assignments
repeat too: Faust asks where to start whenever it seeks.
"""


class IllegalMove(RuntimeError):
    """Something happened to a partition that cannot happen in its state.

    Operator action: none; the worker starts again from the last commit. Report it.
    """


class PartitionLife:
    """The state of one partition, which only its events change.

    Parameters
    ----------
    name
        Topic and partition, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.state = State.OPENING

    def take(self, event: Event) -> None:
        """Go on to the state that the event leads to.

        Raises
        ------
        IllegalMove
            Where it leads to none; the state stays what it is.
        """
        state = MOVES.get((self.state, event))
        if state is None:
            raise IllegalMove(
                f"{self._name} must be {_given(event)} to be {event.value}; it is "
                f"{self.state.words}, when it can be {_allowed(self.state)}: this is a "
                "fault of rankstream, which starts again from its last commit; report "
                "it with the log"
            )
        self.state = state


def _given(event: Event) -> str:
    return " or ".join(state.words for state, each in MOVES if each is event)


def _allowed(state: State) -> str:
    events = [event.value for each, event in MOVES if each is state]
    return " or ".join(events) or "nothing more"
