"""LETOR and SVMlight files: `label qid:1 1:0.5 2:3 # comment`, a document a line.

Feature ids count from one or from zero; which, `first_feature` says. Without `qid` a
file of group sizes beside it (`NAME.query`) tells where queries end.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from producers.formats.opened import UNPACKING_ERRORS, FileUnreadable, opened

MAX_FEATURES = 100_000
"""A feature id beyond this is taken for a mistake."""


@dataclass(frozen=True)
class LetorData:
    """Queries with labelled documents, end to end.

    Parameters
    ----------
    query_ids : [n_queries]
    labels : [n_rows]
    features : [n_rows, n_features]
    offsets : [n_queries + 1]
        Rows of query i are `offsets[i] : offsets[i + 1]`.
    first_feature
        0 or 1: the id that the first column had in the file.
    """

    query_ids: list[str]
    labels: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    first_feature: int = 1


@dataclass(frozen=True)
class Fold:
    """Parts of one fold of a cross-validation."""

    train: LetorData
    validation: LetorData
    test: LetorData


Row = tuple[int, str, list[tuple[int, float]]]


def read_letor(paths: Path | Sequence[Path], *, n_features: int = 0) -> LetorData:
    """The queries of one or more files, in their order.

    Parameters
    ----------
    n_features
        At least so many columns, where a part lacks the last features.

    Raises
    ------
    FileUnreadable
        With file, line and reason: a line that does not parse, a number that is not
        finite, a negative label, a file without documents.
    """
    files = [paths] if isinstance(paths, Path) else list(paths)
    rows: list[Row] = []
    for path in files:
        before = len(rows)
        rows += _with_groups(path, list(_rows_of(path)))
        if len(rows) == before:
            raise FileUnreadable(path, 0, "a file must hold documents; got none")
    first = min((fid for _, _, pairs in rows for fid, _ in pairs), default=1)
    first_feature = 0 if first == 0 else 1
    last = max((fid for _, _, pairs in rows for fid, _ in pairs), default=0)
    width = max(n_features, last - first_feature + 1)
    features = np.zeros((len(rows), width), np.float32)
    for row, (_, _, pairs) in enumerate(rows):
        for feature, value in pairs:
            features[row, feature - first_feature] = value
    query_ids, offsets = _bounds([query for _, query, _ in rows])
    labels = np.array([label for label, _, _ in rows], np.int64)
    return LetorData(query_ids, labels, features, offsets, first_feature)


def read_fold(folder: Path, number: int) -> Fold:
    """Fold `number` (from 1) of a folder.

    Either `Fold1/train.txt`, `vali.txt`, `test.txt`, or parts with a `folds.json` that
    says which of them train, validate and test.

    Raises
    ------
    FileUnreadable
        Where neither is there.
    """
    plan = folder / "folds.json"
    if plan.exists():
        parts = _planned(plan, number)
    else:
        inside = folder / f"Fold{number}"
        parts = {name: [_found(inside, name)] for name in ("train", "vali", "test")}
    read = {name: read_letor(paths) for name, paths in parts.items()}
    width = max(data.features.shape[1] for data in read.values())
    whole = {name: _widened(data, width) for name, data in read.items()}
    return Fold(whole["train"], whole["vali"], whole["test"])


def _planned(plan: Path, number: int) -> dict[str, list[Path]]:
    try:
        folds = json.loads(plan.read_text(encoding="utf-8"))
        fold = (
            folds[f"Fold{number}"] if f"Fold{number}" in folds else folds[str(number)]
        )
        return {
            "train": [_found(plan.parent, name) for name in _listed(fold["train"])],
            "vali": [
                _found(plan.parent, name)
                for name in _listed(fold.get("vali") or fold["validation"])
            ],
            "test": [_found(plan.parent, name) for name in _listed(fold["test"])],
        }
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileUnreadable):
            raise
        raise FileUnreadable(
            plan, 0, f"folds.json must name the parts of fold {number}; {error!r}"
        ) from error


def _listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def _found(folder: Path, name: str) -> Path:
    for ending in ("", ".txt", ".txt.gz", ".txt.zst", ".gz"):
        path = folder / (name + ending)
        if path.exists():
            return path
    raise FileUnreadable(folder / name, 0, "a part of the fold must be there")


def _widened(data: LetorData, width: int) -> LetorData:
    missing = width - data.features.shape[1]
    if not missing:
        return data
    features = np.pad(data.features, ((0, 0), (0, missing)))
    return LetorData(
        data.query_ids, data.labels, features, data.offsets, data.first_feature
    )


def _rows_of(path: Path) -> Iterable[Row]:
    number = 0
    try:
        with opened(path) as lines:
            for number, line in enumerate(lines, start=1):
                text = line.split(b"#", 1)[0].split()
                if text:
                    yield _row(path, number, text)
    except UNPACKING_ERRORS as error:
        raise FileUnreadable(
            path, number + 1, f"a file must be whole; {error}"
        ) from error


def _row(path: Path, number: int, words: list[bytes]) -> Row:
    try:
        label = float(words[0])
        if label != int(label) or label < 0:
            raise ValueError(f"a label is a whole number from 0; got {words[0]!r}")
        query, pairs = "", []
        for word in words[1:]:
            name, _, value = word.partition(b":")
            if name == b"qid":
                query = value.decode()
                continue
            feature, amount = int(name), float(value)
            if not 0 <= feature <= MAX_FEATURES:
                raise ValueError(f"a feature id must lie in 0..{MAX_FEATURES}")
            if not math.isfinite(amount):
                raise ValueError(f"feature {feature} must be finite; got {amount}")
            pairs.append((feature, amount))
    except (ValueError, OverflowError) as error:
        raise FileUnreadable(
            path, number, f"a line must be 'label qid:1 1:0.5 ...'; {error}"
        ) from error
    return int(label), query, pairs


def _with_groups(path: Path, rows: list[Row]) -> list[Row]:
    if not rows or rows[0][1]:
        return rows
    stem = path.name.removesuffix(".gz").removesuffix(".zst")
    groups = path.with_name(stem + ".query")
    if not groups.exists():
        raise FileUnreadable(path, 1, f"a line must name its qid, or {groups} sizes")
    sizes = [int(word) for word in groups.read_text().split()]
    if sum(sizes) != len(rows):
        raise FileUnreadable(
            groups, 0, f"group sizes must add up to {len(rows)}; got {sum(sizes)}"
        )
    queries = np.repeat(np.arange(len(sizes)), sizes).tolist()
    return [
        (label, str(query), pairs)
        for (label, _, pairs), query in zip(rows, queries, strict=True)
    ]


def _bounds(queries: list[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    names: list[str] = []
    offsets: list[int] = []
    for row, query in enumerate(queries):
        if not names or query != names[-1]:
            names.append(query)
            offsets.append(row)
    return names, np.array([*offsets, len(queries)], np.int64)
