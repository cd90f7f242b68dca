"""`rankstream snapshots import` and `export`: from and for other systems."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from producers.readiness import Waiting, wait_for_kafka
from rankstream.operations.answers.folders import snapshot_in, writing
from rankstream.operations.answers.models.snapshots import (
    check_known,
    held_until,
    opened_store,
    snapshot_at,
)
from rankstream.operations.commands import nothing, write_json
from rankstream.operations.commands.snapshots.change import (
    add_expected,
    place_named,
    shown,
)
from rankstream.operations.exported_models import SYSTEMS
from rankstream.operations.terminal.words import counted, plain
from rankstream.operations.tree_files.formats import AUTO, FORMATS, read_model_file
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot
from rankstream.wire.envelope import pointer_of

if TYPE_CHECKING:
    from rankstream.operations.answers.models.tree_models import FittedOn, ImportedTrees

NOBODY = "none"

IMPORT_HELP = "serve trees that LightGBM, XGBoost or RankLib trained"

IMPORT_DESCRIPTION = """\
Reads a model of LightGBM (text), XGBoost (JSON or UBJSON), RankLib (XML) or of the
plug-in of Elasticsearch, checks its features against [models.MODEL], and serves it as
any other version: with a name of its own in what rankers log, and a row in the history
(docs/trees.md). With --out nothing is served: a folder gets the snapshot, which
`rankstream rank` and rankers read.
"""

EXPORT_HELP = "a version as a file that a search engine or another library loads"

EXPORT_DESCRIPTION = """\
Writes a version as what Elasticsearch, OpenSearch and Solr load into their modules for
learning to rank, or as a model of LightGBM, XGBoost, RankLib or ONNX, with features by
name. Scores stay the same (docs/how-to/search-engine.md): what a system cannot express
is refused.
"""


def add_actions(
    add: Callable[..., argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Declare both, as `add` does one."""
    importing = add("import", help=IMPORT_HELP, description=IMPORT_DESCRIPTION)
    importing.add_argument("model", help="one with kind = 'trees'")
    importing.add_argument(
        "--from", dest="file", required=True, type=Path, metavar="FILE",
        help="the model as its library saved it",
    )  # fmt: skip
    importing.add_argument(
        "--format",
        choices=(AUTO, *FORMATS),
        default=AUTO,
        help="what wrote it (default: by how it begins)",
    )
    importing.add_argument(
        "--fitted-on",
        type=_groups_named,
        metavar="GROUPS",
        help="groups of the statistics whose clicks it was trained on, as 0,1,2, or "
        "none: it can then be valued on the others (default: nobody knows)",
    )
    importing.add_argument(
        "--out", type=Path, metavar="DIR", help="write it there, and serve nothing"
    )
    add_expected(importing)
    exporting = add("export", help=EXPORT_HELP, description=EXPORT_DESCRIPTION)
    exporting.add_argument("model")
    exporting.add_argument(
        "version", nargs="?", type=place_named, metavar="EPOCH.VERSION",
        help="which one (default: the one that is served)",
    )  # fmt: skip
    exporting.add_argument(
        "--to", dest="form", required=True, choices=SYSTEMS, help="what loads it"
    )
    exporting.add_argument(
        "--snapshot", type=Path, metavar="PATH",
        help="the file or folder with the version, instead of Redis",
    )  # fmt: skip
    exporting.add_argument(
        "--out", type=Path, metavar="FILE", help="where to (default: standard output)"
    )
    return [importing]


def run_import(settings: Settings, arguments: argparse.Namespace) -> int:
    """Read the file, and serve or write what is in it.

    Raises
    ------
    ValueError, RuntimeError
        Where it is refused.
    """
    # Whoever only exports loads no client of Kafka.
    from rankstream.operations.answers.models import tree_models  # noqa: PLC0415

    model, file = arguments.model, arguments.file
    found = read_model_file(file, arguments.format)
    fitted_on = arguments.fitted_on or tree_models.UNKNOWN
    snapshot = tree_models.imported_snapshot(model, settings, found, fitted_on)
    told = tree_models.told_of(file, found, snapshot)
    if arguments.out is not None:
        written = tree_models.write_version(arguments.out, snapshot)
        if arguments.json:
            write_json({"model": model, "snapshot": str(written), **told.to_dict()})
        else:
            sys.stdout.write(f"{written}: {_in_words(told)}\n")
        return 0
    return _serve(settings, arguments, snapshot, told)


def _serve(
    settings: Settings,
    arguments: argparse.Namespace,
    snapshot: Snapshot,
    told: "ImportedTrees",
) -> int:
    from rankstream.operations.answers.models import (  # noqa: PLC0415
        deployment,
        tree_models,
    )
    from streams.kafka.deployment.operator_change import Wanted  # noqa: PLC0415

    model = arguments.model
    with opened_store(settings) as store:
        seen = arguments.expect or store.standing([model]).get(model)
        wanted = Wanted(model, seen, deployment.operator(), arguments.why)
        wait_for_kafka(settings.kafka, Waiting())
        changed = tree_models.import_version(settings, store, wanted, snapshot, told)
    until = f"{held_until(settings, model)}: {_in_words(told)}"
    return shown(changed, until, arguments)


def _in_words(told: "ImportedTrees") -> str:
    return (
        f"{counted(told.trees, 'tree')} of {counted(told.leaves, 'leaf', 'leaves')} "
        f"by {counted(told.features_used, 'feature')}, from {plain(told.file)} "
        f"({told.format})"
    )


def run_export(settings: Settings, arguments: argparse.Namespace) -> int:
    """Write the file.

    Raises
    ------
    ValueError, RuntimeError
        Where the version is gone, or the system cannot express it.
    """
    # Nobody else loads what writes files.
    from rankstream.operations.exported_models.targets import (  # noqa: PLC0415
        TARGETS,
        exported_file,
    )

    model, target = arguments.model, arguments.form
    if arguments.out is None and not TARGETS[target].is_text:
        raise ValueError(f"--out must name a file for {target}, which is no text")
    if arguments.snapshot is not None:
        snapshot = snapshot_in(arguments.snapshot, model)
        if arguments.version not in (None, pointer_of(snapshot)):
            raise ValueError(
                f"version {arguments.version} of {model!r} must be in "
                f"{arguments.snapshot}; it has {pointer_of(snapshot)}: name that, or "
                "another folder"
            )
    else:
        with opened_store(settings) as store:
            check_known(settings, store, model)
            found = snapshot_at(store, model, arguments.version)
        if found is None:
            return nothing(f"a model must have a snapshot; {model!r} has none")
        snapshot = found
    content = exported_file(snapshot, target)
    if arguments.out is None:
        sys.stdout.write(content.decode())
        return 0
    with writing(arguments.out):
        arguments.out.write_bytes(content)
    return 0


def _groups_named(text: str) -> "FittedOn":
    """`none`, or numbers of groups with commas between."""
    from rankstream.operations.answers.models.tree_models import FittedOn  # noqa: PLC0415

    if text == NOBODY:
        return FittedOn(is_known=True)
    try:
        groups = tuple(sorted({int(each) for each in text.split(",")}))
    except ValueError:
        groups = ()
    if not groups or groups[0] < 0:
        raise argparse.ArgumentTypeError(
            f"must be groups, as 0,1,2, or none; got {text!r}"
        )
    return FittedOn(is_known=True, groups=groups)
