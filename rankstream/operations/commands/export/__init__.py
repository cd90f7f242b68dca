"""`rankstream export`: any part of the log as arrays."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from rankstream.operations.commands.options.files import add_folded_format

EPILOG = """examples:
  rankstream export --arrays log.npz                   all of `interactions`
  rankstream export --arrays v2.npz --intervention v2 --since 2026-05-01
  rankstream export --arrays run.npz interactions.dump
  rankstream export --arrays obd.npz OBD/ --format obd

The file holds NumPy arrays, a row for each item that a list showed, under the
names of obp's bandit feedback: n_rounds, n_actions, action, position, reward,
pscore, context, action_context. docs/estimators.md says what is in them, and
what else the file has. Lists count once their click window has passed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="events in files, or a dump, instead of Kafka's log",
    )
    parser.add_argument(
        "--arrays",
        type=Path,
        required=True,
        metavar="FILE.npz",
        help="where to write them",
    )
    parser.add_argument(
        "--query",
        action="append",
        default=[],
        metavar="QUERY",
        help="only lists of this one; may be given again",
    )
    parser.add_argument(
        "--intervention",
        action="append",
        default=[],
        metavar="NAME",
        help="only lists of this one, '' for lists without; may be given again",
    )
    parser.add_argument(
        "--since", type=_time, metavar="TIME", help="a day, or a time with its zone"
    )
    parser.add_argument(
        "--until", type=_time, metavar="TIME", help="the first time that is left out"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_folded_format(parser)


def _time(told: str) -> int:
    """Epoch milliseconds of a day in UTC, or of a time with its zone."""
    try:
        time = datetime.fromisoformat(told)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a day (2026-05-01) or a time with its zone; got {told}"
        ) from error
    if time.tzinfo is None:
        if "T" in told or " " in told:
            raise argparse.ArgumentTypeError(f"must have a zone; got {told}")
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1_000)
