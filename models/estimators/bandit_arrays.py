"""Logged places as arrays of a bandit: a round for each item that a list showed.

Names, shapes and numbers from 0 are those of the bandit feedback of obp, the library
beside the Open Bandit Dataset. A list is as many rounds as it has places: in each the
policy took an action, the item that was there.

References
----------
Saito, Aihara, Matsutani & Narita (NeurIPS Datasets and Benchmarks 2021), "Open Bandit
Dataset and Pipeline", section 4, for the form.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers

MOST_DUMMIES = 1_024
"""Items that have a column each; of more, the number alone is their context."""

Told = str | float
"""Part of a context: text is a category, a number is one."""


class BanditArrays(NamedTuple):
    """Rounds as obp takes them.

    Parameters
    ----------
    n_rounds, n_actions
        Numbers of rows, and of items.
    action : [n_rounds]
        Number of the item, from 0.
    position : [n_rounds]
        Where it stood, from 0.
    reward : [n_rounds]
        1 where it was clicked, else 0.
    pscore : [n_rounds]
        P(item there | its policy), more than 0; NaN where nobody knows it.
    context : [n_rounds, n_context]
        What is known of the list.
    action_context : [n_actions, n_action_context]
        What is known of the item.
    """

    n_rounds: int
    n_actions: int
    action: Integers
    position: Integers
    reward: Integers
    pscore: Floats
    context: Floats
    action_context: Floats


def bandit_arrays(
    action: Integers,
    position: Integers,
    reward: Integers,
    propensity: Floats,
    context: Floats,
    *,
    n_actions: int,
) -> BanditArrays:
    """The arrays of rounds, checked, with a context of each action.

    That is a column for each item, which obp takes too where nothing is known of them;
    of more than `MOST_DUMMIES` items it is their number alone.

    Parameters
    ----------
    action, position, reward, propensity : [n_rounds]
        As `BanditArrays` has them.
    context : [n_rounds, n_context]
        See `encoded_contexts`.

    Raises
    ------
    ValueError
        Where arrays are of several lengths, an action is none of the items, a place is
        before the first, a reward is neither 0 nor 1, or a propensity no probability.
    """
    columns = (action, position, reward, propensity, context)
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            f"arrays must be of the same rounds; got {[len(x) for x in columns]}"
        )
    rule = f"actions must lie in 0..{n_actions - 1}"
    _refuse((action < 0) | (action >= n_actions), action, rule)
    _refuse(position < 0, position, "positions must be at least 0")
    _refuse((reward != 0) & (reward != 1), reward, "rewards must be 0 or 1")
    is_wrong = (propensity <= 0.0) | (propensity > 1.0)
    rule = "a propensity must lie in (0, 1], or be NaN where nobody knows it"
    _refuse(is_wrong, propensity, rule)
    numbers = np.arange(n_actions, dtype=np.float64)[:, None]
    of_actions = np.eye(n_actions) if n_actions <= MOST_DUMMIES else numbers
    n = len(action)
    return BanditArrays(
        n, n_actions, action, position, reward, propensity, context, of_actions
    )


def encoded_contexts(contexts: Sequence[Sequence[Told]]) -> Floats:
    """Contexts as numbers, [n_lists, n_context].

    Parts that are text become one column for each text but the first, in their order,
    as obp makes them of the features of its users; numbers stay one column.

    Raises
    ------
    ValueError
        Where contexts are of several lengths.

    Examples
    --------
    >>> encoded_contexts([("b", 2.0), ("a", 3.0), ("b", 4.0)]).tolist()
    [[1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]
    """
    lengths = {len(each) for each in contexts}
    if len(lengths) > 1:
        raise ValueError(
            f"contexts must be of one length; got {sorted(lengths)}: export lists that "
            "have others apart"
        )
    columns: list[Floats] = []
    for values in zip(*contexts, strict=True):
        if any(isinstance(value, str) for value in values):
            texts = np.array([str(value) for value in values])
            columns += [(texts == x).astype(np.float64) for x in np.unique(texts)[1:]]
        else:
            columns.append(np.array(values, np.float64))
    return np.column_stack(columns) if columns else np.zeros((len(contexts), 0))


def _refuse(
    is_wrong: npt.NDArray[np.bool_], numbers: Floats | Integers, rule: str
) -> None:
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(f"{rule}; got {numbers[row]:g} in round {row}")
