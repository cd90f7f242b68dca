"""What a command on statistics was asked, and what its answers rest on."""

import argparse
import sys
from functools import partial
from typing import NamedTuple

from rich.console import Console

from models.estimators.splits import Shares
from rankstream.operations.commands.deployed_groups import DeployedGroups, learned_in
from rankstream.operations.commands.newest_curve import curve_asked
from rankstream.operations.commands.statistics_curve import (
    GIVEN,
    EstimatedCurve,
    estimated_curve,
)
from rankstream.operations.relevance import Trust
from rankstream.settings import Settings
from streams.statistics.reader import Statistics
from streams.training.known_curve import published_curve
from streams.training.learned_online import LearnedOnline


class Asked(NamedTuple):
    """Arguments, settings, and the statistics that were read."""

    arguments: argparse.Namespace
    settings: Settings
    statistics: Statistics

    def curve(self) -> EstimatedCurve:
        """What relevance is corrected by; an estimate reads all columns."""
        if self.arguments.examination is not None:
            return EstimatedCurve(self.arguments.examination, GIVEN)
        found = curve_asked(self.settings, self.arguments.curve, self.arguments.local)
        if found is not None:
            known = published_curve(found)
            return EstimatedCurve(known.curve, known.source, known.warning, known.ends)
        shares = Shares(*self.settings.statistics.split_shares)
        return estimated_curve(
            self.statistics,
            shares,
            has_classes=self.has_classes,
            online=self.trust().models,
        )

    @property
    def estimator(self) -> str | None:
        """The name of the one that is asked for; None where none is."""
        return getattr(self.arguments, "estimator", None)

    @property
    def has_classes(self) -> bool:
        """Whether items of one class count as one; an export has each item."""
        return getattr(self.arguments, "classes", False)

    def trust(self) -> Trust:
        """What is known of the policies that logged; a replay deploys nothing."""
        folder = self.arguments.local
        if folder is not None:
            return Trust(LearnedOnline(self.settings, partial(learned_in, folder)))
        deployed = DeployedGroups(self.settings)
        return Trust(LearnedOnline(self.settings, deployed.learned), deployed)


def say(console: Console, label: str) -> None:
    """Print a line, if there is one."""
    if label:
        console.print(label, highlight=False)


def nothing(reason: str) -> int:
    """Say why there is no answer; the exit status."""
    sys.stderr.write(f"{reason}\n")
    return 1
