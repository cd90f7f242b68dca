"""`rankstream schemas`: the JSON Schemas of events, for programs in any language."""

import argparse
import sys
from pathlib import Path

from rankstream.wire.event_schemas import event_schemas, schema_file

SUMMARY = "JSON Schemas of events, for programs in any language"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream schemas query-event          print one\n"
        "  rankstream schemas --out contract/      write a file for each\n"
        "\n"
        "docs/contract/ has them, and what no schema can say."
    )
    parser.add_argument(
        "name",
        nargs="?",
        choices=sorted(event_schemas()),
        help="print this one; without a name all are printed, in one object",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write NAME.schema.json into this folder",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print or write what was asked for."""
    schemas = event_schemas()
    if arguments.name is not None:
        schemas = {arguments.name: schemas[arguments.name]}
    if arguments.out is None:
        printed = schemas if arguments.name is None else schemas[arguments.name]
        sys.stdout.write(schema_file(printed).decode())
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas.items():
        path = arguments.out / f"{name}.schema.json"
        path.write_bytes(schema_file(schema))
        sys.stdout.write(f"{path}\n")
    return 0
