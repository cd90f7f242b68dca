"""Features of a table beside the lists of a log."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producers.formats.feature_rows import read_feature_rows
from producers.formats.joined_features import FeatureTable
from producers.formats.source_file import FileUnreadable
from rankstream.wire.envelope import features_hash
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

AT_MS = 1_733_788_889_378
HOUR_MS = 3_600_000


def a_list(query: str, *shown: str, at_ms: int = AT_MS, **fields: Any) -> Event:
    """The event of a list."""
    event = {"query_id": query, "shown": shown, "at_ms": at_ms, **fields}
    return Event(at_ms, QUERIES, json.dumps(event).encode())


def a_table(path: Path, text: str, **options: Any) -> FeatureTable:
    """What a file of features gives."""
    path.write_text(text)
    return FeatureTable(read_feature_rows([path], **options))


def joined(table: FeatureTable, *events: Event) -> list[dict[str, Any]]:
    """The events once features are beside them."""
    if table.is_of_items:
        table.note_shown(events)
    return [json.loads(each.value) for each in table.beside(events)]


def matrix_of(event: dict[str, Any]) -> list[list[float]]:
    """Features as the event has them."""
    packed = base64.b64decode(event["candidate_features"])
    return np.frombuffer(packed, "<f4").reshape(len(event["candidates"]), -1).tolist()


def test_candidates_are_all_that_a_query_showed(tmp_path: Path) -> None:
    """Features come with the first list of a query, and hourly again."""
    table = a_table(tmp_path / "t.csv", "item,x,name\na,1,A\nb,2,B\nc,3,C\n")
    first, other, second, later = joined(
        table,
        a_list("Red  Shoes", "a", "b"),
        a_list("tea", "c"),
        a_list("red shoes", "c", "a"),
        a_list("red shoes", "c", at_ms=AT_MS + HOUR_MS),
    )
    assert first["candidates"] == second["candidates"] == ["a", "b", "c"]
    assert matrix_of(first) == [[1.0], [2.0], [3.0]]
    assert first["features_hash"] == features_hash(["x"]).hex()
    assert matrix_of(other) == [[3.0]]
    assert "candidate_features" not in second
    assert matrix_of(later) == matrix_of(first)
    assert table.told() == [
        "1 features of 3 items beside 4 of 4 lists",
        "no numbers, and no features: name",
    ]


def test_pairs_say_what_the_candidates_are(tmp_path: Path) -> None:
    """And named candidates stay, in their order; a click is no list."""
    text = "query,item,x,y\nQ,a,1,2\nq,b,3,4\nq,c,5,6\nr,a,7,8\nq,a,9,9\n"
    table = a_table(tmp_path / "t.csv", text)
    click = Event(AT_MS, CLICKS, b'{"item_id": "a"}')
    named = a_list("r", "a", candidates=["a"], model="m")
    found = joined(table, a_list("q", "b"), named, click)
    assert found[0]["candidates"] == ["a", "b", "c"]
    assert matrix_of(found[0]) == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert matrix_of(found[1]) == [[7.0, 8.0]]
    assert found[1]["model"] == "m"
    assert found[2] == {"item_id": "a"}
    assert "1 rows differ from the first of their item" in table.told()[-1]


def test_a_list_with_an_item_without_features_stays_as_it_is(tmp_path: Path) -> None:
    """The others of its query have theirs, and it is said which one lacks."""
    table = a_table(tmp_path / "t.csv", "item,x\na,1\n")
    whole, lacking = joined(table, a_list("q", "a"), a_list("q", "a", "z"))
    assert whole["candidates"] == ["a"]
    assert "candidates" not in lacking
    assert "1 lists stay without features, as an item has none: 'z'" in table.told()[1]
    own = a_list("q", "a", candidates=["a"], candidate_features=[[9.0]])
    assert joined(table, own)[0]["candidate_features"] == [[9.0]]


def test_the_same_features_are_read_from_every_form(tmp_path: Path) -> None:
    """CSV, Parquet, JSON lines flat or with members, and LETOR; in the wanted order."""
    rows = [{"query": "1", "item": "a", "f1": 1.5, "f2": 2.0}]
    rows.append({"query": "1", "item": "b", "f1": 3.0, "f2": 4.0})
    (tmp_path / "t.csv").write_text("f2;item;query;f1\n2;a;1;1.5\n4;b;1;3\n")
    (tmp_path / "t.txt").write_text(
        "0 qid:1 1:1.5 2:2 # docid = a\n1 qid:1 1:3 2:4 # docid = b\n"
    )
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
    (tmp_path / "u.jsonl").write_text(
        '{"query_id": "1", "item_id": "a", "features": [1.5, 2]}\n'
        '{"query_id": "1", "item_id": "b", "features": [3, 4]}\n'
    )
    for name in ("t.csv", "t.txt", "t.parquet", "t.jsonl", "u.jsonl"):
        found = read_feature_rows([tmp_path / name], names=["f1", "f2"])
        assert (found.queries, found.items) == (["1", "1"], ["a", "b"]), name
        assert found.features.tolist() == [[1.5, 2.0], [3.0, 4.0]], name


def test_columns_of_features_are_named_or_begin_alike(tmp_path: Path) -> None:
    """In the order of the file."""
    text = "sku,f_b,price,f_a,stock\na,1,2,3,4\n"
    for told, names in (
        ("f_*", ["f_b", "f_a"]),
        ("stock+f_*", ["f_b", "f_a", "stock"]),
    ):
        table = a_table(
            tmp_path / "t.csv", text, columns={"item": "sku", "features": told}
        )
        assert table.rows.names == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sku,x\na,1\n", "a column item must be there; no 'item' or 'item_id' among"),
        ("item,name\na,A\n", "a file must have columns of numbers, which are the feat"),
        ("item,x\na,1\nb,nan\n", "features must be finite"),
        ("item,x\na,1\nb,-\n", "a feature must be a number in each row; 'x' is '-'"),
        ("item,x\na,1,2\n", "a row must have 2 cells, as the head has; got 3"),
        ("item,x,x\na,1,2\n", "columns must differ in names; 'x' is there again"),
        ("item,x\n", "a file must hold rows of items; got none"),
        ("item,x\n,1\n", "item must be a name or a whole number; got ''"),
        ('{"item": "a", "x": 1}\n[1]\n', "a line must be an object such as"),
        ('{"item": "a", "x": 1}\n{\n', "a line must be JSON"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(
    tmp_path: Path, text: str, said: str
) -> None:
    """File, line, rule and remedy."""
    with pytest.raises(FileUnreadable) as refused:
        a_table(tmp_path / "t.csv", text)
    assert said in str(refused.value)
    assert str(tmp_path / "t.csv") in str(refused.value)


def test_a_column_with_a_gap_is_said_to_have_one(tmp_path: Path) -> None:
    """It has numbers; a row that is there twice is said too."""
    text = "item,x,price,name\na,1,,A\nb,2,5,B\nb,2,5,B\n"
    table = a_table(tmp_path / "t.csv", text)
    joined(table, a_list("tea", "a", "b"))
    said = table.told()
    assert "no numbers, and no features: name" in said
    assert (
        "price: 1 of 3 rows hold no number, so it is no feature: fill or drop them"
    ) in said
    assert "1 rows repeat the first of their item" in said
