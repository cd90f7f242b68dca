"""Answers of a log: those of the commands, as tables that other libraries take."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankstream
from rankstream.notebook.results import Result
from rankstream.operations.answers.as_builtins import as_builtins
from tests.clicked_tables import N_ITEMS, N_QUERIES, N_RANKS, Shop

TREE = Path(__file__).parents[3]


def all_answers(log: rankstream.Log) -> list[Result]:
    """One of each kind, but for comparisons."""
    return [
        log.statistics(),
        log.statistics("query 1"),
        log.bias(),
        log.relevance("query 1"),
        log.evaluate({"as named": {"query 1": ["item 7", "item 6"]}}),
        log.dead_letters(),
    ]


def test_eight_lines_from_clicks_to_a_valued_ranker(own: Shop) -> None:
    """As a notebook would have them."""
    lines = """
import rankstream
log = rankstream.read(clicks, features=products)
curve = log.bias()
relevance = log.relevance("query 1")
ranker = log.train()
values = log.evaluate({"new": ranker})
scores = ranker.predict(products)
"""
    assert len(lines.strip().splitlines()) <= 8
    found = {"clicks": own.clicks, "products": own.products}
    exec(lines, found)  # noqa: S102  our own lines

    alpha = np.array([row.alpha for row in found["curve"]])
    # From 3 of 20 groups of users, as all others are left for what is trained.
    assert np.abs(alpha - 1.0 / np.arange(1, N_RANKS + 1)).max() < 0.15
    told = {row.item: row for row in found["relevance"]}
    assert len(told) == N_ITEMS
    # In units of a click at rank 1, as clicks alone tell it.
    inside = [row.low <= own.relevance[item] <= row.high for item, row in told.items()]
    assert sum(inside) >= N_ITEMS - 1
    new, logged = found["values"].rows[1], found["values"].rows[0]
    assert (logged.name, new.name) == ("logged", "new")
    assert new.difference > 0
    by_relevance = np.corrcoef(found["scores"], [*own.relevance.values()])[0, 1]
    assert by_relevance > 0.9


def test_what_is_counted_is_what_was_shown(log: rankstream.Log, own: Shop) -> None:
    """By query, and by item and rank, as sums over the rows say."""
    table = own.clicks.to_pylist()
    queries = {row.query: row for row in log.statistics()}
    assert len(queries) == N_QUERIES
    for query, row in queries.items():
        of_query = [each for each in table if each["query"] == query]
        assert row.lists == len(of_query) / N_RANKS
        assert row.clicks == sum(each["clicked"] for each in of_query)
    for row in log.statistics("query 3"):
        at = [
            each["clicked"]
            for each in table
            if (each["query"], each["item"], each["position"])
            == ("query 3", row.item, row.rank)
        ]
        assert (row.shown, row.clicked) == (len(at), sum(at))
    assert log.outcomes["impressions applied"] == len(table) // N_RANKS


def test_answers_are_those_of_the_commands(own: Shop, tmp_path: Path) -> None:
    """`evaluate --json` of the same file says the same, number by number."""
    file = tmp_path / "clicks.parquet"
    pq.write_table(own.clicks, file)
    rankings = {"query 1": ["item 7", "item 6", "item 9"]}
    (tmp_path / "best.jsonl").write_text(
        json.dumps({"query_id": "query 1", "items": rankings["query 1"]})
    )
    words = ["evaluate", str(tmp_path / "best.jsonl"), "--log", str(file), "--json"]
    command = [sys.executable, "-m", "rankstream.operations.cli", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300, cwd=TREE
    )
    of_command = json.loads(done.stdout)

    answer = rankstream.read(file, progress=False).evaluate({"best": rankings})

    assert answer.to_dict() == of_command


def test_each_answer_is_a_table_of_any_library(log: rankstream.Log) -> None:
    """Rows and columns are the same in all, and NaN is null."""
    for answer in all_answers(log):
        rows = [as_builtins(row) for row in answer]
        assert answer.to_arrow().to_pylist() == rows
        assert pa.table(answer).to_pylist() == rows
        assert answer.to_polars().to_dicts() == rows
        assert pl.DataFrame(answer).to_dicts() == rows
        frame = answer.to_pandas()
        assert [*frame.columns] == answer.to_arrow().column_names
        assert len(frame) == len(answer) == len(rows)
        json.dumps(answer.to_dict(), allow_nan=False)


def test_each_answer_prints_as_a_table(log: rankstream.Log) -> None:
    """With its columns, and what must be known below."""
    shown: list[Any] = [*all_answers(log), log]
    for answer in shown:
        text, page = repr(answer), answer._repr_html_()
        names = (
            ["outcome", "events"] if answer is log else answer.to_arrow().column_names
        )
        assert text.splitlines()[1].split() == names
        assert page.count("<table>") == 1
        assert all(f"<th>{name}</th>" for name in names)
    said = repr(log.relevance("query 1"))
    assert "* examination by rank" in said


def test_text_of_others_is_no_markup() -> None:
    """Neither in a page nor in a terminal; long names are cut, and many rows too."""
    names = ["<b>bold</b>", "a\x1b[2Jb", "&" + 200 * "x", "مرحبا", "$x_1$", "[red]"]
    n = 30
    table = pa.table(
        {
            "impression": [f"l{number}" for number in range(n)],
            "item": [names[number % len(names)] for number in range(n)],
            "query": [f"<i>{number}</i>" for number in range(n)],
            "clicked": [True] * n,
        }
    )
    log = rankstream.read(table, progress=False)
    page = log.statistics()._repr_html_()
    assert "<i>" not in page
    assert "&lt;i&gt;0&lt;/i&gt;" in page
    assert "... 10 more rows" in page
    text = repr(log.statistics("<i>0</i>")) + repr(log.statistics("<i>1</i>"))
    assert "\x1b" not in text
    assert "<b>bold</b>" in text
    assert max(map(len, repr(log.statistics("<i>2</i>")).splitlines())) < 72 + 50


def test_a_curve_by_another_estimator(log: rankstream.Log) -> None:
    """Each says which one; one that there is not names the nearest."""
    found = {name: log.bias(name) for name in ("trust", "all-pairs")}
    for name, curve in found.items():
        assert f"by {name}" in curve.title
        assert curve.rows[0].alpha == 1.0
    assert any(row.beta != 0.0 for row in found["trust"])
    with pytest.raises(ValueError, match="did you mean all-pairs"):
        log.bias("all_pairs")
    with pytest.raises(ValueError, match=r"all-pairs; got 'nope'$"):
        log.bias("nope")


def test_weights_are_one_over_examination(log: rankstream.Log) -> None:
    """A row that was clicked weighs that of its rank, others 1."""
    curve = log.bias()
    alpha = np.array([row.alpha for row in curve])
    assert np.allclose(curve.weights(), 1.0 / alpha)
    assert curve.weights(most=2.0).max() == 2.0
    ranks, clicked = np.array([1, 3, 3]), np.array([1, 1, 0])
    assert np.allclose(curve.row_weights(ranks, clicked), [1.0, 1.0 / alpha[2], 1.0])
    with pytest.raises(ValueError, match="position weights must be of plain"):
        log.bias("trust").weights()


def test_lists_that_never_move_tell_no_curve() -> None:
    """The answers say so, and a known curve helps."""
    table = pa.table(
        {
            "impression": [f"l{number // 2}" for number in range(400)],
            "item": [f"i{number % 2}" for number in range(400)],
            "query": ["shoes"] * 400,
            "clicked": [number % 3 == 0 for number in range(400)],
        }
    )
    log = rankstream.read(table, progress=False)
    curve = log.bias()
    assert not len(curve)
    assert "* clicks must tell" in repr(curve)
    for ask in (
        lambda: log.relevance("shoes"),
        lambda: log.evaluate({"a": {"shoes": ["i1", "i0"]}}),
        curve.weights,
    ):
        with pytest.raises(ValueError, match=r"examination=\[1\.0, 0\.6, \.\.\.\]"):
            ask()
    items = log.relevance("shoes", examination=[1.0, 0.5])
    assert [row.item for row in items] == ["i1", "i0"]
    values = log.evaluate({"a": {"shoes": ["i1", "i0"]}}, examination=[1.0, 0.5])
    assert values.rows[1].name == "a"


def test_a_query_that_is_not_there_names_the_nearest(log: rankstream.Log) -> None:
    """Of statistics and relevance alike; capitals do not matter."""
    for ask in (log.statistics, log.relevance):
        with pytest.raises(ValueError, match="did you mean 'query 1"):
            ask("queryy 11")
    assert log.statistics("QUERY 1").rows == log.statistics("query 1").rows


def test_policies_come_in_many_forms(log: rankstream.Log, tmp_path: Path) -> None:
    """A ranking is one, whatever it is written as."""
    order = {"query 1": ["item 8", "item 6", "item 7"]}
    scores = {"query 1": {"item 8": 60.0, "item 6": 30.0, "item 7": 0.0}}
    file = tmp_path / "order.jsonl"
    file.write_text('{"query_id": "query 1", "items": ["item 8", "item 6", "item 7"]}')
    by_score = pa.table(
        {
            "query": ["query 1"] * 3,
            "item": ["item 6", "item 7", "item 8"],
            "score": [30.0, 0.0, 60.0],
        }
    )
    by_place = by_score.drop_columns(["score"]).append_column(
        "position", pa.array([2, 3, 1])
    )
    found = log.evaluate(
        {
            "order": order, "scores": scores, "file": file, "named": str(file),
            "frame": by_score, "places": by_place,
        }
    )  # fmt: skip
    rewards = {row.name: row.reward for row in found}
    logged = rewards.pop("logged")
    assert len({round(reward, 9) for reward in rewards.values()}) == 1
    assert logged not in rewards.values()


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        ({}, "policies must be one or more"),
        ({"logged": {"query 1": ["item 6"]}}, "by names other than 'logged'"),
        ({"a": 7}, "a policy must be a ranker of `train`"),
        ({"a": {"query 1": "item 6"}}, "rankings must be lists of items"),
        ({"a": {"query 1": ["item 6", "item 6"]}}, "items must be one or more, each"),
        ({"a": {"query 1": ["x"], "QUERY 1": ["x"]}}, "a query must be ranked once"),
        ({"a": {"other": ["item 6"]}}, "ranks 'other', which has none: the log has"),
        ({"a": {"query 1": ["itm 6"]}}, "no list showed an item of 'a': it ranks 'itm"),
        ([1], "policies must be {name: policy}; got a list"),
        (rankstream.ClickRanker(), "policies must be {name: policy}; got a ClickRank"),
        (
            {"a": pa.table({"query": ["q"], "item": ["i"], "score": [None]})},
            "rankings must have a finite score in each row",
        ),
        ({"a": pa.table({"query": ["q"], "itm": ["i"]})}, "lacks item: did you mean"),
        ({"a": rankstream.ClickRanker()}, "a ranker must be fitted before it is"),
        ({"a": "nowhere.snapshot"}, "a snapshot must be readable"),
    ],
)
def test_what_is_no_policy_is_refused(
    log: rankstream.Log, policies: dict[str, Any], reason: str
) -> None:
    """Each with what it should be."""
    with pytest.raises(ValueError, match=reason):
        log.evaluate(policies)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"weights": "ndcg"}, "weights must be one of clicks.*did you mean dcg"),
        ({"ranks": 2.5}, "ranks must be a whole number, 0 or above; got 2.5"),
        ({"ranks": -1}, "ranks must be a whole number, 0 or above; got -1"),
    ],
)
def test_how_values_are_made_can_be_so(
    log: rankstream.Log, how: dict[str, Any], reason: str
) -> None:
    """Before anything is computed."""
    with pytest.raises(ValueError, match=reason):
        log.evaluate({"a": {"query 1": ["item 6"]}}, **how)


def test_against_whom_is_a_name(log: rankstream.Log) -> None:
    """Of the policies, or of what was logged."""
    both = {"old": {"query 1": ["item 6", "item 7"]}, "new": {"query 1": ["item 7"]}}
    found = {row.name: row for row in log.evaluate(both, against="old")}
    assert found["old"].difference == 0.0
    assert math.isclose(
        found["new"].difference, found["new"].reward - found["old"].reward
    )
    with pytest.raises(ValueError, match="did you mean old"):
        log.evaluate(both, against="Old")


def test_the_same_log_gives_the_same_bits(own: Shop, log: rankstream.Log) -> None:
    """Also what is trained from it."""
    again = rankstream.read(own.clicks, features=own.products, progress=False)
    assert [each.to_dict() for each in all_answers(again)] == [
        each.to_dict() for each in all_answers(log)
    ]


def test_a_library_that_is_missing_is_named(
    log: rankstream.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to install, and what needs nothing more."""
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install polars, or take to_arrow\(\)"):
        log.statistics().to_polars()
