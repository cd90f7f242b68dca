"""Options of the method `logging-policy`, and what is refused."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

FLOOR = 0.01
"""Least P(looked at) of what rankers differ in, where nothing else is asked for."""


class Compared(Protocol):
    """The part of `rankstream.settings.ExperimentSettings` that is needed here."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the method."""

    @property
    def length(self) -> int:
        """Of the lists."""


class LoggingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the method `logging-policy`.

    Parameters
    ----------
    examination : [n_ranks]
        P(looked at | rank), above 0 and at most 1, of each rank of the lists; or all of
        them in units of the first, which changes no difference.
    model
        Whose versions the policies are; without one all items are as likely.
    floor
        Least P(looked at) of an item that rankers differ in.
    groups, selection
        See `models.interleaving.logging_policy_credit.LoggingPolicy`.
    """

    examination: tuple[float, ...]
    model: str = ""
    floor: float = FLOOR
    groups: int = 20
    selection: int = 4

    @classmethod
    def of(cls, experiment: Compared) -> "LoggingOptions":
        """Those of an experiment.

        Raises
        ------
        ValueError
            Where one is missing, unknown or of no use, or a floor is above what some
            policy meets whatever the query.
        """
        if unknown := sorted(set(experiment.options) - set(cls.__struct_fields__)):
            raise ValueError(
                f"must be among {list(cls.__struct_fields__)}; got {unknown}"
            )
        if "examination" not in experiment.options:
            raise ValueError(
                "examination must be set, P(looked at | rank), as [1.0, 0.6, 0.4]; it "
                "is missing"
            )
        found = msgspec.convert(experiment.options, cls)
        theta = found.examination
        if not theta or not all(0.0 < each <= 1.0 for each in theta):
            raise ValueError(
                f"examination must be numbers above 0 and at most 1; got {list(theta)}"
            )
        if len(theta) < experiment.length:
            raise ValueError(
                f"examination must have a number for each rank of lists of "
                f"{experiment.length}; got {len(theta)}: give the others, or lower "
                "length"
            )
        most = theta[0] / (2.0 * experiment.length)
        if not 0.0 < found.floor <= most:
            raise ValueError(
                f"floor must be above 0 and at most {most:.4g}, which some policy "
                f"meets for any two lists of {experiment.length}; got {found.floor}"
            )
        if found.groups < 0 or (
            found.groups and not 1 <= found.selection < found.groups
        ):
            raise ValueError(
                "groups must be 0, or more than selection, which is 1 or more; got "
                f"{found.groups} groups with a selection of {found.selection}"
            )
        return found
