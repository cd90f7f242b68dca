"""`rankstream replay`: historical logs in, in the order of their time."""

import argparse
import textwrap
from pathlib import Path

from producers.formats.registry import CATALOGUE, Format
from rankstream.operations.commands.options.files import (
    add_batch,
    add_epoch,
    add_features,
    add_files,
    add_sorting,
)
from rankstream.operations.commands.options.strict import add_strict

EPILOG = """formats (--format; auto looks at the first bytes):
{formats}

examples:
  rankstream replay log.jsonl.zst --namespace history
  rankstream replay logs/ --speed 10            ten times as fast as it happened
  rankstream replay log.jsonl --check           only say what would be late
  rankstream replay log.jsonl --resume          go on after a kill or Ctrl-C
  rankstream replay log.jsonl --local --out run/    in this process, no Kafka
  rankstream replay queries.ndjson events.ndjson --format ubi
  rankstream replay --queries lists.csv --clicks clicks.parquet --format csv
  rankstream replay monday.jsonl --no-end && rankstream replay tuesday.jsonl

Documents of other systems that cannot be adapted are sent too, and become dead
letters with the reason (docs/adapters.md). At the end stands what became dead
letters or late; --strict makes that the exit status 1. With --local it is 1 too where
no list, or no click of those that were sent, was applied.

Events are sorted by time, on disk where memory does not hold them. Ctrl-C waits
until Kafka has acknowledged what was sent, and says how much that is.

--local folds the events in this process and prints their outcomes. From a
canonical dump it makes the statistics that the workers made of that log, bit
for bit. 'rankstream statistics show QUERY --local run/' reads what --out wrote.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = EPILOG.format(formats="\n".join(map(_told, CATALOGUE)))
    add_files(parser)
    add_features(parser)
    add_epoch(parser)
    parser.add_argument(
        "--speed",
        type=float,
        metavar="X",
        help="X times as fast as it happened (default: as fast as possible)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue where the same replay stopped"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="count what would be late in this order; send nothing",
    )
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="keep the order of the files; says first what would be late",
    )
    add_batch(parser)
    parser.add_argument(
        "--no-end",
        action="store_true",
        help="leave the last windows open, as more logs follow",
    )
    parser.add_argument(
        "--accept-late",
        action="store_true",
        help="send even events that are too old for the target",
    )
    add_sorting(parser)
    parser.add_argument(
        "--progress-file",
        type=Path,
        metavar="FILE",
        help="where --resume finds the progress (default: in ~/.local/state)",
    )
    parser.add_argument(
        "--pass-bad-lines",
        action="store_true",
        help="send JSON lines that are no events too: they become dead letters",
    )
    add_strict(parser)
    parser.add_argument(
        "--local", action="store_true", help="fold in this process, without Kafka"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="with --local: folder for statistics.bin and snapshots.bin",
    )


def _told(each: Format) -> str:
    """A format as `--help` tells of it."""
    return textwrap.fill(
        each.doc,
        width=76,
        initial_indent=f"  {each.name:16} ",
        subsequent_indent=" " * 19,
        break_on_hyphens=False,
    )
