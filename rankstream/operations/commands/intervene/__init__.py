"""`rankstream intervene`: train a model now, list its trainings, verify one."""

import argparse
from pathlib import Path

from rankstream.operations.commands.options.plot import add_plot

EPILOG = """examples:
  rankstream intervene search --wait           train it, and show what came of it
  rankstream intervene --list                  every training, oldest first, the last
                                               refusal, and when the next one is due
  rankstream intervene --list --plot all.svg   with values and DCG by event time
  rankstream intervene --show 0.120000         all that is known of one
  rankstream dump events.dump.zst
  rankstream intervene --verify 0.120000 --events events.dump.zst search
                                               make it again: equal bytes?

The role `train` of a worker trains. Settings of [models.NAME.training] say when it
does so by itself.

exit status: 0 if it is done, 1 if it was refused or a snapshot differs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "model", nargs="?", help="which one (default: the one that is trained)"
    )
    parser.add_argument(
        "--wait", action="store_true", help="follow it to its end, and show the run"
    )
    parser.add_argument(
        "--list", action="store_true", help="every training of the model, or of all"
    )
    parser.add_argument(
        "--show", metavar="VERSION", help="all that is known of this EPOCH.VERSION"
    )
    parser.add_argument(
        "--verify",
        metavar="VERSION",
        help="make this EPOCH.VERSION again from a dump, and compare",
    )
    parser.add_argument(
        "--events", type=Path, metavar="DUMP", help="of `rankstream dump`, for --verify"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_plot(parser)
