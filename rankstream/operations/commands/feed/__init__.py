"""`rankstream feed`: live events in, line by line."""

import argparse
from pathlib import Path

from producers.feed import (
    AUTO,
    KINDS,
)
from producers.formats.yandex_sessions import EPOCH_MS
from rankstream.operations.commands.options.files import (
    add_batch,
    add_files,
)
from rankstream.operations.commands.options.strict import add_strict

EPILOG = """examples:
  tail -F /var/log/shop/events.jsonl | rankstream feed --namespace shop
  rankstream feed --follow /var/log/shop/events.jsonl --batch 100
  rankstream feed --kind click < clicks.jsonl
  rankstream feed --format ubi --option ordinal_base=0 < ubi_events.ndjson
  rankstream feed --queries lists.csv --clicks clicks.parquet

A line is the JSON of one query or click event. A line with 'shown',
'candidates' or 'scores' is a query event. A line that is no event is sent as
well: it becomes a dead letter of its topic.

--format reads documents of other systems (docs/adapters.md). What cannot be
adapted is sent too, and becomes a dead letter with the reason.

Files are read to their end, and their events sent in the order of their time,
as 'rankstream replay' does, which also goes on where it was stopped.

A followed file is read from its beginning (--from-end: from its end). When it
is rotated, reading goes on in the new file. A repeated event is counted as a
duplicate, never twice.

Ctrl-C waits until Kafka has acknowledged what was read, and says how much that
is.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--follow",
        type=Path,
        metavar="FILE",
        help="read this growing file, instead of standard input",
    )
    parser.add_argument(
        "--from-end",
        action="store_true",
        help="with --follow: start at the end of the file",
    )
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default=AUTO,
        help="what every line is (default: known by its fields)",
    )
    add_batch(parser)
    add_files(parser)
    parser.set_defaults(
        epoch_ms=EPOCH_MS, memory_mb=256, scratch=None, as_is=False, pass_bad_lines=True
    )
    add_strict(parser)
    parser.add_argument(
        "--end", action="store_true", help="close every window when the input ends"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
