"""`rankstream init`: a first settings file, by three questions or by options."""

import argparse
from pathlib import Path

EVENTS = ("own", "ubi", "metarank")
GOALS = ("count", "compare", "learn")
"""Those of `answers.new_settings`, which help does without; a test compares both."""

EPILOG = """examples:
  rankstream init                        asks where Kafka is, what events look like,
                                         and what is to be done with them
  rankstream init shop.toml --kafka broker:9092 --events ubi --goal learn \\
      --features 24 --namespace shop     asks nothing
  rankstream init --kafka none --events own --goal count
                                         for logs in files, without Kafka

The file has what was answered, and beside it all other settings of the same sections,
as comments with their defaults. A file that is there stays as it is.

exit status: 0 if it was written, 2 if not
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=Path("rankstream.toml"),
        metavar="FILE",
        help="where to write it (default: rankstream.toml)",
    )
    parser.add_argument(
        "--kafka",
        metavar="ADDRESS",
        help="brokers, such as broker:9092, or none: logs lie in files",
    )
    parser.add_argument(
        "--events", choices=EVENTS, help="what lists and clicks look like"
    )
    parser.add_argument(
        "--goal",
        choices=GOALS,
        help="count and correct clicks, compare rankers, or learn one",
    )
    parser.add_argument(
        "--features",
        type=int,
        default=10,
        metavar="N",
        help="with the goal learn: how many numbers there are of each item",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
