"""Click models by name."""

from models.click_models.cascade import CASCADES, cascade_of
from models.click_models.click_model import ClickModel
from models.click_models.position_based import position_based_of
from models.click_models.trust_bias import trust_bias_of

BY_RANK = tuple(f"{kind}_by_rank" for kind in CASCADES)
"""The clicks of cascades by users who look at rank r with probability 1 / r."""

NAMES = (*CASCADES, *BY_RANK, "position_based", "trust_bias")


def click_model_of(
    name: str, n_grades: int, *, stop_requires_click: bool = True
) -> ClickModel:
    """The named users for labels 0 to `n_grades` - 1.

    Parameters
    ----------
    stop_requires_click
        For the cascades; see `models.click_models.cascade`.

    Raises
    ------
    ValueError
        Where the name is unknown or has no table for so many grades.
    """
    if name in CASCADES:
        return cascade_of(name, n_grades, stop_requires_click=stop_requires_click)
    if name in BY_RANK:
        cascade = cascade_of(name.removesuffix("_by_rank"), n_grades)
        return position_based_of(n_grades, relevance=cascade.click)
    if name == "position_based":
        return position_based_of(n_grades)
    if name == "trust_bias":
        return trust_bias_of(n_grades)
    raise ValueError(f"name must be one of {list(NAMES)}; got {name!r}")
