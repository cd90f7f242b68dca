"""`rankstream backup`: all that a namespace can be made again from, into a folder."""

import argparse
from pathlib import Path

EPILOG = """examples:
  rankstream backup monday/ --config shop.toml
  rankstream restore monday/ --config shop.toml --namespace again

The folder holds the log (`events`, as `rankstream dump` writes it), and the last
values of `snapshots`, `experiments`, `training` and `decisions`. Statistics,
comparisons and what is learned are made again from the log. Workers may run. Dead
letters, late events and input that nobody has read are left out
(docs/runbooks/backup-and-restore.md).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, help="a new or empty one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
