"""Corrected relevance as grades, in files of search engines and of learners.

A grade is how many of the cut-offs an item's relevance reaches. Beside each file lies
one with the relevance itself and its interval: these formats have no room for it.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from models.arrays import Singles
from models.estimators.bias_curve import BiasCurve
from producers.formats.source_file import created
from rankstream.operations.answers.exports.csv_lines import csv_lines
from rankstream.operations.answers.folders import writing
from rankstream.operations.answers.relevance import ItemRelevance, RelevanceByQuery
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.exported_models.exported import ExportRefused
from rankstream.wire.routing import SEGMENT_MARK
from streams.training.inputs import feature_records_for

BESIDE = ".csv"

COLUMNS = (
    "topic", "query", "item", "grade", "relevance", "low", "high", "exposure",
    "impressions", "clicked", "segment",
)  # fmt: skip


class Asked(NamedTuple):
    """What is asked for.

    Parameters
    ----------
    form
        One of `FORMS`.
    cutoffs
        Ascending; relevance below the first is grade 0.
    of_index
        Of Elasticsearch, where the items lie.
    model
        Whose list of features learners are given.
    estimator
        The name of one; else the log says.
    """

    form: str
    cutoffs: Sequence[float]
    of_index: str = ""
    model: str = ""
    estimator: str | None = None


class Judged(NamedTuple):
    """Graded items of a query, the most relevant first; `topic` counts queries from 1.

    Parameters
    ----------
    counted_as
        The query, and behind a mark the segment, if any.
    features : [n_items, n_features]
        None where no learner is to read them.
    """

    topic: int
    counted_as: str
    grades: list[int]
    items: list[ItemRelevance]
    features: Sequence[Singles] | None = None

    @property
    def query(self) -> str:
        """As users ask it, whatever the segment."""
        return self.counted_as.partition(SEGMENT_MARK)[0]

    @property
    def segment(self) -> str:
        """That of `ingestion.segment`; empty where none is set."""
        return self.counted_as.partition(SEGMENT_MARK)[2]


class Form(NamedTuple):
    """A format: what it begins and ends with, and what a query is in it.

    Parameters
    ----------
    beside
        Endings of more files, and what a query is in each.
    """

    head: Callable[[Asked], str]
    of_query: Callable[[Judged, Asked], str]
    between: str = ""
    tail: str = ""
    beside: Mapping[str, Callable[[Judged], str]] = {}
    has_features: bool = False


class WrittenJudgments(NamedTuple):
    """Files with their rows, and items that were left out: too little is known."""

    files: dict[str, int]
    n_queries: int
    n_left_out: int


def write_judgments(
    source: CountedLog, file: Path, curve: BiasCurve, asked: Asked
) -> WrittenJudgments:
    """Write the file and those beside it; they appear when they are whole.

    Raises
    ------
    ExportRefused
        Where a name would be cut, a model or index is missing, or nothing is known.
    RuntimeError
        Where a file cannot be written.
    """
    form = FORMS[asked.form]
    counts, n_queries, n_left_out = {"": 0, BESIDE: 0}, 0, 0
    paths = {end: file.with_name(file.name + end) for end in ("", BESIDE, *form.beside)}
    with ExitStack() as stack:
        files = {}
        for end, path in paths.items():
            stack.enter_context(writing(path))
            files[end] = stack.enter_context(created(path))
        files[BESIDE].write(csv_lines([COLUMNS]).encode())
        files[""].write(form.head(asked).encode())
        for judged, n_without in _judged(source, curve, asked):
            n_left_out += n_without
            if not judged.items:
                continue
            between = form.between if n_queries else ""
            files[""].write((between + form.of_query(judged, asked)).encode())
            files[BESIDE].write(csv_lines(_rows(judged)).encode())
            for end, of_query in form.beside.items():
                files[end].write(of_query(judged).encode())
            n_queries += 1
            for end in counts:
                counts[end] += len(judged.items)
        if not n_queries:
            raise ExportRefused(
                "of some item enough must be known to be graded; of all "
                f"{n_left_out:,} too little is, or they have no features: wait for "
                "more lists"
            )
        files[""].write(form.tail.encode())
    told = {str(paths[end]): n_rows for end, n_rows in counts.items()}
    return WrittenJudgments(told, n_queries, n_left_out)


def _judged(
    source: CountedLog, curve: BiasCurve, asked: Asked
) -> Iterator[tuple[Judged, int]]:
    """Queries, and how many items of each are left out."""
    statistics = source.statistics
    n_groups = statistics.counted[0].groups
    by_query = RelevanceByQuery(curve, n_groups, source.policies, asked.estimator)
    features_of = _features(source, asked)

    def found() -> Iterator[tuple[str, list[ItemRelevance]]]:
        for chunk in statistics.columns():
            for query, relevance in by_query.take(chunk):
                yield query, relevance.items
        for query, relevance in by_query.finish():
            yield query, relevance.items

    topic = 0
    for query, items in found():
        rows = features_of(query)
        known = [
            item
            for item in items
            if not item.is_under_exposed
            and item.relevance == item.relevance
            and (rows is None or item.item in rows)
        ]
        topic += bool(known)
        grades = [bisect_right(asked.cutoffs, item.relevance) for item in known]
        told = None if rows is None else [rows[item.item] for item in known]
        yield Judged(topic, query, grades, known, told), len(items) - len(known)


def _features(
    source: CountedLog, asked: Asked
) -> Callable[[str], dict[str, Any] | None]:
    """Features of a query's items, by item; None of all where no learner is asked."""
    if not FORMS[asked.form].has_features:
        return lambda _: None
    model = source.settings.models.get(asked.model)
    if model is None:
        known = ", ".join(source.settings.models) or "none"
        raise ExportRefused(
            f"files for {asked.form} need features: those of a model of the settings, "
            f"of which there are {known}; got {asked.model!r}: name one with --model"
        )
    records = feature_records_for(source.settings, asked.model, source.candidates())

    def of(query: str) -> dict[str, Any]:
        scopes = source.statistics.scopes(query)
        names = [scope.candidate_set for scope in scopes if not scope.is_growing]
        found = records.of(query, names)
        if found is None:
            return {}
        return dict(zip(found.items, found.features, strict=True))

    return of


def _rows(judged: Judged) -> Iterator[tuple[object, ...]]:
    for grade, one in zip(judged.grades, judged.items, strict=True):
        interval = one.relevance, one.low, one.high, one.exposure
        told = ("" if x != x else f"{x:.6g}" for x in interval)  # noqa: PLR0124  NaN
        place = judged.topic, judged.query, one.item, grade
        yield (*place, *told, one.impressions, one.clicked, judged.segment)


def _json(told: object) -> str:
    return json.dumps(told, ensure_ascii=False)


def _opensearch_head(asked: Asked) -> str:
    told = {
        "name": "rankstream",
        "description": "clicks corrected for position; grades of relevance from "
        + ", ".join(f"{cutoff:g}" for cutoff in asked.cutoffs),
        "type": "IMPORT_JUDGMENT",
    }
    return _json(told)[:-1] + ', "judgmentRatings": [\n'


def _opensearch(judged: Judged, _: Asked) -> str:
    ratings = [
        {"docId": one.item, "rating": f"{grade}.0"}
        for grade, one in zip(judged.grades, judged.items, strict=True)
    ]
    return _json({"query": judged.query, **_segment(judged), "ratings": ratings})


def _elasticsearch_head(asked: Asked) -> str:
    if not asked.of_index:
        raise ExportRefused(
            "ratings of Elasticsearch name the index of each document; got none: name "
            "it with --index"
        )
    search = {"query": {"simple_query_string": {"query": "{{query}}"}}}
    told = {
        "metric": {"dcg": {"k": 10, "normalize": True}},
        "templates": [{"id": "search", "template": {"source": search}}],
    }
    return _json(told)[:-1] + ', "requests": [\n'


def _elasticsearch(judged: Judged, asked: Asked) -> str:
    ratings = [
        {"_index": asked.of_index, "_id": one.item, "rating": grade}
        for grade, one in zip(judged.grades, judged.items, strict=True)
    ]
    segment = _segment(judged)
    # The same query may be there in other segments, and ids are told apart.
    own = " ".join([f"{judged.topic}:", judged.query, *segment.values()])
    request = {"id": own if segment else judged.query, "template_id": "search"}
    params = {"query": judged.query, **segment}
    return _json(request | {"params": params, "ratings": ratings})


def _segment(judged: Judged) -> dict[str, str]:
    return {"segment": judged.segment} if judged.segment else {}


def _trec(judged: Judged, _: Asked) -> str:
    for one in judged.items:
        if one.item.split() != [one.item]:
            raise ExportRefused(
                "ids of items must be without spaces for qrels, which part columns by "
                f"them; got {one.item!r}: log other ids, or take another format"
            )
    rows = zip(judged.grades, judged.items, strict=True)
    return "".join(f"{judged.topic} 0 {one.item} {grade}\n" for grade, one in rows)


def _svm(judged: Judged, query: str = "") -> str:
    lines = []
    features = [] if judged.features is None else judged.features
    for grade, row in zip(judged.grades, features, strict=True):
        told = (f"{number}:{value!s}" for number, value in enumerate(row))
        lines.append(" ".join([f"{grade}{query}", *told]) + "\n")
    return "".join(lines)


def _looks(judged: Judged) -> str:
    return "".join(f"{one.exposure:.6g}\n" for one in judged.items)


def _mean_looks(judged: Judged) -> str:
    looks = [one.exposure for one in judged.items]
    return f"{sum(looks) / len(looks):.6g}\n"


FORMS = {
    "opensearch": Form(_opensearch_head, _opensearch, ",\n", "\n]}\n"),
    "elasticsearch": Form(_elasticsearch_head, _elasticsearch, ",\n", "\n]}\n"),
    "trec": Form(lambda _: "", _trec),
    "lightgbm": Form(
        lambda _: "", lambda judged, _: _svm(judged), has_features=True,
        beside={".query": lambda judged: f"{len(judged.items)}\n", ".weight": _looks},
    ),
    "xgboost": Form(
        lambda _: "", lambda judged, _: _svm(judged, f" qid:{judged.topic}"),
        has_features=True, beside={".weight": _mean_looks},
    ),
}  # fmt: skip
