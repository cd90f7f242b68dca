"""`rankstream reproduce`: tables of the literature, from LETOR folders."""

import argparse
import os
from pathlib import Path
from typing import Any

from models.interleaving.simulated import NAMES
from rankstream.lab.reproduction import bandits, multileaving
from rankstream.lab.reproduction.engine import Study, reproduce
from rankstream.lab.reproduction.genspec.plan import TABLE as GENSPEC
from rankstream.lab.reproduction.genspec.report import GenspecStudy
from rankstream.lab.reproduction.interventions.plan import PARTS
from rankstream.lab.reproduction.interventions.plan import TABLE as INTERVENTIONS
from rankstream.lab.reproduction.interventions.report import InterventionStudy
from rankstream.lab.reproduction.literature import DATA_SETS
from rankstream.lab.reproduction.logopt.plan import TABLE as LOGOPT
from rankstream.lab.reproduction.logopt.report import LogOptStudy
from rankstream.lab.reproduction.online.plan import (
    BASELINES,
    CANDIDATES_TABLE,
    LAG_TABLE,
    LEARNERS_TABLE,
    LONG_RUN,
    LONG_RUNS,
    SCORING_ALL,
)
from rankstream.lab.reproduction.online.report import OnlineStudy
from rankstream.lab.reproduction.top_k.losses import LossStudy
from rankstream.lab.reproduction.top_k.plan import LOSSES, TOP_K
from rankstream.lab.reproduction.top_k.report import TopKStudy

MULTILEAVING = "multileaving"
STUDIES: dict[str, type[Study[Any]]] = {
    LEARNERS_TABLE: OnlineStudy,
    LONG_RUN: OnlineStudy,
    LAG_TABLE: OnlineStudy,
    CANDIDATES_TABLE: OnlineStudy,
    TOP_K: TopKStudy,
    LOSSES: LossStudy,
    INTERVENTIONS: InterventionStudy,
    GENSPEC: GenspecStudy,
    LOGOPT: LogOptStudy,
}
"""What makes each table; that of multileaving draws nothing."""

TABLES = (
    LEARNERS_TABLE, LONG_RUN, LAG_TABLE, CANDIDATES_TABLE, MULTILEAVING, TOP_K, LOSSES,
    INTERVENTIONS, GENSPEC, LOGOPT, bandits.TABLE,
)  # fmt: skip

LEARNERS = sorted({*BASELINES, *SCORING_ALL, *(learner for learner, _ in LONG_RUNS)})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """tables:
  learners      online learners after 10,000 impressions (chapter 5)
  long-run      PDGD against DBGD after 100,000 impressions (chapter 6)
  lags          PDGD that serves a ranker 0 to 10,000 impressions behind
  candidates    COLTR and PL-Rank beside PDGD, with known examination
  multileaving  binary error of five methods, 10,000 impressions (chapter 4)
  top-k         estimators by documents shown, and by clicks (chapter 7)
  losses        losses and their selection, by clicks (chapter 7)
  interventions estimators by interventions, beside online learners (chapter 10)
  genspec       who is served for which query, by bounds (chapter 8)
  logopt        which lists to log for a comparison of two rankers (chapter 9)
  bandits       regret of bandits of one query, and of looking late; needs no folder

examples:
  rankstream reproduce MQ2008 --published
  rankstream reproduce MQ2008 --table long-run --processes 8
  rankstream reproduce MQ2008 --table multileaving --published --runs 2
  rankstream reproduce MQ2008 --table top-k --shown 2 5 --clicks 10000 1000000
  rankstream reproduce MQ2008 --table interventions --parts sharp --runs 2
  rankstream reproduce MQ2008 --table genspec --runs 2
  rankstream reproduce MQ2008 --table logopt --runs 2
  rankstream reproduce --table bandits

Chapters are those of Oosterhuis (2020). The output folder keeps finished runs,
and they are not run again. So you may stop at any time: the same command
continues. A larger --runs adds runs."""
    parser.add_argument(
        "data",
        type=Path,
        nargs="?",
        help="LETOR folder: Fold1 .. Fold5, or files with a folds.json",
    )
    parser.add_argument("--table", choices=TABLES, default=LEARNERS_TABLE)
    parser.add_argument(
        "--published",
        action="store_true",
        help="do as the published code did: its stop rule, decay, sign, ties, "
        "averages, failing solver, and the noise of 10,000 sampled assignments "
        "(default: exact forms)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        help=f"how many of each fold (default: {Study.n_runs}; top-k, losses "
        f"{TopKStudy.n_runs}; interventions {InterventionStudy.n_runs}; genspec "
        f"{GenspecStudy.n_runs}; logopt {LogOptStudy.n_runs} of close pairs, and as "
        f"many others; bandits {bandits.N_RUNS} in all)",
    )
    parser.add_argument(
        "--folds", type=int, help="only the first folds, so many (default: all)"
    )
    parser.add_argument(
        "--impressions",
        type=int,
        help="how many in each run; genspec: of each training query; logopt: queries "
        "issued",
    )
    parser.add_argument(
        "--users", nargs="+", help="only these", metavar="NAME", default=None
    )
    parser.add_argument(
        "--name",
        help=f"data set to compare with: {', '.join(DATA_SETS)} "
        "(default: the folder's name)",
    )
    parser.add_argument("--out", type=Path, help="folder for results")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random draws")
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="how many runs at once",
    )
    _add_learning(parser.add_argument_group("learners, long-run, lags and candidates"))
    _add_multileaving(parser.add_argument_group("multileaving"))
    _add_top_k(parser.add_argument_group("top-k and losses"))
    parser.add_argument_group("interventions").add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        help="only these: a sharp production ranker, a soft one, a sharp one for ten "
        "times as long, PDGD nets for thirty times as long",
    )


def _add_learning(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--learners", nargs="+", choices=LEARNERS, help="only these", metavar="NAME"
    )
    group.add_argument(
        "--normalisation", choices=("min-max", "standard", "none"), default="min-max"
    )
    group.add_argument(
        "--gain", choices=("exponential", "linear"), default="exponential"
    )
    group.add_argument(
        "--cutoff", type=int, default=10, help="length of lists, and cutoff of NDCG"
    )
    group.add_argument(
        "--keep-empty",
        action="store_true",
        help="count held-out queries without a relevant document as 0",
    )


def _add_multileaving(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rankers", type=int, nargs="+", default=[5, 15])
    group.add_argument(
        "--methods",
        nargs="+",
        choices=NAMES,
        default=list(NAMES),
        metavar="NAME",
        help=f"only some of {', '.join(NAMES)} (default: all)",
    )
    group.add_argument("--json", action="store_true", help="print JSON")


def _add_top_k(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--shown",
        type=int,
        nargs="+",
        metavar="K",
        help="documents of a list (default: 1 to 10, below the length of most lists)",
    )
    group.add_argument(
        "--clicks",
        type=int,
        nargs="+",
        metavar="N",
        help="on all training queries together (default: 1,000 to 100,000,000)",
    )
    group.add_argument(
        "--relevant-from",
        type=int,
        metavar="LABEL",
        help="the least label that is relevant (default: the two highest are)",
    )


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
