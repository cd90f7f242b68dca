"""Trees of other libraries as versions of a model."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.folders import snapshot_file, writing
from rankstream.operations.answers.models.deployment import Changed, made
from rankstream.operations.tree_files.formats import ReadFile
from rankstream.operations.tree_files.tree_file import TreeFile, trees_of
from rankstream.settings import ModelSettings, Settings
from rankstream.snapshots import Pointer, Snapshot, SnapshotStore, encode_snapshot
from rankstream.wire.envelope import TREES, features_hash, intervention_of
from rankstream.wire.models.changes import IMPORTED
from rankstream.wire.models.forests import Forest, pack_forest, packed_bytes
from rankstream.wire.nearest_name import suggestion
from streams.kafka.deployment.operator_change import Chosen, Wanted
from streams.training.model_records import ModelRecords


class ImportRefused(RuntimeError):
    """A file of trees cannot be a version of the model.

    Operator action: what the message says; `docs/trees.md` has how to bring a model.
    """


@dataclass(frozen=True)
class ImportedTrees(Answer):
    """What was read of a file.

    Parameters
    ----------
    format
        As what it was read.
    trees, leaves
        How many there are.
    features_used
        Features that some split looks at.
    bytes
        Of the snapshot.
    sha256
        Of the file.
    """

    file: str
    format: str
    trees: int
    leaves: int
    features_used: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class FittedOn:
    """Whose clicks an imported model was trained on.

    Parameters
    ----------
    is_known
        False: it may have been anybody's of this log.
    groups
        Of the statistics; none where it saw no click of this log.
    """

    is_known: bool = False
    groups: tuple[int, ...] = ()


UNKNOWN = FittedOn()


def imported_snapshot(
    name: str, settings: Settings, found: ReadFile, fitted_on: FittedOn = UNKNOWN
) -> Snapshot:
    """The trees of a file as a version of a model, before it has a place.

    The same file and settings give the same bytes.

    Raises
    ------
    ImportRefused
        Where the model is not one of trees, features are others than its own, or the
        snapshot would be larger than it may be.
    """
    model = settings.models.get(name)
    if model is None or not model.grows_trees:
        raise ImportRefused(
            f"a model must have kind = {TREES!r} to have trees imported; {name!r} has "
            f"{'no section' if model is None else repr(model.kind)}: set "
            f"models.{name}.kind, or name another"
        )
    n_groups = settings.statistics.groups
    if max(fitted_on.groups, default=0) >= n_groups:
        raise ImportRefused(
            f"groups of --fitted-on must be those of the statistics, from 0 to "
            f"{n_groups - 1}; got {max(fitted_on.groups)}: correct it"
        )
    forest = _of_model(name, model, found)
    snapshot = Snapshot(
        model=name,
        epoch=0,
        version=0,
        parent=0,
        created_ms=0,
        kind=TREES,
        hidden=[],
        normalisation="none",
        n_features=model.features,
        features_hash=features_hash(model.feature_names or model.features),
        sources=[],
        # What no click has moved may be valued on all of them.
        updates=int(not fitted_on.is_known or bool(fitted_on.groups)),
        weights=pack_forest(forest),
        feature_names=model.feature_names,
        groups=sorted(fitted_on.groups),
        log_candidates=model.logs_candidates,
    )
    _check_size(name, model, snapshot, forest)
    return snapshot


def _of_model(name: str, model: ModelSettings, found: ReadFile) -> Forest:
    """The forest, whose features are counted as the model counts them."""
    trees, own = found.trees, model.feature_names
    if trees.names and own:
        return _by_name(name, own, trees)
    if trees.names:
        raise ImportRefused(
            f"models.{name}.feature_names must be set, as the file names its features; "
            f"they are {trees.names!r:.300}: write them in the order in which services "
            "give them"
        )
    fits = trees.n_features == model.features
    if not fits and (trees.counts_all or trees.n_features > model.features):
        raise ImportRefused(
            f"a model file must have as many features as models.{name}, "
            f"{model.features}; it has {trees.n_features} and no names: correct "
            f"models.{name}.features, or train it on the same"
        )
    return trees.forest


def _by_name(name: str, own: Sequence[str], trees: TreeFile) -> Forest:
    if len({*trees.names}) < len(trees.names):
        again = next(each for each in trees.names if trees.names.count(each) > 1)
        raise ImportRefused(
            f"features of a model file must have different names; got {again!r} again: "
            "rename one, and save it anew"
        )
    place = {each: at for at, each in enumerate(own)}
    for feature in np.unique(trees.forest.features).tolist():
        used = trees.names[feature]
        if used not in place:
            raise ImportRefused(
                f"features that splits look at must be among models.{name}."
                f"feature_names; {used!r} is not{suggestion(used, own)}: add it, or "
                "name it in the file as it is there"
            )
    moved = np.array([place.get(each, -1) for each in trees.names], np.int32)
    features = moved[trees.forest.features].astype(np.int32)
    return trees.forest._replace(features=features)


def _check_size(
    name: str, model: ModelSettings, snapshot: Snapshot, forest: Forest
) -> None:
    n_bytes, most = len(encode_snapshot(snapshot)), model.snapshot_bytes
    if n_bytes <= most:
        return
    left, n_fit, sizes = most - (n_bytes - len(snapshot.weights)), 0, (0, 0, 0)
    for nodes, leaves in trees_of(forest):
        sizes = sizes[0] + 1, sizes[1] + len(nodes), sizes[2] + len(leaves)
        if packed_bytes(*sizes) > left:
            break
        n_fit += 1
    raise ImportRefused(
        f"a snapshot of trees must have at most models.{name}.snapshot_bytes; this one "
        f"has {n_bytes:,} and may have {most:,}: train fewer trees, as the first "
        f"{n_fit:,} of {len(forest.roots):,} would fit, or raise the setting"
    )


def told_of(file: Path, found: ReadFile, snapshot: Snapshot) -> ImportedTrees:
    """What was read, in figures."""
    forest = found.trees.forest
    return ImportedTrees(
        file.name,
        found.form,
        len(forest.roots),
        len(forest.leaves),
        len(np.unique(forest.features)),
        len(encode_snapshot(snapshot)),
        hashlib.sha256(found.content).hexdigest(),
    )


def import_version(
    settings: Settings,
    store: SnapshotStore,
    wanted: Wanted,
    snapshot: Snapshot,
    told: ImportedTrees,
) -> Changed:
    """Serve an imported version under the name of a model.

    Raises
    ------
    ImportRefused
        Where the features of what is served are others.
    ChangeRefused, WriterFenced, DeploymentRefused, KafkaError
    """
    evidence = {
        "from": told.file, "format": told.format, "trees": told.trees,
        "sha256": told.sha256,
    }  # fmt: skip
    choose = partial(_chosen, wanted.model, snapshot, evidence)
    return made(settings, store, wanted, choose)


def _chosen(
    model: str, snapshot: Snapshot, evidence: dict[str, Any], records: ModelRecords
) -> Chosen:
    before = records.newest.get(model)
    if before is None:
        return Chosen(snapshot, IMPORTED, evidence)
    expected = before.n_features, before.features_hash
    if (snapshot.n_features, snapshot.features_hash) != expected:
        raise ImportRefused(
            f"trees must rank by the features of what is served; models.{model} has "
            f"{snapshot.n_features} and what is served {before.n_features}, or others "
            "of that number: import them under another name"
        )
    following = msgspec.structs.replace(
        snapshot, parent=before.version, parent_epoch=before.epoch
    )
    return Chosen(following, IMPORTED, evidence)


def write_version(folder: Path, snapshot: Snapshot) -> Path:
    """Write it into a folder, as version 1.0, which `rank` and rankers read.

    Raises
    ------
    RuntimeError
        Where the folder is not writable.
    """
    place = Pointer(1, 0)
    intervention = intervention_of(snapshot.model, place)
    placed = msgspec.structs.replace(snapshot, epoch=1, intervention=intervention)
    file = snapshot_file(folder, intervention)
    with writing(file):
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode_snapshot(placed))
    return file
