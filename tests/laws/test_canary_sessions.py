"""Who is in a canary: as many as the share says, for good, and nobody's group decides.

Groups are those of the unit by which ingestion clusters a session's lists. Were they of
one hash with the draw, a canary would be served to some groups only, and nothing could
be learned of the others.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, chi2

from rankstream.wire.events import QueryEvent
from rankstream.wire.models.canaries import is_in_canary
from streams.ingest.identifiers import unit_of
from tests.session.cases import n_cases

NAME, OTHER = "search@3.120000", "search@4.120000"
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
LEAST_P = 1e-6
"""A test that fails by chance would do so once in a million runs."""

N_GROUPS = 100

Flags = npt.NDArray[np.bool_]


def sessions() -> list[str]:
    """As services name them: counted ones and random ones; more in a long run."""
    n = n_cases(100_000, 1_000_000)
    rng = np.random.default_rng(11)
    random = rng.bytes(8 * n).hex()
    return [
        f"s{number}" if number % 2 else random[16 * number : 16 * number + 16]
        for number in range(n)
    ]


SESSIONS = sessions()


def drawn(name: str, share: float, n: int | None = None) -> Flags:
    """Which sessions are in a canary; of the first ones only."""
    return np.array([is_in_canary(session, name, share) for session in SESSIONS[:n]])


def groups() -> npt.NDArray[np.int64]:
    """Of 100, by the unit that ingestion gives lists of these sessions."""
    fields: dict[str, Any] = {
        "impression_id": "i",
        "query_id": "q",
        "at_ms": 0,
        "shown": ["a"],
    }
    units = [unit_of(QueryEvent(**fields, session=each)) for each in SESSIONS]
    return (np.array(units, np.uint64) % np.uint64(N_GROUPS)).astype(np.int64)


def p_of_independence(table: npt.NDArray[np.int64]) -> float:
    """Pearson's chi-square of a table of counts."""
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    n_free = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), n_free))


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_groups_say_nothing_of_the_draw(share: float) -> None:
    """Each of 100 groups has its share of the canary."""
    table = np.zeros((2, N_GROUPS), np.int64)
    np.add.at(table, (drawn(NAME, share).astype(np.int64), groups()), 1)
    assert p_of_independence(table) > LEAST_P


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_one_canary_says_nothing_of_another(share: float) -> None:
    """Sessions of the last canary are no likelier in the next, nor unlikelier."""
    table = np.zeros((2, 2), np.int64)
    places = [drawn(name, share).astype(np.int64) for name in (NAME, OTHER)]
    np.add.at(table, tuple(places), 1)
    assert p_of_independence(table) > LEAST_P


def test_a_draw_by_groups_would_be_seen() -> None:
    """The test has power: a canary of one group in twenty fails it."""
    table = np.zeros((2, N_GROUPS), np.int64)
    found = groups()
    np.add.at(table, ((found % 20 == 0).astype(np.int64), found), 1)
    assert p_of_independence(table) < LEAST_P


def test_a_share_is_met() -> None:
    """Within what a binomial allows, two-sided."""
    n = len(SESSIONS)
    for share in SHARES:
        count = int(drawn(NAME, share).sum())
        p = 2 * min(binom.cdf(count, n, share), binom.sf(count - 1, n, share))
        assert p > LEAST_P, (share, count / n)


def test_nobody_leaves_while_the_share_rises() -> None:
    """Of each session the answers are no, no ... yes, yes; none at 0 and all at 1."""
    before = drawn(NAME, 0.0, 20_000)
    assert not before.any()
    for share in (1e-6, 0.001, *SHARES, 0.75, 0.999, 1.0):
        now = drawn(NAME, share, 20_000)
        assert not (before & ~now).any()
        before = now
    assert before.all()


def test_any_text_is_a_session() -> None:
    """Also half of a character, as JSON can hold it; salts do not run into sessions."""
    for session in ("", "\ud800", "\u00fc\U0001f45f", "x" * 4_096):
        assert is_in_canary(session, NAME, 1.0)
        assert not is_in_canary(session, NAME, 0.0)
    shares = np.linspace(0, 1, 2_001)
    one = [is_in_canary("1s", "m@0.1", share) for share in shares]
    assert one != [is_in_canary("s", "m@0.11", share) for share in shares]
