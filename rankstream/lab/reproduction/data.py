"""Folds of a LETOR folder, prepared once and shared by all processes.

Features are brought to 0..1 within each query; those that never vary over the whole
training split are left out. The arrays lie as files beside the results, so that
processes map them instead of each reading text.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from producers.formats.letor import LetorData, groups_of, read_fold, splits_of_fold
from rankstream.lab.closed_loops.world import World
from rankstream.ranking.scoring import normalised

SPLITS = ("train", "test")
VALIDATION = "vali"
"""The split that only tables of counterfactual learning take."""


def n_folds_of(folder: Path) -> int:
    """How many folds a folder has.

    Raises
    ------
    ValueError
        Where it has none.
    """
    plan = folder / "folds.json"
    if plan.exists():
        n_folds = len(json.loads(plan.read_text(encoding="utf-8")))
    else:
        n_folds = sum(1 for path in folder.glob("Fold*") if path.is_dir())
    if not n_folds:
        raise ValueError(
            f"a folder must hold a folds.json, or Fold1, Fold2 ...; got {folder}"
        )
    return n_folds


def folds_asked(folder: Path, folds: int | None, n_runs: int, n_processes: int) -> int:
    """How many folds of a folder are run: all, or as many as were asked for.

    Raises
    ------
    ValueError
        Where nothing could be run.
    """
    n_folds = n_folds_of(folder)
    n_folds = n_folds if folds is None else min(n_folds, folds)
    if min(n_folds, n_runs, n_processes) < 1:
        raise ValueError("--runs, --folds and --processes must be at least 1")
    return n_folds


def digest_of(folder: Path) -> str:
    """What tells the documents of a folder's folds from all others.

    Paths count for nothing, bytes and the splits that they make do.
    """
    splits = [
        split
        for number in range(1, n_folds_of(folder) + 1)
        for split in splits_of_fold(folder, number)
    ]
    known = {path: _bytes_of(path) for split in splits for path in split}
    folds = [[known[path] for path in split] for split in splits]
    return hashlib.sha256(json.dumps(folds).encode()).hexdigest()[:16]


def prepare(folder: Path, fold: int, place: Path, *, normalisation: str) -> None:
    """Read a fold and leave its arrays in a folder, unless they are there."""
    target = place / f"fold{fold}-{normalisation}"
    # Folders of before there was a third split are completed.
    if (target / "done").exists() and (target / f"{VALIDATION}-labels.npy").exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    read = read_fold(folder, fold)
    is_kept = _varying(read.train.features)
    splits = read.train, read.test, read.validation
    for name, split in zip((*SPLITS, VALIDATION), splits, strict=True):
        features = _scaled(split, normalisation)[:, is_kept]
        np.save(target / f"{name}-features.npy", features)
        np.save(target / f"{name}-labels.npy", split.labels)
        np.save(target / f"{name}-offsets.npy", split.offsets)
    (target / "done").touch()


class Prepared(NamedTuple):
    """Where the arrays of folds lie, and the highest label in them."""

    place: Path
    largest_label: int


def prepared(
    folder: Path, out: Path, n_folds: int, normalisation: str, splits: Sequence[str]
) -> Prepared:
    """Read the first folds, unless their arrays are there.

    Parameters
    ----------
    out
        Arrays lie below it, in a folder that only these documents have.
    splits
        Whose labels count.
    """
    place, largest = out / "data" / digest_of(folder), 0
    for fold in range(1, n_folds + 1):
        prepare(folder, fold, place, normalisation=normalisation)
        for split in splits:
            labels = world_of(place, fold, split, normalisation).labels
            largest = max(largest, int(labels.max()))
    return Prepared(place, largest)


@functools.cache
def world_of(place: Path, fold: int, split: str, normalisation: str) -> World:
    """A prepared split, mapped into memory."""
    target = place / f"fold{fold}-{normalisation}"
    names = [target / f"{split}-{name}.npy" for name in World._fields]
    # Copy-on-write gives arrays of the same type as ordinary ones, for kernels.
    return World(*(np.asarray(np.load(name, mmap_mode="c")) for name in names))


def _bytes_of(path: Path) -> list[str]:
    found = []
    for file in (path, groups_of(path)):
        if file.exists():
            with file.open("rb") as opened:
                found.append(hashlib.file_digest(opened, "sha256").hexdigest())
    return found


def _varying(features: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    is_kept: npt.NDArray[np.bool_] = features.min(axis=0) < features.max(axis=0)
    return is_kept


def _scaled(split: LetorData, how: str) -> npt.NDArray[np.float32]:
    scaled = np.empty_like(split.features)
    for begin, end in itertools.pairwise(split.offsets.tolist()):
        scaled[begin:end] = normalised(split.features[begin:end], how)
    return scaled
