"""Clicks before, between and after their lists: C, Python, and a state in the midst."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from rankstream.wire.events import ACTIVE, Element, Frontier
from rankstream.wire.routing import identity
from tests.event_factory import START_MS, click, impression
from tests.session.cases import n_cases
from tests.streams.fold.plain_join import PlainJoin
from tests.streams.fold.test_fold_segments import (
    DISORDER_MS,
    LIMITS,
    TIME,
    WINDOW_MS,
    Stopped,
)

N_LISTS, STEP_MS = 600, 5


def drawn_log(rng: np.random.Generator) -> Iterator[Element]:
    """Lists and clicks as they come in a backlog, and what is rare among them.

    Clicks are read ahead of their lists by up to twice the disorder, and again behind
    them. Some are of no list, of no place or of a time after the window, some come
    twice, as do lists; more than may be attached are of one list.
    """
    sent: list[tuple[int, Element]] = []
    for number in range(N_LISTS):
        at_ms = START_MS + STEP_MS * number
        shown = impression(f"{number}", at_ms)
        for nth in range(int(rng.poisson(0.8))):
            late = int(rng.integers(10 * WINDOW_MS)) if rng.random() < 0.05 else 0
            mark = click(
                f"{number}",
                at_ms + 1 + nth + late,
                identity=identity("c", f"{number}", f"{nth}"),
                position=int(rng.choice((1, 2, 3, 9), p=(0.5, 0.3, 0.15, 0.05))),
                raw=bytes(int(rng.integers(40))),
            )
            ahead = int(rng.integers(-DISORDER_MS, 2 * DISORDER_MS))
            sent.append((at_ms - ahead, mark))
            if rng.random() < 0.05:
                sent.append((at_ms - ahead + int(rng.integers(WINDOW_MS)), mark))
        if rng.random() < 0.95:
            sent.append((at_ms, shown))
        if rng.random() < 0.03:
            sent.append((at_ms + int(rng.integers(2 * WINDOW_MS)), shown))
    for place, (at_ms, element) in enumerate(sorted(sent, key=lambda one: one[0])):
        yield element
        if place % 7 == 0:
            yield Frontier(0, 1, at_ms - DISORDER_MS, ACTIVE)


def records_of(log: Iterator[Element], rng: np.random.Generator) -> list[list[Element]]:
    """The log cut anywhere, into records of a few elements or many."""
    elements, records = list(log), list[list[Element]]()
    while elements:
        n = int(rng.choice((1, 3, 20, 300)))
        records.append(elements[:n])
        elements = elements[n:]
    return [*records, [Frontier(0, 1, START_MS + (1 << 40), ACTIVE)]]


@pytest.mark.parametrize("seed", range(n_cases(6, 200)))
def test_a_backlog_of_clicks_comes_out_as_the_plain_rules_say(seed: int) -> None:
    """Record by record the same outcomes in the same order, however often it stops."""
    rng = np.random.default_rng(seed)
    records = records_of(drawn_log(rng), rng)
    plain, stopped = PlainJoin(TIME, limits=LIMITS), Stopped(refers=seed % 2 == 0)
    n_waited = 0
    for record in records:
        stopped.take(record)
        plain.take(record)
        told = [[*plain.closed], *plain.set_aside, *plain.not_shown, *plain.beyond]
        for each in (plain.closed, plain.set_aside, plain.not_shown, plain.beyond):
            each.clear()
        n_waited = max(n_waited, plain._n_waiting)

        assert stopped.told == told
        assert stopped.join.counts == plain.counts
        assert stopped.join.n_waiting == plain._n_waiting
        assert stopped.join.n_known == plain.n_known
        if rng.random() < 0.2:
            stopped.restart()
        stopped.told.clear()

    outcomes = {name for name, n in plain.counts.items() if n}
    assert outcomes == {*plain.counts}
    assert n_waited > 10


def test_a_click_that_was_withdrawn_does_not_wait_again() -> None:
    """Late when its list came, of those that waited only it is; from a state too."""
    beyond = click("i", START_MS + WINDOW_MS + 1, identity=identity("c", "late"))
    stopped = Stopped(refers=True)
    stopped.take([beyond, click("i")])
    stopped.restart()
    stopped.take([impression("i")])
    stopped.restart()
    assert stopped.join.pending == 2
    stopped.take([Frontier(0, 1, START_MS + WINDOW_MS, ACTIVE)])
    (closed,) = stopped.closed
    assert [one.position for one in closed.clicks] == [1]
    assert stopped.join.counts["late"] == 1


def test_odd_clicks_of_the_log_are_left_to_python() -> None:
    """One on a place below none waits, and is on no place; one of itself is broken."""
    odd = click("i", position=-3)
    stopped = Stopped(refers=True)
    stopped.take([odd])
    assert stopped.join.n_waiting == 1
    stopped.take([impression("i")])
    assert stopped.join.counts["dead_letter"] == 1
    itself = msgspec.structs.replace(odd, identity=odd.impression, position=1)
    with pytest.raises(ValueError, match="another identity"):
        Stopped(refers=True).take([itself])
