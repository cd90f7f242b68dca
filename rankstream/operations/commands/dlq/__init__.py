"""`rankstream dlq`: look at dead letters, and send them again."""

import argparse

from rankstream.wire.refusal_codes import NO_CODE, Code
from rankstream.wire.topics import CLICKS, QUERIES

CODES = (*(code.value for code in Code), NO_CODE)

EPILOG = """examples:
  rankstream dlq count                        how many, by topic, stage and code
  rankstream dlq list --topic clicks --code no-route --limit 20
  rankstream dlq show clicks/0/17             all of one, with its reasons
  rankstream dlq show clicks/0/17 --raw > letter
                                              its own bytes, nothing else
  rankstream dlq replay --code schema --dry-run
                                              what would become of them
  rankstream dlq replay --code schema

Replayed letters go back to the input topic that they came from, byte for byte.
What is still wrong becomes a dead letter again. What is too old becomes late.
What was applied before becomes a duplicate.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("count", "list", "show", "replay"))
    parser.add_argument("place", nargs="?", help="with show: topic/partition/offset")
    parser.add_argument(
        "--topic", choices=(QUERIES, CLICKS), help="only letters from this topic"
    )
    parser.add_argument(
        "--code",
        choices=CODES,
        help="only letters with this code (see docs/refusals.md)",
    )
    parser.add_argument(
        "--limit", type=int, default=50, help="with list: how many (default 50)"
    )
    parser.add_argument("--raw", action="store_true", help="with show: only the bytes")
    parser.add_argument(
        "--dry-run", action="store_true", help="with replay: send nothing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
