"""`rankstream evaluate`: what policies would be worth, before anybody sees them."""

import argparse
import math
from pathlib import Path

from rankstream.operations.commands.options.curves import (
    add_curve,
    add_estimator,
    whole_number,
)
from rankstream.operations.commands.options.files import add_folded_format
from rankstream.operations.commands.options.plot import add_plot

LOGGED = "logged"
"""What was logged, as `--against` names it."""

WEIGHTS = ("clicks", "relevant-clicks", "looks", "dcg")
"""Those of `answers.values`, which help does without; a test compares both."""

EPILOG = """examples:
  rankstream evaluate search@1.120000          a version, beside what was logged
  rankstream evaluate search new=rankings.jsonl --against search
  rankstream evaluate rankings.jsonl --local run/ --examination 1,0.6,0.4
  rankstream evaluate rankings.jsonl --log events/ --format jsonl --json
  rankstream evaluate search new=rankings.jsonl --plot values.svg

A file has a line for each query:
  {"query_id": "shoes", "items": ["a", "b"]}            always in this order
  {"query_id": "shoes", "items": ["a", "b"], "scores": [1.5, 0.2], "temperature": 1}
                                                        drawn by Plackett-Luce

Nothing is shown to anybody, and nothing is written. docs/evaluate.md says how to
read the table.

exit status: 0 if policies were valued, 1 if there is nothing to value them on
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "policies",
        nargs="+",
        metavar="POLICY",
        help="MODEL (the version that is served), MODEL@EPOCH.VERSION, or a file of "
        "rankings, FILE.jsonl or NAME=FILE.jsonl",
    )
    parser.add_argument(
        "--against",
        default=LOGGED,
        metavar="POLICY",
        help="whom the others are compared with: one of them by its name in the table, "
        "or what was logged",
    )
    add_estimator(parser, of="the values of items")
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="clicks",
        help="what an item at a rank is worth",
    )
    add_curve(
        parser,
        what="the curve of bias",
        default="that of models.NAME.training, else the newest of --curve",
    )
    parser.add_argument(
        "--ranks",
        type=whole_number,
        default=0,
        metavar="N",
        help="how many items policies show, at most as many as lists of the same "
        "candidates did (default: so many)",
    )
    parser.add_argument(
        "--temperature",
        type=_temperature,
        default=1.0,
        metavar="T",
        help="what scores of models are divided by before lists are drawn; 0: the best "
        "always goes first",
    )
    parser.add_argument(
        "--classes",
        action="store_true",
        help="items whose ids are equal before # count as one, over all queries "
        "(docs/estimators.md)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_plot(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--local",
        type=Path,
        metavar="DIR",
        help="what `replay --local --out DIR` wrote, instead of Kafka; it has no "
        "features, so rankings alone can be valued",
    )
    source.add_argument(
        "--log",
        nargs="+",
        type=Path,
        metavar="FILE",
        dest="paths",
        help="events in files, or a dump, folded here, instead of Kafka",
    )
    add_folded_format(parser)


def _temperature(told: str) -> float:
    try:
        found = float(told)
    except ValueError:
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more; got {told}")
    return found
