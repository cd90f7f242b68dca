"""`rankstream schemas`: the JSON Schemas of events, for programs in any language."""

import argparse
import sys
from pathlib import Path

from rankstream.operations.serving.openapi import description
from rankstream.wire.event_schemas import Schema, event_schemas, schema_file

API = "openapi"
"""What `rankstream serve` takes and answers; no schema itself, it holds them."""


def contract() -> dict[str, Schema]:
    """Every schema by its name, and the description of the API."""
    return {**event_schemas(), API: description()}


def file_name(name: str) -> str:
    """The file that holds a schema, or the description."""
    return "openapi.json" if name == API else f"{name}.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream schemas query-event          print one\n"
        "  rankstream schemas openapi              the API of `rankstream serve`\n"
        "  rankstream schemas --out contract/      write a file for each\n"
        "  rankstream schemas --result 'dlq list'  what a command prints with --json\n"
        "  rankstream schemas --result             of all commands, in one object\n"
        "\n"
        "docs/contract/ has them, and what no schema can say."
    )
    parser.add_argument(
        "name",
        nargs="?",
        choices=sorted(contract()),
        help="print this one; without a name all are printed, in one object",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write a file for each into this folder",
    )

    parser.add_argument(
        "--result",
        nargs="?",
        const="",
        metavar="COMMAND",
        help="of what a command prints with --json; without a command, of all",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print or write what was asked for."""
    if arguments.result is not None:
        return _print_results(arguments)
    schemas = contract()
    if arguments.name is not None:
        schemas = {arguments.name: schemas[arguments.name]}
    if arguments.out is None:
        printed = schemas if arguments.name is None else schemas[arguments.name]
        sys.stdout.write(schema_file(printed).decode())
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas.items():
        path = arguments.out / file_name(name)
        path.write_bytes(schema_file(schema))
        sys.stdout.write(f"{path}\n")
    return 0


def _print_results(arguments: argparse.Namespace) -> int:
    """Print the schemas of what commands print."""
    # All answers are loaded with their types, and nobody else needs them here.
    from rankstream.operations.commands import results  # noqa: PLC0415

    if arguments.name is not None or arguments.out is not None:
        raise ValueError(
            "--result must be given alone, as it is about commands, not events: leave "
            "out the name and --out"
        )
    printed: Schema = results.result_schemas()
    if arguments.result:
        printed = results.result_schema(arguments.result)
    sys.stdout.write(schema_file(printed).decode())
    return 0
