"""`rankstream restore`: a namespace made again from a backup."""

import argparse
from pathlib import Path

from rankstream.wire.topics import DECISIONS, EXPERIMENTS, SNAPSHOTS, TRAINING

EPILOG = """examples:
  rankstream topics create --config shop.toml --namespace again
  rankstream restore monday/ --config shop.toml --namespace again
  rankstream restore monday/ --config shop.toml --topic training

The namespace must have its topics, and nothing in them but input; no worker may run.
The first worker that starts then counts the log from its beginning. --topic writes
only what a topic lacks, and workers may run.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, help="as `rankstream backup` wrote it")
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        choices=(SNAPSHOTS, EXPERIMENTS, TRAINING, DECISIONS),
        help="what this one lacks, and nothing else; may be repeated (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
