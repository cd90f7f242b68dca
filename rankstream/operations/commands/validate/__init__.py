"""`rankstream validate`: what ingestion and the join would say of files, offline."""

import argparse

from rankstream.operations.commands.options.files import (
    add_features,
    add_files,
    add_sorting,
)

EPILOG = """examples:
  rankstream validate log.jsonl.zst --config shop.toml
  rankstream validate queries.ndjson events.ndjson --format ubi
  rankstream validate --queries lists.csv --clicks clicks.parquet
  rankstream validate shown.csv --features products.csv
  rankstream validate logs/ --json | jq '.checks[] | select(.status != "PASS")'

Each check says PASS, WARN or FAIL, or NONE where nothing of the files could be
judged, as they cannot be read; how much it found, and ten examples with
file and line, some of each reason; in tables it is the first line of a list.
FAIL: events would be lost, or more than half of them would be
late, repeats, or without a list. WARN: some would. Events are judged in the
order of their time, as 'rankstream replay' sends them; --as-is keeps that of
the files, as 'rankstream feed' does. Windows and limits are those of --config.
It is as if no other events were there. What is older by now than a window is
told apart: it would be late where other events go on.

exit status: 0 where nothing failed, 1 where something did (with --strict also
where something warned), 2 where the call or the settings are wrong
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_files(parser)
    add_features(parser)
    parser.add_argument(
        "--as-is", action="store_true", help="judge them in the order of the files"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit status 1 for warnings too"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_sorting(parser)
