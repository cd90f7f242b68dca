"""`rankstream plan`: what a load needs, before anything runs."""

import argparse
import math
from pathlib import Path

UNITS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "day": 86_400.0}

POLICIES = ("deterministic", "logged", "plackett-luce")
"""Those of `answers.capacity.load`, which help does without; a test compares both."""

EPILOG = """examples:
  rankstream plan --events 20000/s --lists 10 --queries 5e6
  rankstream plan --events 9e8/day --lists 24 --queries 2e5 --policy plackett-luce \\
      --features 46 --config shop.toml     windows, retention and roles are the file's
  rankstream bench capacity --save here.json
  rankstream plan --events 500/s --lists 10 --queries 1e5 --constants here.json

Constants are those of the machine that docs/capacity.md names, unless a file of
`bench capacity --save` is given. What nobody measured is not said.

exit status: 0 if all was said, 1 if something was not, 2 if the call is wrong
"""


def rate(told: str) -> float:
    """Events a second, of a number with its unit.

    Examples
    --------
    >>> rate("20000/s"), rate("120/min"), rate("1e6")
    (20000.0, 2.0, 1000000.0)
    """
    number, _, unit = told.partition("/")
    try:
        found = float(number) / UNITS[unit or "s"]
    except (ValueError, KeyError):
        found = math.nan
    if not 0.0 <= found < math.inf:
        units = ", ".join(UNITS)
        raise argparse.ArgumentTypeError(
            f"must be a number of 0 or more, by one of {units}; got {told}"
        )
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    load = parser.add_argument_group("the load")
    load.add_argument(
        "--events", type=rate, required=True, metavar="N/s",
        help="lists and clicks together, by s, min, h or day",
    )  # fmt: skip
    load.add_argument(
        "--lists", type=int, required=True, metavar="ITEMS", help="items of a list"
    )
    load.add_argument(
        "--queries", type=float, required=True, metavar="N",
        help="distinct queries within an era (time.keep_ms)",
    )  # fmt: skip
    load.add_argument(
        "--clicks", type=float, default=0.4, metavar="N", help="clicks of a list"
    )
    load.add_argument(
        "--policy", choices=POLICIES, default=POLICIES[0], help="how lists are drawn"
    )
    load.add_argument(
        "--features", type=int, default=0, metavar="N",
        help="numbers of each shown item, for learners; 0 is none",
    )  # fmt: skip
    load.add_argument(
        "--candidates", type=int, default=0, metavar="N",
        help="items of which a list is drawn (default: those that are shown)",
    )  # fmt: skip
    instead = parser.add_argument_group("in place of what the settings say")
    instead.add_argument(
        "--partitions", type=int, metavar="N", help="of all topics with several"
    )
    instead.add_argument(
        "--retention", type=int, metavar="DAYS",
        help="of events and interactions, 3 or more",
    )  # fmt: skip
    instead.add_argument(
        "--window", type=float, metavar="SECONDS", help="for which clicks count"
    )
    instead.add_argument("--replicas", type=int, metavar="N", help="of each topic")
    parser.add_argument(
        "--input-days", type=float, default=7.0, metavar="DAYS",
        help="for which the cluster keeps queries and clicks",
    )  # fmt: skip
    parser.add_argument(
        "--utilisation", type=float, default=0.6, metavar="SHARE",
        help="of a core that a process takes on average",
    )  # fmt: skip
    parser.add_argument(
        "--constants", type=Path, metavar="FILE",
        help="of `bench capacity --save` (default: those that are shipped)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
