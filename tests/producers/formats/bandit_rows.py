"""A row of Open Bandit data, for tests that do their sums row by row."""

from typing import NamedTuple


class BanditRow(NamedTuple):
    """Who showed what where, how likely that was, and whether it was clicked."""

    policy: str
    query: str
    item: str
    clicked: bool
    propensity: float
