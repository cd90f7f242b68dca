"""`rankstream dump`: the canonical log into a file."""

import argparse
from pathlib import Path

from rankstream.wire.topics import EVENTS, INTERACTIONS

EPILOG = """examples:
  rankstream dump events.dump.zst --namespace shop
  rankstream dump interactions.dump --topic interactions
  rankstream replay events.dump.zst --namespace again    sends the events again

The file holds the committed records up to the present end of the log, partition
by partition. Each is byte for byte as in the log, with a checksum. A name that
ends in .gz or .zst makes a packed file. The file appears when it is complete.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--topic",
        choices=(EVENTS, INTERACTIONS),
        default=EVENTS,
        help="which log (default: events)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
