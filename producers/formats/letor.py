"""LETOR and SVMlight files: `label qid:1 1:0.5 2:3 # comment`, a document a line.

Feature ids count from one or from zero: from zero where some id is 0; which,
`first_feature` says. Without `qid` a file of group sizes beside it (`NAME.query`)
tells where queries end. A comment `docid = X` names the document.
"""

import dataclasses
import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from producers.formats.source_file import FileUnreadable, lines_of

MAX_FEATURES = 100_000
"""A feature id beyond this is taken for a mistake."""

LARGEST = float(np.finfo(np.float32).max)

ENDINGS = ("", ".txt", ".txt.gz", ".txt.zst", ".gz", ".zst")
"""What may follow the name of a split in the name of its file."""

_docid = re.compile(rb"docid\s*[=:]\s*(\S+)")


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
    document_ids
        [n_rows] where every line names its document, else empty.
    """

    query_ids: list[str]
    labels: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    first_feature: int = 1
    document_ids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Fold:
    """Splits of one fold of a cross-validation, with the same columns."""

    train: LetorData
    validation: LetorData
    test: LetorData


@dataclass
class _Columns:
    """What was read so far: a flat list of (feature, value) and its bounds."""

    labels: "array[int]" = field(default_factory=lambda: array("q"))
    queries: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    counts: "array[int]" = field(default_factory=lambda: array("q"))
    features: "array[int]" = field(default_factory=lambda: array("i"))
    values: "array[float]" = field(default_factory=lambda: array("d"))


def read_letor(
    paths: Path | Sequence[Path],
    *,
    n_features: int = 0,
    first_feature: int | None = None,
) -> LetorData:
    """The queries of one or more files, in their order.

    Parameters
    ----------
    n_features
        At least so many columns, where a split lacks the last features.
    first_feature
        0 or 1 where it is known; else 0 if the files have a feature 0.

    Raises
    ------
    FileUnreadable
        With file, line and reason: a line that does not parse, a number that is not
        finite, a negative label, a query in two places, a file without documents.
    """
    columns = _Columns()
    for path in [paths] if isinstance(paths, Path) else paths:
        _read(path, columns)
    ids = np.frombuffer(columns.features, np.int32)
    if first_feature is None:
        first_feature = 0 if ids.size and ids.min() == 0 else 1
    last = int(ids.max()) if ids.size else first_feature - 1
    width = max(n_features, last - first_feature + 1)
    features = np.zeros((len(columns.labels), width), np.float32)
    rows = np.repeat(np.arange(len(columns.labels)), np.array(columns.counts))
    features[rows, ids - first_feature] = np.frombuffer(columns.values, np.float64)
    query_ids, offsets = _bounds(columns.queries)
    whole = len(columns.documents) == len(columns.labels)
    return LetorData(
        query_ids,
        np.array(columns.labels, np.int64),
        features,
        offsets,
        first_feature,
        columns.documents if whole else [],
    )


def read_fold(folder: Path, number: int) -> Fold:
    """Fold `number` (from 1) of a folder.

    Either `Fold1/train.txt`, `vali.txt`, `test.txt`, or files with a `folds.json` that
    says which of them train, validate and test.

    Raises
    ------
    FileUnreadable
        Where neither is there, or a split does not parse.
    """
    splits = splits_of_fold(folder, number)
    read = [read_letor(paths) for paths in splits]
    if len({split.first_feature for split in read}) > 1:
        read = [read_letor(paths, first_feature=0) for paths in splits]
    width = max(split.features.shape[1] for split in read)
    return Fold(*(_widened(split, width) for split in read))


def splits_of_fold(folder: Path, number: int) -> list[list[Path]]:
    """Files that train, that validate and that test.

    Raises
    ------
    FileUnreadable
        Where one of them is not there.
    """
    plan = folder / "folds.json"
    if plan.exists():
        return _planned(plan, number)
    inside = folder / f"Fold{number}"
    return [[_found(inside, name)] for name in ("train", "vali", "test")]


def groups_of(path: Path) -> Path:
    """Where the group sizes of a file without `qid` are."""
    stem = path.name.removesuffix(".gz").removesuffix(".zst")
    return path.with_name(stem + ".query")


def _read(path: Path, columns: _Columns) -> None:
    before = len(columns.labels)
    finished = set(columns.queries)
    for number, line in lines_of(path):
        text, _, comment = line.partition(b"#")
        words = text.split(None, 2)
        if not words:
            continue
        try:
            _add(words, columns, finished)
        except (ValueError, OverflowError) as error:
            raise FileUnreadable(
                path, number, f"a line must be 'label qid:1 1:0.5 ...'; {error}"
            ) from error
        if found := _docid.search(comment):
            columns.documents.append(found[1].decode("utf-8", "replace"))
    if len(columns.labels) == before:
        raise FileUnreadable(
            path, 0, "a file must hold documents; got 0 documents: correct the path"
        )
    if not columns.queries[before]:
        columns.queries[before:] = _grouped(path, len(columns.labels) - before)


def _add(words: list[bytes], columns: _Columns, finished: set[str]) -> None:
    """Add a line; `finished` are the queries that had documents before the last."""
    last = columns.queries[-1] if columns.queries else ""
    query = _take(words, columns)
    if query != last:
        if query in finished:
            raise ValueError(f"documents of query {query} must stand together")
        if last:
            finished.add(last)
    columns.queries.append(query)


def _take(words: list[bytes], columns: _Columns) -> str:
    """Add a line's label and features; returns its query, or nothing."""
    label = float(words[0])
    if label != int(label) or label < 0:
        raise ValueError(f"a label is a whole number from 0; got {words[0].decode()}")
    query, rest = "", b" ".join(words[1:])
    if rest.startswith(b"qid:"):
        query = words[1][4:].decode()
        rest = words[2] if len(words) > 2 else b""
        if not query:
            raise ValueError("qid must not be empty")
    elif columns.queries and columns.queries[-1]:
        raise ValueError("qid is missing")
    numbers = list(map(float, rest.replace(b":", b" ").split()))
    names, values = numbers[::2], numbers[1::2]
    if len(names) != len(values) or rest.count(b":") != len(values):
        raise ValueError("features must be pairs id:value")
    ids = list(map(int, names))
    _check(ids, names, values)
    columns.labels.append(int(label))
    columns.counts.append(len(ids))
    columns.features.extend(ids)
    columns.values.extend(values)
    return query


def _check(ids: list[int], names: list[float], values: list[float]) -> None:
    if ids != names or (ids and not 0 <= min(ids) <= max(ids) <= MAX_FEATURES):
        raise ValueError(f"feature ids must be whole and lie in 0..{MAX_FEATURES}")
    if len(set(ids)) != len(ids):
        raise ValueError("feature ids must differ from each other")
    # The sum is in range only if all of them are: one look instead of many.
    if not sum(map(abs, values)) <= LARGEST:
        for feature, value in zip(ids, values, strict=True):
            if not abs(value) <= LARGEST:
                raise ValueError(f"feature {feature} must be finite; got {value}")


def _grouped(path: Path, n_rows: int) -> list[str]:
    """A query for each row, from the sizes in `NAME.query`."""
    groups = groups_of(path)
    if not groups.exists():
        raise FileUnreadable(path, 1, f"a line must name its qid, or {groups} sizes")
    queries: list[str] = []
    for number, line in lines_of(groups):
        if not line.isdigit() or not int(line):
            raise FileUnreadable(
                groups, number, "a group must have documents; "
                f"got {line.decode('utf-8', 'replace')!r}"
            )  # fmt: skip
        queries += [str(number - 1)] * min(int(line), n_rows + 1)
    if len(queries) != n_rows:
        raise FileUnreadable(
            groups, 0, f"group sizes must add up to {n_rows}; got {len(queries)}"
        )
    return queries


def _bounds(queries: list[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    starts = [
        row
        for row in range(len(queries))
        if not row or queries[row] != queries[row - 1]
    ]
    names = [queries[row] for row in starts]
    return names, np.array([*starts, len(queries)], np.int64)


def _planned(plan: Path, number: int) -> list[list[Path]]:
    try:
        folds: Any = json.loads(plan.read_text(encoding="utf-8"))
        fold = folds.get(f"Fold{number}") or folds.get(str(number))
        if fold is None:
            raise FileUnreadable(
                plan, 0, f"a fold must be one of {', '.join(folds)}; got {number}"
            )
        named = [fold["train"], fold.get("vali") or fold["validation"], fold["test"]]
    except FileUnreadable:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        raise FileUnreadable(
            plan, 0, f"folds.json must name the splits of fold {number}; {error!r}"
        ) from error
    return [
        [
            _found(plan.parent, str(name))
            for name in (names if isinstance(names, list) else [names])
        ]
        for names in named
    ]


def _found(folder: Path, name: str) -> Path:
    for ending in ENDINGS:
        path = folder / (name + ending)
        if path.exists():
            return path
    raise FileUnreadable(folder / name, 0, "a file of the fold must be there")


def _widened(data: LetorData, width: int) -> LetorData:
    missing = width - data.features.shape[1]
    if not missing:
        return data
    features = np.pad(data.features, ((0, 0), (0, missing)))
    return dataclasses.replace(data, features=features)


def generated_queries(
    *,
    n_queries: int,
    n_documents: int,
    n_features: int,
    rng: np.random.Generator,
    n_grades: int = 5,
) -> LetorData:
    """Queries whose grades follow a hidden linear mixture of their features.

    Half of the features carry relevance, with weights of either sign; the grade of
    a document is the band of its noisy mixture among the documents of its query.

    Returns
    -------
    LetorData
        Labels in 0..n_grades - 1; few documents have the highest grade.
    """
    features = rng.random((n_queries, n_documents, n_features))
    weights = np.zeros(n_features)
    n_useful = max(1, n_features // 2)
    weights[:n_useful] = rng.normal(size=n_useful)
    mixture = features @ weights
    mixture += rng.normal(scale=0.25 * mixture.std(), size=mixture.shape)
    place = mixture.argsort(axis=1).argsort(axis=1) / n_documents
    bands = 1.0 - 0.5 ** np.arange(1, n_grades)
    labels = np.searchsorted(bands, place.ravel(), side="right")
    offsets = np.arange(n_queries + 1, dtype=np.int64) * n_documents
    return LetorData(
        query_ids=[f"query {number:04d}" for number in range(n_queries)],
        labels=labels.astype(np.int64),
        features=features.reshape(-1, n_features).astype(np.float32),
        offsets=offsets,
    )
