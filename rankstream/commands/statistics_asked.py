"""What a command on statistics was asked, and what its answers rest on."""

import argparse
import sys
from functools import partial
from typing import NamedTuple

from rich.console import Console

from models.estimators.splits import Shares
from rankstream.commands.deployed_groups import DeployedGroups, learned_in
from rankstream.commands.statistics_curve import GIVEN, EstimatedCurve, estimated_curve
from rankstream.relevance import Trust
from rankstream.settings import Settings
from streams.estimation.learned_online import LearnedOnline
from streams.fold.statistics_reader import Statistics


class Asked(NamedTuple):
    """Arguments, settings, and the statistics that were read."""

    arguments: argparse.Namespace
    settings: Settings
    statistics: Statistics

    def curve(self) -> EstimatedCurve:
        """What relevance is corrected by; an estimate reads all columns."""
        if self.arguments.examination is not None:
            return EstimatedCurve(self.arguments.examination, GIVEN)
        shares = Shares(*self.settings.statistics.split_shares)
        return estimated_curve(self.statistics, shares)

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
