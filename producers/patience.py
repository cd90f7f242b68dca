"""How long one waits: a bound on all waits of a command together.

Whoever waits asks `left_s`, or tells `Waiting`, which does. So the bound reaches every
wait without passing through all that lies between; other threads have none.
"""

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar

_UNTIL_S: ContextVar[tuple[float, float]] = ContextVar(
    "until_s", default=(math.inf, math.inf)
)
"""When waits end, by the monotonic clock, and how long that was from the first on."""

STANDS = "what was done before stands, and nothing goes on"


class TimedOut(RuntimeError):
    """What was waited for did not come in the time that somebody gave.

    Operator action: see to what the message names, or give more time.
    """


@contextlib.contextmanager
def patience(timeout_s: float | None) -> Iterator[None]:
    """Bound the waits inside; None leaves the bound that there is, if any."""
    if timeout_s is None:
        yield
        return
    # A bound around this one holds inside too, if it ends before.
    own = time.monotonic() + timeout_s, timeout_s
    before = _UNTIL_S.set(min(own, _UNTIL_S.get()))
    try:
        yield
    finally:
        _UNTIL_S.reset(before)


def left_s() -> float:
    """How long one may still wait; 0 where the time is up, infinite without a bound."""
    return max(0.0, _UNTIL_S.get()[0] - time.monotonic())


def check_patience(what: str, why: str = "", goes_on: str = STANDS) -> None:
    """Go on waiting, if there is time left.

    Parameters
    ----------
    what
        Is waited for.
    why
        It has not come.
    goes_on
        What becomes of the rest without us.

    Raises
    ------
    TimedOut
    """
    if not left_s():
        waited_s = _UNTIL_S.get()[1]
        because = f"{why}: " if why else ""
        raise TimedOut(
            f"waited {waited_s:g} s for {what}, as long as --timeout says; "
            f"{because}{goes_on}"
        )
