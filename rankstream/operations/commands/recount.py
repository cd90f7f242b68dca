"""`rankstream recount`: the canonical log counted again, and compared."""

import argparse
import json
import sys
from pathlib import Path

from rankstream.operations.commands import settings_of
from rankstream.operations.recount.log import recount_dump, recount_topics
from rankstream.operations.terminal.words import visible
from streams.recount.differences import Verdict
from streams.recount.rules import rules_of

EPILOG = """examples:
  rankstream recount --namespace shop
                           what the workers counted; they may run meanwhile
  rankstream recount --events events.dump.zst --local run/
                           what `replay --local --out run/` counted

It reads `events` from the beginning with code that it shares with no stage. It
compares the result with the statistics and outcomes of the last checkpoint, and
with `interactions`. A `replay --local` of JSONL, Parquet or packed logs keeps no
`events`, and cannot be counted again: send such files to Kafka. Inputs that left
their topic unread never reached `events`; those that an operator accepted are
listed (docs/upgrading.md).

exit status: 0 where nothing is lost, double, wrong or extra, else 1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--events", type=Path, metavar="DUMP", help="a dumped log instead of Kafka"
    )
    parser.add_argument(
        "--local",
        type=Path,
        metavar="DIR",
        help="with --events: what `replay --local --out DIR` wrote",
    )


def run(arguments: argparse.Namespace) -> int:
    """Count again and compare; 1 where the counts differ."""
    settings = settings_of(arguments)
    if (arguments.events is None) != (arguments.local is None):
        got = "--local" if arguments.events is None else "--events"
        raise ValueError(
            f"--events and --local must be given together; got {got} only. What is "
            "counted again is the canonical log: a `replay --local` of a dump folded "
            "that, one of other files keeps none"
        )
    if arguments.events is not None:
        verdict = recount_dump(arguments.events, arguments.local, rules_of(settings))
    else:
        verdict = recount_topics(settings)
    if arguments.json:
        sys.stdout.write(json.dumps(verdict.as_dict()) + "\n")
    else:
        _tell(verdict)
    return 0 if verdict.is_clean else 1


def _tell(verdict: Verdict) -> None:
    sys.stdout.write(
        f"{verdict.n_events:,} events counted again: lost {verdict.lost:,}, double "
        f"{verdict.double:,}, wrong {verdict.wrong:,}, extra {verdict.extra:,}\n"
    )
    for line in verdict.differences + verdict.accepted_losses:
        # Names of queries and items are what users and services sent.
        sys.stdout.write(f"  {visible(line)}\n")
