"""`rankstream snapshots`: which versions of which models rankers can read."""

import argparse
import datetime
import json
import sys
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table

from producers.readiness import Waiting, wait_for_redis
from rankstream.operations.commands.export_curve import (
    EXPORT_DESCRIPTION,
    EXPORT_HELP,
    add_export_arguments,
)
from rankstream.operations.commands.snapshots_repair import (
    DESCRIPTION as REPAIR_DESCRIPTION,
)
from rankstream.operations.commands.snapshots_repair import HELP as REPAIR_HELP
from rankstream.operations.commands.snapshots_repair import (
    add_repair_arguments,
    repair_snapshots,
)
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.plain_text import plain
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotStore,
    decode_at,
    is_pointer,
    parent_pointer,
    pointer_from,
    pointer_of,
    store_of,
)

SUMMARY = "model snapshots: list, show, verify, roll back, follow, repair"

WIDTH = 100

SPARE = ("bytes", "features", "kind")
"""Columns that may go where there is no room."""

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream snapshots list\n"
        "  rankstream snapshots show search --version 0.1200\n"
        "  rankstream snapshots verify --json\n"
        "  rankstream snapshots rollback search 0.1200    serve it, and stay there\n"
        "  rankstream snapshots follow search             serve the newest again\n"
        "  rankstream snapshots repair                    records nobody can serve\n"
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
        type=_place,
        metavar="EPOCH.VERSION",
        help="which one (default: the one that is served)",
    )
    verifying = actions.add_parser(
        "verify", help="check every stored version; exit status 1 if one is bad"
    )
    verifying.add_argument("model", nargs="?", help="default: all models")
    rolling = actions.add_parser(
        "rollback",
        help="serve an old version until `follow`, or of a model that is trained until "
        "`rankstream intervene`",
    )
    rolling.add_argument("model")
    rolling.add_argument("version", type=_place, metavar="EPOCH.VERSION")
    following = actions.add_parser(
        "follow",
        help="end a rollback of a model that learns online: serve the newest version "
        "again",
    )
    following.add_argument("model")
    repairing = actions.add_parser(
        "repair", help=REPAIR_HELP, description=REPAIR_DESCRIPTION
    )
    add_repair_arguments(repairing)
    exporting = actions.add_parser(
        "export-curve", help=EXPORT_HELP, description=EXPORT_DESCRIPTION
    )
    exporting.add_argument("model")
    exporting.add_argument(
        "--version",
        type=_place,
        metavar="EPOCH.VERSION",
        help="which one (default: the newest)",
    )
    add_export_arguments(exporting)
    for action in (listing, show, verifying, rolling, following, repairing):
        action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 if there is nothing, or something is bad."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    if arguments.action == "repair":
        return repair_snapshots(settings, arguments)
    wait_for_redis(settings.redis.url, Waiting())
    store = store_of(settings)
    try:
        if arguments.model is not None:
            _check_known(settings, store, arguments.model)
        if arguments.action == "verify":
            return _verify(store, arguments)
        if arguments.action == "show":
            return _show(store, arguments)
        if arguments.action == "export-curve":
            return _export_curve(store, arguments)
        if arguments.action in ("rollback", "follow"):
            return _move(settings, store, arguments)
        return _list(store, arguments)
    finally:
        store.close()


def _export_curve(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    # Nobody else needs estimators.
    from rankstream.operations.commands.curve_weights import export_curve  # noqa: PLC0415

    snapshot = _asked(store, arguments)
    if snapshot is None:
        return _nothing(_has_none(arguments.model))
    return export_curve(snapshot, arguments)


def _asked(store: SnapshotStore, arguments: argparse.Namespace) -> Snapshot | None:
    """The version that was asked for, else the one that is served."""
    model, place = arguments.model, arguments.version
    if place is None:
        return _served(store, model)
    return decode_at(store.load(model, place) or b"", model, place)


def _has_none(model: str) -> str:
    return f"a model must have a snapshot; {model!r} has none"


def _check_known(settings: Settings, store: SnapshotStore, model: str) -> None:
    """Refuse a name that neither Redis nor the settings know.

    Raises
    ------
    ValueError
    """
    known = sorted({*store.models(), *settings.models, *settings.curves})
    if model not in known:
        raise ValueError(
            f"a model must be one of {known}, of Redis and the settings; got {model!r}"
        )


def _list(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    if arguments.model is None:
        found = [_served(store, model) for model in store.models()]
        snapshots = [snapshot for snapshot in found if snapshot is not None]
    else:
        model = arguments.model
        loaded = [(at, store.load(model, at)) for at in reversed(store.versions(model))]
        # A publisher may have trimmed the oldest since the list was read.
        snapshots = [decode_at(value, model, at) for at, value in loaded if value]
    if not snapshots:
        of_it = f" of {arguments.model!r}" if arguments.model else ""
        return _nothing(f"there are no snapshots{of_it} yet")
    rows = [_summary(snapshot) for snapshot in snapshots]
    _print(rows, as_json=arguments.json, title=counted(len(rows), "snapshot"))
    return 0


def _show(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    snapshot = _asked(store, arguments)
    if snapshot is None:
        return _nothing(_has_none(arguments.model))
    row = _details(snapshot)
    if arguments.json:
        _write_json(row)
        return 0
    title = plain(f"{snapshot.model} {pointer_of(snapshot)}")
    table = Table(show_header=False, title=title)
    for name, value in row.items():
        table.add_row(name.replace("_", " "), _text(value))
    console = wide_console()
    print_fitted(console if console.width < WIDTH else Console(width=WIDTH), table)
    return 0


def _verify(store: SnapshotStore, arguments: argparse.Namespace) -> int:
    models = [arguments.model] if arguments.model else store.models()
    rows = [
        {"model": model, "version": str(place), "verdict": reason or "good"}
        for model in models
        for place, reason in store.verify(model)
    ]
    if not rows:
        return _nothing("there are no snapshots yet")
    n_bad = sum(row["verdict"] != "good" for row in rows)
    title = f"{counted(len(rows), 'snapshot')}, {n_bad:,} bad"
    _print(rows, as_json=arguments.json, title=title)
    return 1 if n_bad else 0


def _move(
    settings: Settings, store: SnapshotStore, arguments: argparse.Namespace
) -> int:
    # Kafka's client is loaded only where it is needed.
    from producers.snapshot_records import follow_again, roll_back  # noqa: PLC0415

    model = arguments.model
    if arguments.action == "follow":
        place, until = follow_again(settings, store, model), "and what is learned after"
    else:
        place = roll_back(settings, store, model, arguments.version)
        until = _held_until(settings, model)
    if arguments.json:
        _write_json({"model": model, "version": str(place)})
    else:
        sys.stdout.write(f"{model} {place} is served, {until}\n")
    return 0


def _held_until(settings: Settings, model: str) -> str:
    """What ends a rollback: learned versions lie in earlier epochs, and never do.

    The schedule of a training leaves alone what was rolled back, and a request trains
    it on, in a later epoch.
    """
    follow = f"`rankstream snapshots follow {model}`"
    intervene = f"`rankstream intervene {model}`"
    if model not in settings.models | settings.curves:
        return f"until {follow}, or, if it is trained by a schedule, {intervene}"
    if model in settings.schedules:
        return f"and its schedule leaves it alone, until {intervene} trains it on"
    return f"until {follow}"


def _served(store: SnapshotStore, model: str) -> Snapshot | None:
    answer = store.current(model)
    return None if answer is None else decode_at(answer[1] or b"", model, answer[0])


def _summary(snapshot: Snapshot) -> Row:
    return {
        "model": snapshot.model,
        "version": str(pointer_of(snapshot)),
        "updates": snapshot.updates,
        "created": _time(snapshot.created_ms),
        "kind": snapshot.kind,
        "features": snapshot.n_features,
        "bytes": len(snapshot.weights),
    }


def _details(snapshot: Snapshot) -> Row:
    parent = parent_pointer(snapshot)
    return _summary(snapshot) | {
        "intervention": snapshot.intervention or snapshot.model,
        "parent": None if parent is None else str(parent),
        "hidden": snapshot.hidden,
        "normalisation": snapshot.normalisation,
        "features_hash": snapshot.features_hash.hex(),
        "feature_names": snapshot.feature_names,
        "is_shifted": bool(snapshot.shift),
        "is_scaled": bool(snapshot.scale),
        "groups": snapshot.groups,
        "sources": [list(source) for source in snapshot.sources],
        "created_ms": snapshot.created_ms,
    }


def _print(rows: list[Row], *, as_json: bool, title: str) -> None:
    if as_json:
        _write_json(rows)
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


def _time(at_ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(at_ms / 1_000, datetime.UTC)
    return moment.isoformat(timespec="seconds") if at_ms else "before the first"


def _place(text: str) -> Pointer:
    """Either `EPOCH.VERSION`, or a version of epoch 0."""
    value = text if "." in text else f"0.{text}"
    if not is_pointer(value.encode()):
        raise argparse.ArgumentTypeError(f"must be EPOCH.VERSION; got {text!r}")
    return pointer_from(value.encode())


def _write_json(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


def _nothing(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 1
