"""The option of those who send events: whether losses make a bad exit status."""

import argparse


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit status 1 where an event became a dead letter, late or an orphan, or "
        "where that cannot be told yet; waits until workers have judged all, or stand "
        "still",
    )
