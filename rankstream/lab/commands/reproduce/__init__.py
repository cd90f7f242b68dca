"""`rankstream reproduce`: tables of the literature, from LETOR folders."""

import argparse
import os
from pathlib import Path

LEARNERS_TABLE, MULTILEAVING = "learners", "multileaving"

TABLES = (
    LEARNERS_TABLE, "long-run", "lags", "candidates", MULTILEAVING, "top-k", "losses",
    "trees", "interventions", "genspec", "logopt", "bandits",
)  # fmt: skip
LEARNERS = (
    "coltr-linear", "dbgd-linear", "dbgd-long", "dbgd-neural", "dbgd-oracle",
    "mgd-linear", "pairwise-linear", "pdgd-linear", "pdgd-neural", "pl-rank-linear",
)  # fmt: skip
METHODS = (
    "team-draft", "optimized", "probabilistic", "sample-scored", "pairwise-preference",
)  # fmt: skip
PARTS = ("sharp", "soft", "long", "decay")
RUNS = (25, 10, 5, 5, 5, 10, 10)
DATA_SETS = ("MQ2007", "MQ2008", "MSLR-WEB10k", "Yahoo", "istella")
"""Names and runs of `rankstream.lab.reproduction`, which help does without; a test
compares them."""


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
  trees         trees and linear rankers on clicks, beside LightGBM's own
  interventions estimators by interventions, beside online learners (chapter 10)
  genspec       who is served for which query, by bounds (chapter 8)
  logopt        which lists to log for a comparison of two rankers (chapter 9)
  bandits       regret of bandits of one query, and of looking late; needs no folder

examples:
  rankstream reproduce MQ2008 --published
  rankstream reproduce MQ2008 --table long-run --processes 8
  rankstream reproduce MQ2008 --table multileaving --published --runs 2
  rankstream reproduce MQ2008 --table top-k --shown 2 5 --clicks 10000 1000000
  rankstream reproduce MQ2008 --table trees --runs 2
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
        help="how many of each fold (default: {}; top-k, losses {}; trees {}; "
        "interventions {}; genspec {}; logopt {} of close pairs, and as many others; "
        "bandits {} in all)".format(*RUNS),
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
    _add_top_k(parser.add_argument_group("top-k and losses; trees but for --shown"))
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
        choices=METHODS,
        default=list(METHODS),
        metavar="NAME",
        help=f"only some of {', '.join(METHODS)} (default: all)",
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
