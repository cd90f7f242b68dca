"""`rankstream snapshots repair`: records of the topic that nobody can serve."""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from rich.table import Table

from rankstream.operations.commands import write_json
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings

HELP = "records of the topic that nobody can serve: list them, and take them away"

DESCRIPTION = """\
Lists records of the topic `snapshots` that publishers refuse, such as one whose
version no pointer can name, and asks. Then each is replaced by the record that its
key had before, where the topic still has that, and else removed. What a later
release may have written stays.
"""


def add_action(
    add: Callable[..., argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Declare it, as `add` does."""
    parser = add("repair", help=HELP, description=DESCRIPTION)
    parser.add_argument("model", nargs="?", help="default: all models")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    return parser


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Tell, ask, repair; 1 where something is left as it is.

    Raises
    ------
    TopicUnreadable, SendFailed
    """
    # Kafka's client is loaded only where it is needed.
    from producers.dead_snapshots import dead_records, repair  # noqa: PLC0415

    found = dead_records(settings, arguments.model or "")
    ours = [each for each in found if each.is_ours]
    rows: list[dict[str, Any]] = [
        {
            "key": each.key.decode(errors="replace"),
            "offset": each.offset,
            "bytes": each.size,
            "why": each.why,
            "repair": each.remedy,
        }
        for each in found
    ]
    if not arguments.json:
        _print_dead(rows)
    is_wanted = bool(ours) and (arguments.yes or _is_asked_for(len(ours), arguments))
    done = {each.offset for each in repair(settings, ours)} if is_wanted else set()
    if arguments.json:
        for row in rows:
            row["is_repaired"] = row["offset"] in done
        write_json(rows)
    elif done:
        sys.stdout.write(f"{counted(len(done), 'record')} repaired\n")
    elif ours:
        sys.stdout.write("nothing was changed: --yes does it\n")
    return 0 if len(done) == len(found) else 1


def _print_dead(rows: list[dict[str, Any]]) -> None:
    if not rows:
        sys.stdout.write("every record of `snapshots` can be served, or is a note\n")
        return
    table = Table(title=counted(len(rows), "record") + " that nobody can serve")
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*(plain(str(value)) for value in row.values()))
    print_fitted(wide_console(), table, ("bytes",))


def _is_asked_for(n_records: int, arguments: argparse.Namespace) -> bool:
    """Ask, where somebody can answer."""
    if arguments.json or not sys.stdin.isatty():
        return False
    sys.stdout.write(f"Repair {counted(n_records, 'record')}? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
