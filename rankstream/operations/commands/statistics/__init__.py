"""`rankstream statistics`: what was shown and clicked, by query, item and rank."""

import argparse
import itertools
import math
from pathlib import Path

from rankstream.configuration.decisions import BOUNDS
from rankstream.operations.commands.options.curves import (
    add_curve,
    add_estimator,
    whole_number,
)
from rankstream.operations.commands.options.plot import add_plot
from rankstream.operations.commands.options.query import add_query


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream statistics list --limit 20\n"
        "  rankstream statistics show 'running shoes'\n"
        "  rankstream statistics show 'running shoes' --intervention v2 --by-scope\n"
        "  rankstream statistics show 'running shoes' --plot shoes.svg\n"
        "  rankstream statistics actions shoes --segment NL\n"
        "  rankstream statistics export counts.parquet --local run/\n"
        "  rankstream statistics export qrels.txt --to judgments --format trec \\\n"
        "      --grades 0.02,0.1,0.3\n"
        "  rankstream statistics convert --dry-run      after an upgrade, see "
        "docs/upgrading.md\n\n"
        "exit status: 1 where nothing was counted, or where clicks tell no curve to "
        "correct\nrelevance by: counts are there all the same, and --examination is "
        "the remedy\n"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser(
        "show",
        help="every item and rank of one query",
        description="Every item and rank of one query. Where several scopes counted "
        "it (docs/statistics.md), they are listed, and shown together.",
    )
    add_query(show)
    show.add_argument(
        "--limit", type=whole_number, default=50, help="rows of each table"
    )
    show.add_argument(
        "--by-scope", action="store_true", help="a table of each scope instead"
    )
    show.add_argument(
        "--intervention", metavar="NAME", help="only this one; '' for lists without"
    )
    show.add_argument(
        "--era", metavar="N|DAY", help="only this one, or those of a day (2025-09-09)"
    )
    show.add_argument(
        "--candidates", metavar="HEX", help="only sets whose name begins so"
    )
    show.add_argument(
        "--classes",
        action="store_true",
        help="relevance of items whose ids are equal before # together, and the curve "
        "from these (docs/estimators.md)",
    )
    add_plot(show)
    listing = actions.add_parser("list", help="queries, most shown first")
    listing.add_argument(
        "--limit", type=whole_number, default=50, help="how many queries"
    )
    earning = actions.add_parser(
        "actions",
        help="what each action of a context earns, of lists of one item",
        description="What each action of a context earns: a list of one item is an "
        "action, a query with its candidates the context, a click the reward "
        "(docs/decisions.md).",
    )
    add_query(earning, is_needed=False)
    _add_bound(earning)
    writing = actions.add_parser(
        "export",
        help="write Parquet, one row per counter; what `train` reads; or judgments",
        description="Write Parquet: the file that is named has a row for each item and "
        "rank; its siblings have the rest. docs/statistics.md has all columns. A file "
        "named .bin has the records as they are, for `rankstream train --statistics`. "
        "Or write corrected relevance as grades (docs/how-to/search-engine.md).",
    )
    writing.add_argument("file", type=Path)
    _add_grades(writing)
    converting = actions.add_parser(
        "convert",
        help="make statistics of the release before scopes those of this one",
        description="Make statistics of the release before scopes those of this one. "
        "Stop all workers first (docs/upgrading.md). On Kafka a partition is converted "
        "in one transaction. With --local the file is replaced, and what it held is "
        "kept beside it as statistics.bin.schema1. Nothing happens where all is of "
        "this release.",
    )
    converting.add_argument(
        "--dry-run", action="store_true", help="say what it would do, and do nothing"
    )
    for action in (show, writing):
        add_curve(
            action,
            what="what relevance is corrected by",
            default="the newest of --curve",
        )
        add_estimator(action, of="relevance")
    for action in (show, listing, earning, writing, converting):
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument(
            "--local",
            type=Path,
            metavar="DIR",
            help="what `replay --local --out DIR` wrote, instead of Kafka",
        )


def _add_grades(parser: argparse.ArgumentParser) -> None:
    """Declare what corrected relevance is graded for."""
    parser.add_argument(
        "--to",
        choices=("parquet", "judgments", "training"),
        default="parquet",
        help="what is written: all counters, grades of items, or graded items with "
        "their features (default: %(default)s)",
    )
    parser.add_argument(
        "--format",
        choices=("opensearch", "elasticsearch", "trec", "lightgbm", "xgboost"),
        help="of judgments the first three, of training the last two",
    )
    parser.add_argument(
        "--grades",
        type=_cutoffs,
        default=(),
        metavar="CUTOFFS",
        help="of relevance, ascending, as 0.02,0.1,0.3: what reaches none is grade 0",
    )
    parser.add_argument(
        "--index", default="", metavar="NAME", help="where Elasticsearch has the items"
    )
    parser.add_argument(
        "--model", default="", metavar="NAME", help="whose features training files have"
    )


def _cutoffs(told: str) -> list[float]:
    """Numbers with commas between, each above the one before."""
    try:
        found = [float(each) for each in told.split(",")]
    except ValueError:
        found = []
    rises = all(a < b for a, b in itertools.pairwise(found))
    if not found or not rises or not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(
            f"must be numbers, each above the one before, as 0.02,0.1,0.3; got {told}"
        )
    return found


def _add_bound(parser: argparse.ArgumentParser) -> None:
    """Declare what is asked of actions."""
    parser.add_argument(
        "--bound",
        choices=BOUNDS,
        default=BOUNDS[0],
        help="of the interval, set before the data (docs/decisions.md; default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="EPSILON",
        help="of each bound by itself (default: %(default)s)",
    )
    parser.add_argument(
        "--limit", type=whole_number, default=50, help="how many actions"
    )
