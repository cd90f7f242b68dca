"""`rankstream erase`: where a person's events are, and a log without them."""

import argparse
from pathlib import Path

EPILOG = """examples:
  rankstream erase --user u17                    where they are, and until when
  rankstream erase --user u17 --session s3 --session s9
  rankstream erase --user u17 --from events.dump.zst --out clean.dump.zst

A list is a person's if it bears the id of the user or of a session; their clicks
are those on such lists. Kafka deletes old records, not chosen ones: what is in
its topics leaves with their retention. --from copies a dump of events without
the person; what is folded from the copy is as if they had never come.
docs/who-counts.md says what is kept where, and what are sums only.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--user", help="id of the user, as events have it")
    parser.add_argument(
        "--session",
        action="append",
        default=[],
        help="id of a session; may be repeated (default: none)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="DUMP",
        help="a dump of events",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DUMP", help="its copy without them"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
