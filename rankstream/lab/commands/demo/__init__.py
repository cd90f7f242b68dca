"""`rankstream demo`: the whole pipeline in one process, live, with nothing but Python.

Simulated users click on the lists of a ranker that learns from their clicks; events
pass the same folds as on Kafka. Relevance and position bias are planted, so that
what is learned can be compared with the truth.
"""

import argparse
from pathlib import Path

from rankstream.operations.commands.options.ports import port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream demo\n"
        "  rankstream demo --web      the monitor's page, live, in a browser\n"
        "  rankstream demo --data Fold1/train.txt --impressions 10000\n"
    )
    parser.add_argument(
        "--data", type=Path, help="a LETOR file, instead of generated data"
    )
    parser.add_argument("--impressions", type=int, default=12_000, help="lists to show")
    parser.add_argument("--seed", type=int, default=7, help="seed of all random draws")
    face = parser.add_mutually_exclusive_group()
    face.add_argument(
        "--plain", action="store_true", help="print the last tables only, no live view"
    )
    face.add_argument(
        "--web",
        action="store_true",
        help="show it on the monitor's page, until Ctrl-C; users compare what is "
        "learned with the ranker before it",
    )
    parser.add_argument(
        "--port", type=port, default=8087, help="of the page; 0 takes any free one"
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="do not open the page, but print its address",
    )
