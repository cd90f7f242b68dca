"""What a store of snapshots answers beside them."""

from typing import NamedTuple

from rankstream.wire.envelope import Pointer


class StoreUnavailable(RuntimeError):
    """Redis does not answer, or answers with an error.

    Operator action: look at Redis; publishing goes on when it is back.

    Attributes
    ----------
    is_answered
        Whether it answered, with an error: what else it is asked for may go well.
    """

    def __init__(self, said: str, *, is_answered: bool = False) -> None:
        super().__init__(said)
        self.is_answered = is_answered


class Standing(NamedTuple):
    """What a model's pointer leads to.

    `fault` is empty where it leads to a snapshot, `missing` where to none; else it says
    what was wrong with what Redis held, which was cleared. Without a pointer there is
    none, now.
    """

    pointer: Pointer | None
    fault: str
