"""Corrected relevance as grades: files read by the libraries that they are for."""

import csv
import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightgbm
import msgspec
import numpy as np
import pytest
import pytrec_eval
import xgboost
from sklearn.datasets import load_svmlight_file

from models.estimators.bias_curve import BiasCurve
from rankstream.operations.answers.exports import judgments
from rankstream.operations.answers.exports.judgments import (
    FORMS,
    Asked,
    Judged,
    write_judgments,
)
from rankstream.operations.answers.relevance import ItemRelevance, relevance_in
from rankstream.operations.answers.sources import CountedLog, LoggingPolicies
from rankstream.operations.exported_models.exported import ExportRefused
from rankstream.wire.segments import query_in_segment
from rankstream.wire.topics import CANDIDATES
from streams.statistics.reader import Statistics
from tests.java_programs import libraries_of, run_java
from tests.streams.training.shop import (
    EXAMINATION,
    N_FEATURES,
    Shop,
    model_of,
    queries_of,
    settings_of,
)

CURVE = BiasCurve(EXAMINATION, np.zeros(len(EXAMINATION)))
CUTOFFS = [0.1, 0.3, 0.6]
OPENSEARCH = Path(__file__).parents[4] / "search_engines"
INSTEAD = "or leave out the tests of judgments"


@pytest.fixture(scope="module")
def counted() -> CountedLog:
    """What a site counted of five queries, and the features that it logged."""
    plan = {"examination": EXAMINATION.tolist()}
    shop = Shop(settings_of({"m": model_of(**plan)}), data=queries_of(5))
    shop.show(700, np.random.default_rng(1))
    shop.pipeline.end()
    features = [
        (x.key, x.value) for x in shop.outputs if x.topic == CANDIDATES and x.key
    ]

    def no_snapshot(*_: Any) -> Any:
        raise AssertionError

    return CountedLog(
        shop.settings,
        Statistics(shop.trainer.statistics().items()),
        LoggingPolicies(),
        lambda: features,
        no_snapshot,
        None,
        1,
    )


def expected(counted: CountedLog) -> dict[str, dict[str, float]]:
    """Relevance of the items of each query of which enough is known."""
    found = {}
    for query in counted.statistics.queries():
        told = relevance_in(counted, counted.statistics.scopes(query), CURVE)
        known = [x for x in told.items if not x.is_under_exposed]
        found[query] = {x.item: x.relevance for x in known}
    return found


def grade(relevance: float) -> int:
    """By counting."""
    return sum(relevance >= cutoff for cutoff in CUTOFFS)


def write(counted: CountedLog, file: Path, form: str, **more: Any) -> Any:
    """A file of a format, and what is said of it."""
    return write_judgments(counted, file, CURVE, Asked(form, CUTOFFS, **more))


def beside(file: Path) -> list[dict[str, str]]:
    """Rows with the interval."""
    with file.with_name(file.name + ".csv").open(newline="") as rows:
        return [*csv.DictReader(rows)]


def test_a_judgment_list_has_a_grade_of_each_item(
    counted: CountedLog, tmp_path: Path
) -> None:
    """As the workbench imports it: ratings are text; the interval lies beside."""
    file = tmp_path / "judgments.json"
    told = write(counted, file, "opensearch")
    document = json.loads(file.read_text())
    assert document["type"] == "IMPORT_JUDGMENT"
    assert "0.1, 0.3, 0.6" in document["description"]
    found = {
        each["query"]: {x["docId"]: x["rating"] for x in each["ratings"]}
        for each in document["judgmentRatings"]
    }
    relevance = expected(counted)
    assert found == {
        query: {item: f"{grade(value)}.0" for item, value in items.items()}
        for query, items in relevance.items()
    }
    assert len({x for each in found.values() for x in each.values()}) > 2
    n_items = sum(map(len, relevance.values()))
    assert told.files == {str(file): n_items, f"{file}.csv": n_items}
    rows = beside(file)
    assert len(rows) == n_items
    for row in rows:
        value = relevance[row["query"]][row["item"]]
        assert float(row["relevance"]) == pytest.approx(value, rel=1e-5)
        assert float(row["low"]) <= value <= float(row["high"])


def test_ratings_of_elasticsearch_name_their_index(
    counted: CountedLog, tmp_path: Path
) -> None:
    """Whole numbers, and a search that each query fills in."""
    file = tmp_path / "ratings.json"
    write(counted, file, "elasticsearch", of_index="products")
    document = json.loads(file.read_text())
    relevance = expected(counted)
    assert [each["id"] for each in document["requests"]] == [*relevance]
    for each in document["requests"]:
        assert each["template_id"] == document["templates"][0]["id"]
        assert each["params"] == {"query": each["id"]}
        assert {x["_id"]: x["rating"] for x in each["ratings"]} == {
            item: grade(value) for item, value in relevance[each["id"]].items()
        }
        assert {x["_index"] for x in each["ratings"]} == {"products"}
    with pytest.raises(ExportRefused, match="name it with --index"):
        write(counted, file, "elasticsearch")


def test_opensearch_reads_ratings_by_its_own_class(
    counted: CountedLog, tmp_path: Path
) -> None:
    """What it holds then is what was written, and the search that is filled in."""
    file = tmp_path / "ratings.json"
    write(counted, file, "elasticsearch", of_index="products")
    libraries = libraries_of(OPENSEARCH / "opensearch.xml", "opensearch-libs", INSTEAD)
    program = OPENSEARCH / "RankEval.java"
    found = json.loads(run_java(program, [libraries], str(file), instead=INSTEAD))
    document = json.loads(file.read_text())
    assert found["requests"] == document["requests"]
    assert found["metric"]["dcg"].items() >= document["metric"]["dcg"].items()
    (asked,), (written,) = found["templates"], document["templates"]
    assert asked["id"] == written["id"]
    assert asked["template"]["source"] == written["template"]["source"]


def test_qrels_are_read_by_trec_eval(counted: CountedLog, tmp_path: Path) -> None:
    """Topics are numbers, whose queries are beside: the best order has NDCG 1."""
    file = tmp_path / "qrels.txt"
    write(counted, file, "trec")
    with file.open() as lines:
        qrels = pytrec_eval.parse_qrel(lines)
    topics = {row["topic"]: row["query"] for row in beside(file)}
    relevance = expected(counted)
    assert {topics[topic]: items for topic, items in qrels.items()} == {
        query: {item: grade(value) for item, value in items.items()}
        for query, items in relevance.items()
    }
    run = {topic: relevance[query] for topic, query in topics.items()}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg"}).evaluate(run)
    assert [each["ndcg"] for each in found.values()] == pytest.approx([1.0] * 5)


def item_of(name: str, relevance: float = 0.6, *, is_seldom: bool = False) -> Any:
    """An item that was looked at often, or not."""
    return ItemRelevance(name, 9, 3, 5.0, relevance, 0.4, 0.8, 9, is_seldom, "")


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\nb", "a\u00a0b", " a", ""])
def test_an_id_that_qrels_would_cut_is_refused(name: str) -> None:
    """Its columns are parted by spaces, of whatever sort."""
    judged = Judged(1, "q", [3], [item_of("a"), item_of(name)])
    with pytest.raises(ExportRefused, match="without spaces for qrels") as refused:
        FORMS["trec"].of_query(judged, Asked("trec", CUTOFFS))
    assert repr(name) in str(refused.value)


def stated(monkeypatch: pytest.MonkeyPatch, found: dict[str, list[Any]]) -> None:
    """Let relevance of queries be as a test says."""

    class Stated:
        def __init__(self, *_: Any) -> None:
            pass

        def take(self, _: Any) -> Any:
            return []

        def finish(self) -> Any:
            return [(query, SimpleNamespace(items=x)) for query, x in found.items()]

    monkeypatch.setattr(judgments, "RelevanceByQuery", Stated)


def test_a_grade_is_of_what_is_known_and_reached(
    counted: CountedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut-off itself is reached; a query of which nothing is known is no topic."""
    found = {
        "first": [item_of("a", is_seldom=True), item_of("b", np.nan)],
        "second": [item_of("c", 0.3), item_of("d", 0.2999), item_of("e", np.nan),
                   item_of("f", 0.9, is_seldom=True), item_of("g", -0.1)],
    }  # fmt: skip
    stated(monkeypatch, found)
    file = tmp_path / "qrels.txt"
    told = write(counted, file, "trec")
    assert file.read_text() == "1 0 c 2\n1 0 d 1\n1 0 g 0\n"
    assert (told.n_queries, told.n_left_out) == (1, 4)
    assert [row["topic"] for row in beside(file)] == ["1"] * 3


@pytest.mark.parametrize("name", ['a"b', "a,b", "a\nb", "a\rb", "a\r\nb", "\u2028", ""])
def test_the_file_beside_is_read_back_as_it_was(
    counted: CountedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever letters an id has."""
    stated(monkeypatch, {name: [item_of(name), item_of("b")]})
    file = tmp_path / "judgments.json"
    write(counted, file, "opensearch")
    rows = beside(file)
    assert [(row["query"], row["item"]) for row in rows] == [(name, name), (name, "b")]


def test_a_segment_stands_beside_its_query(
    counted: CountedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No search engine is asked for the mark between both."""
    queries = [query_in_segment("Red Shoes", each) for each in ("nl", "de")]
    stated(monkeypatch, {query: [item_of("a")] for query in [*queries, "plain"]})
    files = {form: tmp_path / form for form in ("opensearch", "elasticsearch")}
    for form, file in files.items():
        write(counted, file, form, of_index="products")
        assert [(row["query"], row["segment"]) for row in beside(file)] == [
            ("red shoes", "nl"), ("red shoes", "de"), ("plain", ""),
        ]  # fmt: skip
    told = json.loads(files["opensearch"].read_text())["judgmentRatings"]
    assert [(each["query"], each.get("segment")) for each in told] == [
        ("red shoes", "nl"), ("red shoes", "de"), ("plain", None),
    ]  # fmt: skip
    asked = json.loads(files["elasticsearch"].read_text())["requests"]
    assert [(each["id"], each["params"]) for each in asked] == [
        ("1: red shoes nl", {"query": "red shoes", "segment": "nl"}),
        ("2: red shoes de", {"query": "red shoes", "segment": "de"}),
        ("plain", {"query": "plain"}),
    ]


def test_lightgbm_reads_rows_queries_and_weights(
    counted: CountedLog, tmp_path: Path
) -> None:
    """Labels are grades, a feature has its place, a weight its expected looks."""
    file = tmp_path / "train.txt"
    write(counted, file, "lightgbm", model="m")
    plan = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 2}
    data: Any = lightgbm.Dataset(file, params=plan).construct()
    rows = beside(file)
    assert data.get_label().tolist() == [float(row["grade"]) for row in rows]
    assert data.num_feature() == N_FEATURES
    sizes = [sum(row["query"] == query for row in rows) for query in expected(counted)]
    assert data.get_group().tolist() == sizes
    looks = [float(row["exposure"]) for row in rows]
    assert data.get_weight().tolist() == pytest.approx(looks)
    booster = lightgbm.train({"objective": "lambdarank", **plan}, data, 2)
    assert booster.num_trees() == 2


def test_xgboost_takes_rows_with_the_numbers_of_queries(
    counted: CountedLog, tmp_path: Path
) -> None:
    """And one weight of each query, the mean of its rows'."""
    file = tmp_path / "train.txt"
    write(counted, file, "xgboost", model="m")
    features, grades, queries = load_svmlight_file(
        file, n_features=N_FEATURES, query_id=True, zero_based=True
    )
    rows = beside(file)
    assert grades.tolist() == [float(row["grade"]) for row in rows]
    assert queries.tolist() == [int(row["topic"]) for row in rows]
    weights = np.loadtxt(f"{file}.weight")
    assert weights[0] == pytest.approx(
        np.mean([float(row["exposure"]) for row in rows if row["topic"] == "1"]),
        rel=1e-4,
    )
    matrix = xgboost.DMatrix(features, grades, qid=queries, nthread=1)
    matrix.set_weight(weights)
    booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, matrix, 2)
    assert booster.num_boosted_rounds() == 2


def test_features_are_those_that_were_logged(
    counted: CountedLog, tmp_path: Path
) -> None:
    """Number by number, in single precision."""
    file = tmp_path / "train.txt"
    write(counted, file, "lightgbm", model="m")
    features, _ = load_svmlight_file(file, n_features=N_FEATURES, zero_based=True)
    logged = {row.tobytes() for row in queries_of(5).features.astype(np.float32)}
    found = {row.tobytes() for row in features.toarray().astype(np.float32)}
    assert found <= logged
    assert len(found) > 30


def test_training_files_need_a_model(counted: CountedLog, tmp_path: Path) -> None:
    """One of the settings."""
    with pytest.raises(ExportRefused, match="there are m; got 'n': name one with"):
        write(counted, tmp_path / "train.txt", "xgboost", model="n")


def test_where_nothing_is_known_nothing_is_written(
    counted: CountedLog, tmp_path: Path
) -> None:
    """Features of another list are none of these items'."""
    models = {"n": model_of(features=N_FEATURES + 1)}
    settings = msgspec.structs.replace(counted.settings, models=models)
    other = dataclasses.replace(counted, settings=settings)
    with pytest.raises(ExportRefused, match="or they have no features: wait"):
        write(other, tmp_path / "train.txt", "lightgbm", model="n")
    assert [*tmp_path.iterdir()] == []
