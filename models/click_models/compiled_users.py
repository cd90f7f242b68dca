"""Every click model as arrays, and one kernel that clicks for all of them.

    P(click at rank r | looked at) = attention[r - 1] * click[grade] + trust[r - 1]

and after each document a cascade user may stop.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.click_models.cascade import CascadeModel
from models.click_models.click_model import ClickModel
from models.click_models.position_based import PositionBasedModel
from models.click_models.trust_bias import TrustBiasModel
from models.kernels.compilation import compiled


class Users(NamedTuple):
    """A click model as arrays.

    Parameters
    ----------
    click, stop : [n_grades]
        Chances by grade.
    stop_requires_click
        Whether only a click lets a user stop.
    attention, trust : [n_ranks]
        By rank, and 0 beyond their end; where both are empty, attention is 1 at every
        rank.
    """

    click: Floats
    stop: Floats
    stop_requires_click: bool
    attention: Floats
    trust: Floats


def users_of(model: ClickModel) -> Users:
    """The arrays of a click model.

    Raises
    ------
    ValueError
        For a model that is none of this package.
    """
    nothing = np.zeros(0)
    if isinstance(model, CascadeModel):
        click, stop = np.array(model.click), np.array(model.stop)
        return Users(click, stop, model.stop_requires_click, nothing, nothing)
    if isinstance(model, PositionBasedModel):
        attention = np.array(model.examination)
        trust = np.zeros(len(attention))
    elif isinstance(model, TrustBiasModel):
        attention, trust = np.array(model.alpha), np.array(model.beta)
    else:
        raise ValueError(f"users must be of this package; got {type(model).__name__}")
    click = np.array(model.relevance)
    return Users(click, np.zeros(len(click)), True, attention, trust)


@compiled
def click_on(
    labels: Integers,
    rows: Integers,
    users: Users,
    clicks: Flags,
    rng: np.random.Generator,
) -> int:
    """Fill `clicks`; returns their number.

    Parameters
    ----------
    labels : [n]
        Grades of all candidates.
    rows, clicks : [k]
        Of the shown ones, in displayed order.
    """
    clicks[:] = False
    n_clicks = 0
    n_ranks = users.attention.shape[0]
    for x in range(rows.shape[0]):
        grade = labels[rows[x]]
        chance = users.click[grade]
        if n_ranks > 0:
            if x >= n_ranks:
                break
            chance = users.attention[x] * chance + users.trust[x]
        if rng.random() < chance:
            clicks[x] = True
            n_clicks += 1
        stop = users.stop[grade]
        can_stop = clicks[x] or not users.stop_requires_click
        if can_stop and stop > 0.0 and rng.random() < stop:
            break
    return n_clicks
