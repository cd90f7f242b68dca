"""Streams of clicks on lists of one query, and what is concluded of two policies.

One query of ten items, examined at rank r with 1 / r. Lists show the displayed order
until one of the policies is found to be better, and that policy's order while it is:
what is logged depends on what was decided. Compiled, and judged by the functions that
decide.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from models.evaluation.bounds.families import (
    SUMS,
    Confidence,
    add_row,
    is_above_zero,
    mirrored,
)
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_rule import (
    PLANNED_INTERACTIONS,
    is_spread_over_groups,
    stands_for_sessions_to_come,
)
from models.kernels.compilation import compiled
from tests.difference_sums import largest_sum

N_ITEMS = 10
FIRST = np.array([1, 2, 4, 5, 7, 9, 6, 10, 8, 3])
SECOND = np.array([5, 6, 8, 4, 2, 9, 3, 10, 7, 1])
"""Ranks that the two policies give the items, in displayed order."""

LABELS = np.array([4, 3, 2, 1, 1, 0, 0, 0, 0, 4])
SAME = np.full(N_ITEMS, 2)
"""Labels at which neither policy is better."""

THETA = 1.0 / np.arange(1, N_ITEMS + 1)
N_SELECTED = 51
"""Selection groups, where a fifth of 256 groups select."""


def click_if_seen(labels: np.ndarray) -> np.ndarray:
    """P(click | examined)."""
    return 0.2 + 0.2 * labels


def weights(ranks: np.ndarray) -> np.ndarray:
    """The w of each item where lists show these ranks, by DCG."""
    gains = 1.0 / np.log2(1.0 + FIRST) - 1.0 / np.log2(1.0 + SECOND)
    return np.asarray(gains / THETA[ranks - 1])


DISPLAYED = weights(np.arange(1, N_ITEMS + 1))
FIXED_MEAN = float((THETA * click_if_seen(LABELS)) @ DISPLAYED)
"""Of X on the fixed case, where the first policy is better."""


def fixed_clicks(n_runs: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Clicks on the displayed lists of the fixed case. [n_runs, n, n_items]."""
    draws = rng.random((n_runs, n, N_ITEMS))
    return np.asarray(draws < THETA * click_if_seen(LABELS))


def of_runs(clicks: np.ndarray, groups: np.ndarray) -> tuple[DifferenceSums, Any]:
    """Sums of displayed lists, each run a comparison, and where they start.

    Parameters
    ----------
    clicks : [n_runs, n, n_items]
    groups : [n]
        Group of each list.
    """
    n_runs = len(clicks)
    came, row_of = np.unique(groups, return_inverse=True)
    member = np.eye(len(came))[row_of]
    values = clicks @ DISPLAYED

    def by_group(of_list: np.ndarray) -> np.ndarray:
        return (of_list @ member).ravel()

    n_rows = n_runs * len(came)
    sums = DifferenceSums(
        groups=np.tile(came, n_runs),
        interactions=np.tile(member.sum(axis=0).astype(np.int64), n_runs),
        lengths=np.full(n_rows, N_ITEMS),
        clicks=by_group(clicks.sum(axis=2)).astype(np.int64),
        gains=np.full(n_rows, largest_sum(DISPLAYED, N_ITEMS)),
        losses=np.full(n_rows, largest_sum(-DISPLAYED, N_ITEMS)),
        largest=np.full(n_rows, np.abs(DISPLAYED).max()),
        totals=by_group(values),
        squares=by_group(values**2),
        click_squares=by_group(clicks @ DISPLAYED**2),
    )
    return sums, np.arange(n_runs + 1) * len(came)


class Stream(NamedTuple):
    """What comes, and how it is looked at.

    `click` [n_tastes, n_items] is P(click | examined) by the taste of a session of
    `length` lists; each taste is as likely as any other. `n_groups` groups of sessions
    select. `is_by_session`: the rule for sessions is applied. `is_doubling`: it is
    looked at where the number of lists has doubled only.
    """

    click: np.ndarray
    length: int = 1
    n_groups: int = N_SELECTED
    is_by_session: bool = False
    is_doubling: bool = False


def with_tastes(length: int, *, is_by_session: bool = False) -> Stream:
    """Half of the users like what the first policy puts higher, half what it does not.

    Neither policy is better on average.
    """
    likes = np.where(FIRST < SECOND, 0.25, -0.25)
    click = click_if_seen(SAME)
    return Stream(
        np.stack([click + likes, click - likes]),
        length=length,
        is_by_session=is_by_session,
    )


def first_decision(stream: Stream, sure: Confidence, n: int, seed: int) -> float:
    """Lists until the first policy is found better; infinite where it is not by n."""
    orders = np.stack([np.arange(1, N_ITEMS + 1), FIRST, SECOND])
    found = _first_decision(
        stream.click,
        THETA[orders - 1],
        np.stack([weights(ranks) for ranks in orders]),
        np.array([stream.length, stream.n_groups, n]),
        np.array([stream.is_by_session, stream.is_doubling]),
        tuple((_one_list(ranks), mirrored(_one_list(ranks))) for ranks in orders),
        sure,
        np.random.default_rng(seed),
    )
    return found or math.inf


def _one_list(ranks: np.ndarray) -> DifferenceSums:
    """The row of one list that shows these ranks, its clicks yet to come."""
    of_item, one = weights(ranks), np.ones(1)
    return DifferenceSums(
        groups=np.zeros(1, np.int64),
        interactions=np.ones(1, np.int64),
        lengths=np.full(1, N_ITEMS),
        clicks=np.zeros(1, np.int64),
        gains=largest_sum(of_item, N_ITEMS) * one,
        losses=largest_sum(-of_item, N_ITEMS) * one,
        largest=np.abs(of_item).max() * one,
        totals=0.0 * one,
        squares=0.0 * one,
        click_squares=0.0 * one,
    )


@compiled
def _first_decision(  # noqa: PLR0913  one loop, compiled
    click: Any,
    theta: Any,
    of_items: Any,
    plan: Any,
    looks: Any,
    rows: Any,
    sure: Confidence,
    rng: Any,
) -> int:
    """Number of the list after which the first policy was found better; 0: never."""
    length, n_groups, n = plan
    is_by_session, is_doubling = looks
    of_groups = np.zeros((2, n_groups, SUMS))
    totals = np.zeros((2, SUMS))
    is_found = np.zeros(2, np.bool_)
    group = taste = shown = 0
    for i in range(n):
        if i % length == 0:
            group = int(rng.random() * n_groups)
            taste = int(rng.random() * click.shape[0])
        value, squares, n_clicks = 0.0, 0.0, 0
        for item in range(click.shape[1]):
            if rng.random() < theta[shown, item] * click[taste, item]:
                value += of_items[shown, item]
                squares += of_items[shown, item] ** 2
                n_clicks += 1
        lists = i + 1
        for side in range(2):
            row = rows[shown][side]
            row.clicks[0] = n_clicks
            row.totals[0] = value if side == 0 else -value
            row.squares[0] = value * value
            row.click_squares[0] = squares
            add_row(of_groups[side, group], row, 0)
            add_row(totals[side], row, 0)
            if not is_doubling or lists & (lists - 1) == 0:
                is_found[side] = is_above_zero(totals[side], sure) and (
                    not is_by_session
                    or (
                        is_spread_over_groups(of_groups[side], totals[side], sure)
                        and stands_for_sessions_to_come(
                            of_groups[side], sure.error, PLANNED_INTERACTIONS
                        )
                    )
                )
        if is_found[0]:
            return lists
        shown = 2 if is_found[1] else 0
    return 0
