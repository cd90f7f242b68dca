"""`rankstream snapshots`: which versions of which models rankers can read."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, JustifyMethod
from rich.table import Table

from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.models.snapshots import (
    VersionDetails,
    check_known,
    checked_versions,
    opened_store,
    snapshot_at,
    versions,
)
from rankstream.operations.commands import nothing, settings_of, tell, write_json
from rankstream.operations.commands.snapshots import canary, change, repair, trees
from rankstream.operations.commands.snapshots.change import place_named
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from rankstream.snapshots import Snapshot, SnapshotStore

WIDTH = 100

SPARE = ("bytes", "features", "kind")
"""Columns that may go where there is no room."""


EXPORT_HELP = "position weights of a curve of bias, for LightGBM and XGBoost"

EXPORT_DESCRIPTION = (
    "Print JSON: what a click at each rank counts, 1 over its examination, and where "
    "XGBoost's own estimate begins (docs/estimators.md). With --rows, also the files "
    "that LightGBM reads beside its data: ROWS.weight, ROWS.position and ROWS.query."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream snapshots list\n"
        "  rankstream snapshots show search --version 0.1200\n"
        "  rankstream snapshots verify --json\n"
        "  rankstream snapshots rollback search 0.1200    serve it, and stay there\n"
        "  rankstream snapshots follow search             serve the newest again\n"
        "  rankstream snapshots promote search --from shadow@0.10000\n"
        "  rankstream snapshots promote search --from shadow@0.10000 --canary\n"
        "  rankstream snapshots canary search             how it does; --end\n"
        "  rankstream snapshots history search            who changed it, and why\n"
        "  rankstream snapshots repair                    records nobody can serve\n"
        "  rankstream snapshots import search --from model.txt   trees of LightGBM\n"
        "  rankstream snapshots export search --to xgboost --out model.json\n"
        "  rankstream snapshots export-curve eyes         for LightGBM and XGBoost\n"
        "\n"
        "A model that is trained (versions = 'trained') is not followed: after a\n"
        "rollback its schedule leaves it alone until `rankstream intervene MODEL`.\n"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser(
        "list", help="models, each with the version that is served"
    )
    listing.add_argument(
        "model", nargs="?", help="list every version of this model instead"
    )
    show = actions.add_parser("show", help="everything about one version")
    show.add_argument("model")
    show.add_argument(
        "--version",
        type=place_named,
        metavar="EPOCH.VERSION",
        help="which one (default: the one that is served)",
    )
    verifying = actions.add_parser(
        "verify", help="check every stored version; exit status 1 if one is bad"
    )
    verifying.add_argument("model", nargs="?", help="default: all models")
    changing = change.add_actions(actions.add_parser)
    repairing = repair.add_action(actions.add_parser)
    watching = canary.add_action(actions.add_parser)
    bringing = trees.add_actions(actions.add_parser)
    exporting = actions.add_parser(
        "export-curve", help=EXPORT_HELP, description=EXPORT_DESCRIPTION
    )
    exporting.add_argument("model")
    exporting.add_argument(
        "--version",
        type=place_named,
        metavar="EPOCH.VERSION",
        help="which one (default: the newest)",
    )
    add_export_arguments(exporting)
    for action in (
        listing, show, verifying, *changing, repairing, watching, *bringing
    ):  # fmt: skip
        action.add_argument("--json", action="store_true", help="print JSON")


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options beside the model and its version."""
    parser.add_argument(
        "--most",
        type=float,
        default=float("inf"),
        metavar="W",
        help="no weight is larger: for training only, as it biases",
    )
    parser.add_argument(
        "--positions",
        type=int,
        metavar="N",
        help="places that XGBoost estimates (default: as many ranks as are known)",
    )
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="CSV",
        help="query, rank and clicked of each row of the data, with a header",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 if there is nothing, or something is bad."""
    settings = settings_of(arguments)
    if arguments.action in _WITHOUT_REDIS:
        return _WITHOUT_REDIS[arguments.action](settings, arguments)
    with opened_store(settings) as store:
        if arguments.model is not None:
            check_known(settings, store, arguments.model)
        if arguments.action == "verify":
            return _verify(store, arguments)
        if arguments.action in ("show", "export-curve"):
            return _of_one(store, arguments)
        if arguments.action in change.ACTIONS:
            return change.run(settings, store, arguments)
        return _list(store, arguments)


_WITHOUT_REDIS = {
    "repair": repair.run,
    "history": change.show_history,
    "canary": canary.run,
    "import": trees.run_import,
    "export": trees.run_export,
}


def _of_one(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    snapshot = snapshot_at(store, arguments.model, arguments.version)
    if snapshot is None:
        return nothing(f"a model must have a snapshot; {arguments.model!r} has none")
    if arguments.action == "show":
        return _show(VersionDetails.of(snapshot), arguments)
    return export_curve(snapshot, arguments)


def export_curve(snapshot: Snapshot, arguments: argparse.Namespace) -> int:
    """Print what the curve is to others, and write files beside the rows.

    Raises
    ------
    SnapshotError, ValueError
        See `rankstream.operations.answers.exports.exported_curve.exported_curve`.
    """
    # Nobody else needs estimators.
    from rankstream.operations.answers.exports.exported_curve import exported_curve  # noqa: PLC0415

    found, remarks = exported_curve(
        snapshot,
        most=arguments.most,
        n_positions=arguments.positions,
        rows=arguments.rows,
    )
    write_json(found.to_dict())
    for each in remarks:
        tell(each)
    return 0


def _list(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    found = versions(store, arguments.model)
    if not found:
        of_it = f" of {arguments.model!r}" if arguments.model else ""
        return nothing(f"there are no snapshots{of_it} yet")
    _print(found, as_json=arguments.json, title=counted(len(found), "snapshot"))
    return 0


def _show(found: VersionDetails, arguments: argparse.Namespace) -> int:
    if arguments.json:
        write_json(found.to_dict())
        return 0
    table = Table(show_header=False, title=plain(f"{found.model} {found.version}"))
    for name, value in found.to_dict().items():
        table.add_row(name.replace("_", " "), _text(value))
    console = wide_console()
    print_fitted(console if console.width < WIDTH else Console(width=WIDTH), table)
    return 0


def _verify(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    models = [arguments.model] if arguments.model else store.models()
    found = checked_versions(store, models)
    if not found:
        return nothing("there are no snapshots yet")
    n_bad = sum(not each.is_good for each in found)
    title = f"{counted(len(found), 'snapshot')}, {n_bad:,} bad"
    _print(found, as_json=arguments.json, title=title)
    return 1 if n_bad else 0


def _print(found: Sequence[Answer], *, as_json: bool, title: str) -> None:
    rows = [each.to_dict() for each in found]
    if as_json:
        write_json(rows)
        return
    table = Table(title=title)
    for name, value in rows[0].items():
        justify: JustifyMethod = "left" if isinstance(value, str) else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    print_fitted(wide_console(), table, SPARE)


def _text(value: object) -> str:
    if value is None:
        return "none"
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_number else plain(str(value))
