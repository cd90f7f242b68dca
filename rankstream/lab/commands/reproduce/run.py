"""What `rankstream reproduce` does: run the study of a table."""

import argparse
from typing import Any

from rankstream.lab.commands.reproduce import MULTILEAVING
from rankstream.lab.reproduction import bandits, multileaving
from rankstream.lab.reproduction.engine import Study, reproduce
from rankstream.lab.reproduction.genspec.plan import TABLE as GENSPEC
from rankstream.lab.reproduction.genspec.report import GenspecStudy
from rankstream.lab.reproduction.interventions.plan import TABLE as INTERVENTIONS
from rankstream.lab.reproduction.interventions.report import InterventionStudy
from rankstream.lab.reproduction.logopt.plan import TABLE as LOGOPT
from rankstream.lab.reproduction.logopt.report import LogOptStudy
from rankstream.lab.reproduction.online.plan import (
    CANDIDATES_TABLE,
    LAG_TABLE,
    LEARNERS_TABLE,
    LONG_RUN,
)
from rankstream.lab.reproduction.online.report import OnlineStudy
from rankstream.lab.reproduction.top_k.losses import LossStudy
from rankstream.lab.reproduction.top_k.plan import LOSSES, TOP_K
from rankstream.lab.reproduction.top_k.report import TopKStudy
from rankstream.lab.reproduction.trees.plan import TABLE as TREES
from rankstream.lab.reproduction.trees.report import TreesStudy

STUDIES: dict[str, type[Study[Any]]] = {
    LEARNERS_TABLE: OnlineStudy,
    LONG_RUN: OnlineStudy,
    LAG_TABLE: OnlineStudy,
    CANDIDATES_TABLE: OnlineStudy,
    TOP_K: TopKStudy,
    LOSSES: LossStudy,
    TREES: TreesStudy,
    INTERVENTIONS: InterventionStudy,
    GENSPEC: GenspecStudy,
    LOGOPT: LogOptStudy,
}
"""What makes each table; that of multileaving draws nothing."""


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, then print and write all there is."""
    if arguments.table == bandits.TABLE:
        return bandits.run(arguments)
    if arguments.data is None:
        raise ValueError(
            f"the table {arguments.table} must have a LETOR folder; got none: name it "
            "before --table"
        )
    if arguments.table != MULTILEAVING:
        return reproduce(STUDIES[arguments.table](arguments))
    if arguments.runs is None:
        arguments.runs = Study.n_runs
    return multileaving.run(arguments)
