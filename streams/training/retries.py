"""Retries of refused trainings: when one is tried, and said, again."""

import re
from typing import NamedTuple

from rankstream.wire.envelope import Pointer

FIRST_WAIT_S = 10.0

LONGEST_WAIT_S = 600.0

_number = re.compile(r"\d[\d.,]*")


def form_of(why: str) -> str:
    """What reasons that differ in their numbers alone have in common."""
    return _number.sub("#", why)


class Standing(NamedTuple):
    """What the next try depends on, beside what is counted.

    Parameters
    ----------
    newest
        The version that it goes on from; None before there is one.
    n_passed
        Points of the schedule that are passed.
    """

    newest: Pointer | None
    n_passed: int


class _Held(NamedTuple):
    standing: Standing
    form: str
    wait_s: float
    until_s: float


class Retries:
    """Models whose last training was refused.

    Each is tried again after 10 s, and then ever later, up to 10 min; at once where
    another version is served, or a further point of the schedule is passed.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._left: dict[str, Pointer | None] = {}

    def is_held(self, name: str, standing: Standing, now_s: float) -> bool:
        """Whether a training that is due must wait."""
        if name in self._left and self._left[name] == standing.newest:
            return True
        held = self._held.get(name)
        return held is not None and held.standing == standing and now_s < held.until_s

    def refuse(self, name: str, why: str, standing: Standing, now_s: float) -> bool:
        """Take a refusal; whether the one before was of another kind.

        Reasons that differ in their numbers alone are of one kind.
        """
        form, held = form_of(why), self._held.get(name)
        is_new = held is None or held.form != form
        wait_s = FIRST_WAIT_S
        if held is not None and not is_new:
            wait_s = min(2.0 * held.wait_s, LONGEST_WAIT_S)
        self._held[name] = _Held(standing, form, wait_s, now_s + wait_s)
        return is_new

    def leave(self, name: str, standing: Standing) -> None:
        """Take that the schedule leaves it alone, until another version is served."""
        self._left[name] = standing.newest

    def forget(self, name: str) -> None:
        """Take that one was published."""
        self._held.pop(name, None)
        self._left.pop(name, None)
