"""Position weights of a curve, as LightGBM and XGBoost read them.

LightGBM takes a weight for each row, and for each row the place where it stood, from
files beside the data: `DATA.weight`, `DATA.position` and, as for all ranking,
`DATA.query`. With positions it estimates bias of its own while it learns; so either
weights are given or positions, not both.

XGBoost takes weights of rows for pointwise objectives only: for `rank:` ones a weight
is that of a whole query. With `lambdarank_unbiased` it estimates bias while it learns,
from rows that lie in the order of their ranks; a known curve can be where it starts.

References
----------
LightGBM 4.7, "Parameters", weight data, query data, position data. XGBoost 3.2,
"Learning to Rank", position bias; Hu, Wang, Peng & Li (WWW 2019) for its two ratios.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.bias.fitted_curve import FittedCurve


class LightGBMFiles(NamedTuple):
    """Texts to be written beside a file of data, one number a line.

    Parameters
    ----------
    query
        For `DATA.query`: how many rows each query has.
    weight
        For `DATA.weight`.
    position
        For `DATA.position`: ranks from 0.
    """

    query: str
    weight: str
    position: str


def position_weights(curve: FittedCurve, *, most: float = np.inf) -> Floats:
    """What a click at each rank counts, 1 over its examination; [n_known].

    Parameters
    ----------
    most
        No weight is larger. For training only: it biases.

    Raises
    ------
    ValueError
        Where users trust ranks, which no weight of clicks corrects; where no rank but
        the first is known, or `most` is below 1.

    Examples
    --------
    >>> from models.bias.examination import ExaminationCurve
    >>> from models.bias.fitted_curve import position_fit
    >>> half = np.array([1.0, 0.5])
    >>> position_weights(position_fit(ExaminationCurve(half, half, half, ("", ""))))
    array([1., 2.])
    """
    n = curve.n_known
    if n < 2:
        raise ValueError(
            f"a curve must be known at two ranks or more; got {n}: {curve.warning()}"
        )
    if curve.beta[:n].any():
        raise ValueError(
            "position weights must be of plain position bias; got a curve with trust "
            "bias: train on values of an estimator that corrects it"
        )
    if not most >= 1.0:
        raise ValueError(f"the largest weight must be at least 1; got {most:g}")
    return np.minimum(1.0 / curve.alpha[:n], most)


def row_weights(ranks: Integers, clicked: Integers, weights: Floats) -> Floats:
    """The weight of each row: that of its rank if it was clicked, else 1.

    Parameters
    ----------
    ranks : [n_rows]
        1-based.
    clicked : [n_rows]
        0 or 1.
    weights : [n_known]
        Those of `position_weights`.

    Returns
    -------
    [n_rows]

    Raises
    ------
    ValueError
        Where a row was clicked at a rank without a weight.
    """
    is_clicked = clicked > 0
    known = (ranks >= 1) & (ranks <= len(weights))
    wrong = np.flatnonzero(is_clicked & ~known)
    if len(wrong):
        raise ValueError(
            f"clicks must be at ranks 1..{len(weights)}, which the curve has; got rank "
            f"{ranks[wrong[0]]} in row {wrong[0]}: leave out what stood further down"
        )
    own = weights[np.clip(ranks, 1, len(weights)) - 1]
    return np.where(is_clicked, own, 1.0)


def lightgbm_files(
    queries: Integers, ranks: Integers, weights: Floats
) -> LightGBMFiles:
    r"""What LightGBM reads beside its data.

    Parameters
    ----------
    queries : [n_rows]
        The rows of a query follow one another.
    ranks : [n_rows]
        1-based.
    weights : [n_rows]
        Those of `row_weights`.

    Raises
    ------
    ValueError
        Where rows of a query are apart.

    Examples
    --------
    >>> one = np.array([1, 1])
    >>> lightgbm_files(one, np.array([1, 2]), np.array([1.0, 2.5]))
    LightGBMFiles(query='2\n', weight='1.0\n2.5\n', position='0\n1\n')
    """
    starts = np.flatnonzero(np.diff(queries, prepend=queries[:1] - 1))
    if len(starts) != len(np.unique(queries)):
        raise ValueError(
            f"rows of a query must follow one another; got {len(starts)} runs of "
            f"{len(np.unique(queries))} queries: sort them by query"
        )
    sizes = np.diff(starts, append=len(queries))
    return LightGBMFiles(
        _lines(sizes.tolist()),
        _lines(np.asarray(weights, np.float64).tolist()),
        _lines((ranks - 1).tolist()),
    )


def xgboost_start(curve: FittedCurve, *, n_positions: int) -> dict[str, list[float]]:
    """Where XGBoost's own estimate of position bias begins.

    They go to `learner.objective` of a configuration that `save_config` made with
    `lambdarank_unbiased`; `load_config` takes it. What is not clicked begins without
    a bias. Every round of training estimates both again.

    Parameters
    ----------
    n_positions
        Places that XGBoost estimates, its `lambdarank_num_pair_per_sample` with
        `topk`; ranks that the curve does not have take its last ratio.
    """
    if n_positions < 1:
        raise ValueError(f"positions must be 1 or more; got {n_positions}")
    ratios = 1.0 / position_weights(curve)
    rows = np.minimum(np.arange(n_positions), len(ratios) - 1)
    return {"ti+": ratios[rows].tolist(), "tj-": [1.0] * n_positions}


def _lines(numbers: list[int] | list[float]) -> str:
    return "".join(f"{number}\n" for number in numbers)
